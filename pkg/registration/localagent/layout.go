package localagent

import "path/filepath"

// A Layout says where the files of an agent are, all below Dir. Directories are
// 0700, files 0600.
type Layout struct{ Dir string }

// ConfigFile marks the directory as an agent's, and holds what cannot be derived.
func (l Layout) ConfigFile() string { return filepath.Join(l.Dir, "agent.yaml") }

// Kubeconfig is how the agent reaches the control plane. It names files, so that
// a renewed certificate is taken up without a restart.
func (l Layout) Kubeconfig() string { return filepath.Join(l.Dir, "karmada-agent.conf") }

// MemberKubeconfig is how the agent reaches its own cluster.
func (l Layout) MemberKubeconfig() string { return filepath.Join(l.Dir, "member.conf") }

// CA is by what the control plane is recognised.
func (l Layout) CA() string { return filepath.Join(l.Dir, "pki", "ca.crt") }

// Credential is the agent's certificate and its key, in one file, so that nothing
// can come between the two.
func (l Layout) Credential() string { return filepath.Join(l.Dir, "pki", "agent.pem") }

// PendingKey is the key of a certificate that has been asked for, and is not there
// yet.
func (l Layout) PendingKey() string { return filepath.Join(l.Dir, "pki", "agent.key") }

// LogFile is what the agent says.
func (l Layout) LogFile() string { return filepath.Join(l.Dir, "log", "agent.log") }

// SupervisorLog is what the process that starts the agent again says, which is
// little.
func (l Layout) SupervisorLog() string { return filepath.Join(l.Dir, "log", "supervisor.log") }

// SupervisorLock is held by the process that starts the agent again when it ends.
func (l Layout) SupervisorLock() string { return filepath.Join(l.Dir, "run", "supervisor.pid") }

// SupervisorState is where that process reports.
func (l Layout) SupervisorState() string { return filepath.Join(l.Dir, "run", "supervisor.json") }

// CommandLock is held by the command that is changing the directory.
func (l Layout) CommandLock() string { return filepath.Join(l.Dir, "run", "command.pid") }

// dirs are the directories below Dir.
func (l Layout) dirs() []string {
	return []string{filepath.Join(l.Dir, "pki"), filepath.Join(l.Dir, "log"), filepath.Join(l.Dir, "run")}
}

// files are those that are made in a directory, without the log and the one that
// marks it.
func (l Layout) files() []string {
	return []string{
		l.Kubeconfig(), l.MemberKubeconfig(), l.CA(), l.Credential(), l.PendingKey(),
		l.SupervisorState(), l.SupervisorLog(), l.SupervisorLock(),
	}
}
