package localagent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/karmadactl/karmadactl/pkg/registration"
	"github.com/karmadactl/karmadactl/pkg/util/atomicfile"
	"github.com/karmadactl/karmadactl/pkg/util/kubeconfig"
	"github.com/karmadactl/karmadactl/pkg/util/pidlock"
)

// A Request says what agent is wanted.
type Request struct {
	Layout Layout
	// Config is all but the server and the ports.
	Config Config
	// Member is the kubeconfig of the cluster: one context, and nothing in other files.
	Member    clientcmdapi.Config
	Enrolment registration.Enrolment
	// Say is told what is going on, a line each.
	Say func(string)
}

// A Result is what Enrol found and did.
type Result struct {
	Config Config
	// Changed says that a running agent has to be started anew to know of it.
	Changed bool
	// Enrolled says that the agent got a certificate now.
	Enrolled bool
	// New says that the directory held no agent before.
	New bool
}

// isPending reports that somebody may approve the request yet: the next try takes it up.
func isPending(ctx context.Context, err error) bool {
	var refused *registration.PullError
	return ctx.Err() == nil && errors.As(err, &refused) && refused.Reason == registration.RequestPending
}

// isFresh reports that a directory has never held an agent: there is nothing in it, or what a try left that was killed
// before it got a certificate.
func isFresh(l Layout, old *Config) bool {
	if old == nil {
		return true
	}
	_, err := os.Stat(l.Credential())
	return errors.Is(err, fs.ErrNotExist)
}

// Enrol makes the directory of an agent, or what is missing of it, and gets the agent a certificate unless it has one that
// the control plane accepts. It can be repeated, and goes on where an earlier try was killed. When it fails, or ctx is done,
// nothing is left of an agent that was not there before, unless its certificate waits for somebody to approve it.
func Enrol(ctx context.Context, r Request) (res Result, err error) {
	l := r.Layout
	old, err := Check(l, r.Config)
	if err != nil {
		return Result{}, err
	}
	if err := makeDirs(l); err != nil {
		return Result{}, err
	}
	lock, err := lockCommand(l)
	if err != nil {
		return Result{}, err
	}
	fresh := isFresh(l, old)
	defer func() {
		if err != nil && fresh && !isPending(ctx, err) {
			err = errors.Join(err, lock.Remove(), removeFiles(l))
			return
		}
		err = errors.Join(err, lock.Release())
	}()

	if err := r.mendModes(); err != nil {
		return Result{}, err
	}
	cfg := r.Config
	if cfg.HealthPort, cfg.MetricsPort, err = ports(old); err != nil {
		return Result{}, err
	}
	cfg.Server = r.Enrolment.Server()
	if old != nil {
		res.Changed = old.Server != cfg.Server
	} else if _, err := cfg.write(l); err != nil { // first of all: it marks the directory
		return Result{}, err
	}
	id, enrolled, err := r.identity(ctx, old)
	if err != nil {
		return Result{}, err
	}
	changes := []func() (bool, error){
		func() (bool, error) { return atomicfile.WriteIfChanged(l.CA(), id.CA, fileMode) },
		func() (bool, error) { return kubeconfig.WriteIfChanged(l.MemberKubeconfig(), r.Member) },
		func() (bool, error) {
			return kubeconfig.WriteIfChanged(l.Kubeconfig(), kubeconfig.FromFiles(kubeconfig.Files{
				Server: cfg.Server, Cluster: "karmada-apiserver", User: cfg.Cluster, Context: cfg.Cluster + "@karmada-apiserver",
				CAFile: l.CA(), CertFile: l.Credential(), KeyFile: l.Credential(),
			}))
		},
		func() (bool, error) { return cfg.write(l) },
	}
	for _, change := range changes {
		changed, err := change()
		if err != nil {
			return Result{}, err
		}
		res.Changed = res.Changed || changed
	}
	res.Config, res.Enrolled, res.New = cfg, enrolled, fresh
	return res, nil
}

// identity returns what the agent has to recognise the control plane by, and makes sure that it has a certificate which
// the control plane accepts.
func (r Request) identity(ctx context.Context, old *Config) (id registration.FoundControlPlane, enrolled bool, err error) {
	l, e := r.Layout, r.Enrolment
	var ca []byte
	if old != nil {
		if ca, err = readIfThere(l.CA()); err != nil {
			return id, false, err
		}
		pair, err := readPair(l.Credential(), r.Config.Cluster)
		if err != nil {
			return id, false, err
		}
		if pair != nil && ca != nil && old.Server == e.Server() {
			known := registration.FoundControlPlane{Server: old.Server, CA: ca}
			accepted, err := e.Accepts(ctx, known, *pair)
			if err != nil {
				return id, false, err
			}
			if accepted {
				r.Say("This cluster's agent has a certificate already, which the control plane accepts.")
				return known, false, nil
			}
		}
	}
	if id, err = e.Discover(ctx); err != nil {
		return id, false, err
	}
	if ca != nil && !registration.SameAuthority(ca, id.CA) {
		return id, false, fmt.Errorf("the agent in %s belongs to another control plane, that at %s, whose CA is not that of %s: unregister it there first, with --force if it is no more, or choose another directory with --agent-dir", l.Dir, old.Server, id.Server)
	}
	store := keyFile(l.PendingKey())
	r.Say("Asking the control plane for a certificate.")
	pair, err := e.Request(ctx, id, store)
	if err != nil {
		return id, false, err
	}
	if err := atomicfile.WriteFile(l.CA(), id.CA, fileMode); err != nil {
		return id, false, err
	}
	if err := atomicfile.WriteFile(l.Credential(), pair.PEM, fileMode); err != nil {
		return id, false, err
	}
	return id, true, store.Discard()
}

