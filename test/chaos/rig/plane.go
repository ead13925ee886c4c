package rig

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// A Plane is one control plane in a data directory of its own, installed or not.
type Plane struct {
	Karmadactl
	Dir  string
	Port int
	// BindAddress is what the API server listens on; empty leaves the flag out.
	BindAddress string
}

// NewPlane returns a control plane to be installed in dir, which need not exist, on a free port.
func NewPlane(b Binaries, dir string) (Plane, error) {
	port, err := FreePort()
	if err != nil {
		return Plane{}, err
	}
	return Plane{Karmadactl: Karmadactl{Path: b.Karmadactl}, Dir: dir, Port: port, BindAddress: "127.0.0.1"}, nil
}

// An InitResult is what `init -o json` prints, as far as it is used here.
type InitResult struct {
	Kubeconfig string `json:"kubeconfig"`
	PID        int    `json:"pid"`
	Changed    bool   `json:"changed"`
	Steps      []Step `json:"steps"`
}

// A Step is one step of an installation.
type Step struct {
	Name   string        `json:"name"`
	Detail string        `json:"detail"`
	Took   time.Duration `json:"took"`
}

// A Status is what `status -o json` prints, as far as it is used here.
type Status struct {
	Healthy    bool `json:"healthy"`
	PID        int  `json:"pid"`
	Supervisor struct {
		PID       int    `json:"pid"`
		Restarts  int    `json:"restarts"`
		LastError string `json:"lastError"`
	} `json:"supervisor"`
	Components []struct {
		Name    string `json:"name"`
		Phase   string `json:"phase"`
		Healthy bool   `json:"healthy"`
		Message string `json:"message"`
	} `json:"components"`
	DataBytes int64 `json:"dataBytes"`
}

// InitArgs is the command line that installs p. It is the same every time, as a user's would be.
func (p Plane) InitArgs() []string {
	args := []string{"init", "--data-dir=" + p.Dir, "--port=" + strconv.Itoa(p.Port), "-o", "json"}
	if p.BindAddress != "" {
		args = append(args, "--bind-address="+p.BindAddress)
	}
	return args
}

// Kubeconfig is the admin's.
func (p Plane) Kubeconfig() string { return filepath.Join(p.Dir, "karmada-apiserver.config") }

// Init installs p, or converges what is installed.
func (p Plane) Init(ctx context.Context) (InitResult, error) {
	return runJSON[InitResult](ctx, p.Karmadactl, p.InitArgs()...)
}

// Status asks once. The error carries the exit code (see ExitCode); the status is filled for 0 and 1.
func (p Plane) Status(ctx context.Context) (Status, error) {
	return runJSON[Status](ctx, p.Karmadactl, "status", "--data-dir="+p.Dir, "-o", "json")
}

// Start starts what is installed.
func (p Plane) Start(ctx context.Context) error {
	_, err := p.Run(ctx, "", "start", "--data-dir="+p.Dir)
	return err
}

// Stop stops what runs.
func (p Plane) Stop(ctx context.Context) error {
	_, err := p.Run(ctx, "", "stop", "--data-dir="+p.Dir)
	return err
}

// Deinit removes p with its data.
func (p Plane) Deinit(ctx context.Context) error {
	_, err := p.Run(ctx, "", "deinit", "--purge", "--yes", "--data-dir="+p.Dir)
	return err
}

// Kubectl runs a kubectl verb of karmadactl as admin.
func (p Plane) Kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	return p.Run(ctx, stdin, append(args, "--kubeconfig="+p.Kubeconfig())...)
}

// Processes lists every process that works on p, be it one of the control plane or a command.
func (p Plane) Processes() ([]Process, error) { return FindProcesses(p.Dir) }

// Files lists what lies in the data directory; etcd's own files count as one.
func (p Plane) Files() ([]string, error) {
	var files []string
	err := filepath.WalkDir(p.Dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		files = append(files, path)
		if d.IsDir() && path == filepath.Join(p.Dir, "etcd") {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the data directory: %w", err)
	}
	return files, nil
}

// logTail is how much of a log is worth showing with a failure.
const logTail = 4 << 10

// Log returns the log of the control plane's process, or why there is none.
func (p Plane) Log() string {
	data, err := os.ReadFile(filepath.Join(p.Dir, "log", "plane.log"))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// LogTail returns the end of Log.
func (p Plane) LogTail() string {
	log := p.Log()
	return log[max(0, len(log)-logTail):]
}

// KillAll ends every process of p with SIGKILL.
func (p Plane) KillAll(ctx context.Context) error { return KillAll(ctx, p.Dir) }

// Destroy ends every process of p with SIGKILL and removes its directory, whatever state it is in. It is for clearing
// up: what Deinit does is part of what is tested.
func (p Plane) Destroy(ctx context.Context) error { return DestroyDir(ctx, p.Dir) }

// DestroyDir is Destroy for any data directory.
func DestroyDir(ctx context.Context, dir string) error {
	if err := errors.Join(KillAll(ctx, dir), os.RemoveAll(dir)); err != nil {
		return fmt.Errorf("clear up %s: %w", dir, err)
	}
	return nil
}

// KillAll ends every process that works on a data directory with SIGKILL, and waits until they are gone.
func KillAll(ctx context.Context, dir string) error {
	return Eventually(ctx, "every process on "+dir+" has ended", func() error {
		left, err := FindProcesses(dir)
		if err != nil || len(left) == 0 {
			return err
		}
		// The supervisor, which is the older one, goes first: it would start the next plane.
		slices.SortFunc(left, func(a, b Process) int { return a.PID - b.PID })
		for _, one := range left {
			if err := one.Signal(syscall.SIGKILL); err != nil {
				return err
			}
		}
		return fmt.Errorf("there are still %v", left)
	})
}
