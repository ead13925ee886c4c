package plane

import "path/filepath"

// A Layout says where a plane's files are. Everything lies below Dir, except the PKI when the user put it elsewhere.
type Layout struct {
	Dir string
	PKI string
}

// NewLayout returns the layout of the data directory dir. pki may be empty: then it is dir/pki.
func NewLayout(dir, pki string) Layout {
	if pki == "" {
		pki = filepath.Join(dir, "pki")
	}
	return Layout{Dir: dir, PKI: pki}
}

// ConfigFile is the first file that an installation writes and the last that it removes: it marks the directory as
// ours and holds what cannot be derived.
func (l Layout) ConfigFile() string { return filepath.Join(l.Dir, "plane.yaml") }

// AdminKubeconfig is the kubeconfig for people, with embedded credentials.
func (l Layout) AdminKubeconfig() string { return filepath.Join(l.Dir, "karmada-apiserver.config") }

// EtcdData is etcd's data directory.
func (l Layout) EtcdData() string { return filepath.Join(l.Dir, "etcd") }

// KubeconfigDir holds the kubeconfigs of components.
func (l Layout) KubeconfigDir() string { return filepath.Join(l.Dir, "kubeconfig") }

// ConfigDir holds the configuration files of components.
func (l Layout) ConfigDir() string { return filepath.Join(l.Dir, "config") }

// PKIOwner is a file in a PKI directory outside the data directory that names the installation it belongs to.
func (l Layout) PKIOwner() string { return filepath.Join(l.PKI, "owner.yaml") }

// LogDir holds the log of the plane's process.
func (l Layout) LogDir() string { return filepath.Join(l.Dir, "log") }

// LogFile is the log of the plane's process.
func (l Layout) LogFile() string { return filepath.Join(l.LogDir(), "plane.log") }

// SupervisorLog is the log of the supervisor, which has little to say.
func (l Layout) SupervisorLog() string { return filepath.Join(l.LogDir(), "supervisor.log") }

// RunDir holds what only means something while processes run: locks and reported states.
func (l Layout) RunDir() string { return filepath.Join(l.Dir, "run") }

// PlaneLock is held by the process that runs the plane.
func (l Layout) PlaneLock() string { return filepath.Join(l.RunDir(), "plane.pid") }

// SupervisorLock is held by the process that starts the plane again when it fails.
func (l Layout) SupervisorLock() string { return filepath.Join(l.RunDir(), "supervisor.pid") }

// CommandLock is held by the command (init, start, stop, deinit) that is changing the installation.
func (l Layout) CommandLock() string { return filepath.Join(l.RunDir(), "command.pid") }

// PlaneState is where the plane's process reports the state of its components.
func (l Layout) PlaneState() string { return filepath.Join(l.RunDir(), "plane.json") }

// SupervisorState is where the supervisor reports restarts.
func (l Layout) SupervisorState() string { return filepath.Join(l.RunDir(), "supervisor.json") }

func (l Layout) pki(name string) string { return filepath.Join(l.PKI, name) }
func (l Layout) kubeconfig(name string) string {
	return filepath.Join(l.KubeconfigDir(), name+".config")
}
func (l Layout) config(name string) string { return filepath.Join(l.ConfigDir(), name) }