// keyFile keeps the key of a certificate that has been asked for.
type keyFile string

// Load returns the key, nil if there is none.
func (f keyFile) Load() ([]byte, error) { return readIfThere(string(f)) }

// Save keeps the key.
func (f keyFile) Save(key []byte) error { return atomicfile.WriteFile(string(f), key, fileMode) }

// Discard forgets the key.
func (f keyFile) Discard() error {
	if err := os.Remove(string(f)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the key of a certificate that was asked for: %w", err)
	}
	return nil
}

// Check returns the Config that is in the directory, nil for a directory that is empty or not there. One that belongs to
// another cluster, or to something else, is an error that says what to do about it.
func Check(l Layout, wanted Config) (*Config, error) {
	old, err := Load(l)
	if errors.Is(err, ErrNoAgent) {
		return nil, checkUnused(l)
	}
	if err != nil {
		return nil, err
	}
	if old.Cluster != wanted.Cluster || old.ClusterID != wanted.ClusterID {
		// A try that was interrupted before there was a certificate has made nothing that somebody could miss.
		if _, err := os.Stat(l.Credential()); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
	}
	switch {
	case old.Cluster != wanted.Cluster:
		return nil, fmt.Errorf("directory %s holds the agent of another cluster, %s: choose another directory with --agent-dir, or unregister %s first", l.Dir, old.Cluster, old.Cluster)
	case old.ClusterID != wanted.ClusterID:
		return nil, fmt.Errorf("directory %s holds the agent of another cluster of that name, with ID %s (this one has %s): was it rebuilt? Unregister %s first, or choose another directory with --agent-dir", l.Dir, old.ClusterID, wanted.ClusterID, old.Cluster)
	}
	return &old, nil
}

// checkUnused makes sure that nobody's directory becomes an agent's. What an interrupted first try leaves is ours.
func checkUnused(l Layout) error {
	entries, err := os.ReadDir(l.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look into the agent's directory: %w", err)
	}
	for _, e := range entries {
		empty := e.IsDir() && isOneOf(filepath.Join(l.Dir, e.Name()), l.dirs())
		if !empty && !atomicfile.IsTemp(e.Name()) {
			return fmt.Errorf("directory %s holds something else (%s): choose another with --agent-dir, or empty it", l.Dir, e.Name())
		}
	}
	return nil
}

func isOneOf(path string, paths []string) bool {
	for _, p := range paths {
		if p == path {
			return true
		}
	}
	return false
}

func makeDirs(l Layout) error {
	for _, dir := range append([]string{l.Dir}, l.dirs()...) {
		err := os.MkdirAll(dir, dirMode)
		if err == nil {
			err = os.Chmod(dir, dirMode)
		}
		if err != nil {
			return fmt.Errorf("make the agent's directory: %w", err)
		}
	}
	return nil
}

// mendModes takes the agent's files away from everybody but their owner.
func (r Request) mendModes() error {
	for _, path := range append(r.Layout.files(), r.Layout.ConfigFile()) {
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("look at a file of the agent: %w", err)
		}
		was := info.Mode().Perm()
		if !info.Mode().IsRegular() || was == fileMode {
			continue
		}
		if err := os.Chmod(path, fileMode); err != nil {
			return fmt.Errorf("mend the mode of a file of the agent: %w", err)
		}
		r.Say(fmt.Sprintf("The mode of %s was %04o, and is %04o again.", path, was, fileMode))
	}
	return nil
}

// lockCommand keeps two commands from changing one directory at a time.
func lockCommand(l Layout) (*pidlock.Lock, error) {
	lock, err := pidlock.Acquire(l.CommandLock())
	var held *pidlock.HeldError
	if errors.As(err, &held) {
		return nil, fmt.Errorf("another command is changing the agent in %s (process %d): wait for it to end, then run this again", l.Dir, held.PID)
	}
	return lock, err
}

// ports returns the ports of the agent: those that it had, else free ones.
func ports(old *Config) (health, metrics int, err error) {
	if old != nil && old.HealthPort > 0 && old.MetricsPort > 0 {
		return old.HealthPort, old.MetricsPort, nil
	}
	first, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, 0, fmt.Errorf("find a free port: %w", err)
	}
	defer first.Close()
	second, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, 0, fmt.Errorf("find a free port: %w", err)
	}
	defer second.Close()
	port := func(n net.Listener) int {
		if a, ok := n.Addr().(*net.TCPAddr); ok {
			return a.Port
		}
		return 0
	}
	return port(first), port(second), nil
}

func readIfThere(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read a file of the agent: %w", err)
	}
	return data, nil
}

// readPair returns the certificate in a file if there is one that is good for the agent of a cluster, else nil.
func readPair(path, cluster string) (*registration.Pair, error) {
	data, err := readIfThere(path)
	if err != nil || data == nil {
		return nil, err
	}
	pair, err := registration.ParsePair(data)
	if err != nil || pair.IsFor(cluster, time.Now()) != nil {
		return nil, nil // it is of no use any more, and replaced
	}
	return &pair, nil
}
