package fleetrig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/karmadactl/karmadactl/test/chaos/rig"
)

// Options are what a fleet consists of.
type Options struct {
	// Name is part of the directory's.
	Name string
	// Members is how many members there are: member1, member2 and so on. The control plane reaches them.
	Members int
	// Pull says that the last member is not reached, but has an agent.
	Pull bool
	// Nodes is how many nodes each member has.
	Nodes int
}

func (o Options) names() []string {
	var names []string
	for i := range o.Members {
		names = append(names, fmt.Sprintf("member%d", i+1))
	}
	return names
}

// A Fleet is a control plane with its members.
type Fleet struct {
	rig.Plane
	Playground rig.Playground
	// Agent is that of the last member, if it pulls.
	Agent   rig.Agent
	Control *Cluster
	Members []*Cluster

	options Options
}

// Main starts a fleet, hands it to share, runs the tests, and removes it. It returns the exit code.
func Main(m *testing.M, o Options, share func(*Fleet)) int {
	code, err := runTests(m, o, share)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

func runTests(m *testing.M, o Options, share func(*Fleet)) (code int, err error) {
	binaries, err := rig.FindBinaries("")
	if err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "karmada-"+o.Name+"-")
	if err != nil {
		return 1, err
	}
	ctx := context.Background()
	f := &Fleet{Playground: rig.NewPlayground(binaries, filepath.Join(dir, "members")), options: o}
	if o.Pull {
		f.Agent = rig.Agent{Cluster: o.names()[o.Members-1], Dir: filepath.Join(dir, "agent")}
	}
	if f.Plane, err = rig.NewPlane(binaries, filepath.Join(dir, "plane")); err != nil {
		return 1, err
	}
	defer func() {
		if code != 0 {
			fmt.Fprintf(os.Stderr, "the end of the control plane's log:\n%s\n", f.LogTail())
		}
		err = errors.Join(err, rig.DestroyDir(ctx, dir))
	}()
	if err := f.start(ctx); err != nil {
		return 1, fmt.Errorf("start the fleet: %w", err)
	}
	share(f)
	return m.Run(), nil
}

func (f *Fleet) start(ctx context.Context) error {
	if _, err := f.Init(ctx); err != nil {
		return err
	}
	var err error
	if f.Control, err = f.open("the control plane", f.Kubeconfig()); err != nil {
		return err
	}
	if f.options.Members == 0 {
		return nil
	}
	if err := f.Up(ctx); err != nil {
		return err
	}
	for _, name := range f.options.names() {
		if err := f.Join(ctx, name); err != nil {
			return err
		}
		m, err := f.open(name, f.Playground.Kubeconfig(name))
		if err != nil {
			return err
		}
		f.Members = append(f.Members, m)
	}
	return nil
}

// Up starts the members that do not run.
func (f *Fleet) Up(ctx context.Context) error {
	return f.Playground.Up(ctx, f.options.Members, f.options.Nodes)
}

// Join makes a member a cluster of the control plane, and waits until it is ready.
func (f *Fleet) Join(ctx context.Context, name string) error {
	args := f.JoinArgs(f.Playground, name, name, "--wait=2m")
	if name == f.Agent.Cluster {
		var err error
		if args, err = f.RegisterArgs(ctx, f.Playground, name, f.Agent, "--wait=2m"); err != nil {
			return err
		}
	}
	_, err := f.Run(ctx, "", args...)
	return err
}

// Karmadactl runs a command against the control plane that has to succeed, and returns what it prints.
func (f *Fleet) Karmadactl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := f.Run(t.Context(), "", append(args, "--kubeconfig="+f.Kubeconfig())...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Process returns the process that holds the control plane.
func (f *Fleet) Process(t *testing.T) rig.Process {
	t.Helper()
	var found rig.Process
	Eventually(t, "the control plane runs", func() error {
		running, err := f.Processes()
		if err != nil {
			return err
		}
		i := slices.IndexFunc(running, func(p rig.Process) bool { return p.Role() == "plane" })
		if i < 0 {
			return fmt.Errorf("there is %v", running)
		}
		found = running[i]
		return nil
	})
	return found
}

// Healthy waits until the control plane is.
func (f *Fleet) Healthy(t *testing.T, reason string) {
	t.Helper()
	Eventually(t, reason, func() error {
		status, err := f.Status(t.Context())
		if err == nil && !status.Healthy {
			err = errors.New("it is not healthy")
		}
		return err
	})
}

// Story tells what the fleet has of an object: the one that is looked at, what takes it to clusters, and what the
// control plane has logged of that.
func (f *Fleet) Story(u, at *unstructured.Unstructured) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var all []string
	add := func(o *unstructured.Unstructured) {
		if o != nil {
			data, err := json.Marshal(o.Object)
			all = append(all, fmt.Sprintf("%s %v", data, err))
		}
	}
	add(at)
	for _, resource := range []string{"resourcebindings", "clusterresourcebindings", "works"} {
		gvr := schema.GroupVersionResource{Group: "work.karmada.io", Version: "v1alpha2", Resource: resource}
		if resource == "works" {
			gvr.Version = "v1alpha1"
		}
		list, err := f.Control.Dynamic.Resource(gvr).List(ctx, metav1.ListOptions{})
		if err != nil {
			all = append(all, err.Error())
			continue
		}
		for i := range list.Items {
			text, err := json.Marshal(list.Items[i].Object)
			if err == nil && strings.Contains(string(text), fmt.Sprintf("%q", u.GetName())) && strings.Contains(string(text), fmt.Sprintf("%q", u.GetKind())) {
				add(&list.Items[i])
			}
		}
	}
	for line := range strings.Lines(f.Log()) {
		if strings.Contains(line, "/"+u.GetName()) || strings.Contains(line, strings.ToLower(u.GetName()+"-"+u.GetKind())) {
			all = append(all, strings.TrimSuffix(line, "\n"))
		}
	}
	return strings.Join(all, "\n")
}

// Eventually fails the test when check does not come to return nil.
func Eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	if err := rig.Eventually(t.Context(), what, check); err != nil {
		t.Fatal(err)
	}
}
