package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karmadactl/karmadactl/test/bench/load"
	"github.com/karmadactl/karmadactl/test/chaos/rig"
)

// The members of the fleet, as templates name them. The last one is a pull member.
func fleetMembers() []string { return []string{"member1", "member2", "member3"} }

// concurrently is how many objects are created at a time.
const concurrently = 32

// A fleet is a control plane with three member clusters, which scenarios share.
type fleet struct {
	control *load.Target
	members []*load.Target
	// What follows is unknown of a fleet that was there before.
	plane      rig.Plane
	playground rig.Playground
	agent      rig.Agent
	// propagated is how many Deployments are in benchNamespace.
	propagated int
}

// benchNamespace is where scenarios propagate from.
const benchNamespace = "bench"

// A fleetHolder makes the fleet when it is asked for the first time.
type fleetHolder struct {
	fleet   *fleet
	destroy func(context.Context) error
}

// Fleet returns the fleet: the one that flags name, or a new one.
func (e *Env) Fleet(ctx context.Context) (*fleet, error) {
	if e.holder.fleet != nil {
		return e.holder.fleet, nil
	}
	f, err := e.newFleet(ctx)
	if err != nil {
		return nil, err
	}
	if f.control, err = load.Open("the control plane", f.kubeconfig(e.Settings)); err != nil {
		return nil, err
	}
	for i, name := range fleetMembers() {
		m, err := load.Open(name, f.memberKubeconfig(e.Settings, i))
		if err != nil {
			return nil, err
		}
		f.members = append(f.members, m)
	}
	e.holder.fleet = f
	return f, nil
}

func (f *fleet) kubeconfig(s Settings) string {
	if s.Control != "" {
		return s.Control
	}
	return f.plane.Kubeconfig()
}

func (f *fleet) memberKubeconfig(s Settings, i int) string {
	if s.Control != "" {
		return s.Members[i]
	}
	return f.playground.Kubeconfig(fleetMembers()[i])
}

// newFleet makes a control plane and joins three members, unless flags say where one is.
func (e *Env) newFleet(ctx context.Context) (*fleet, error) {
	f := &fleet{}
	if e.Control != "" {
		e.Note("the control plane was there before: its processes are not measured")
		return f, nil
	}
	var err error
	if f.plane, err = rig.NewPlane(e.Binaries, filepath.Join(e.Dir, "fleet-plane")); err != nil {
		return nil, err
	}
	f.playground = rig.NewPlayground(e.Binaries, filepath.Join(e.Dir, "fleet-members"))
	f.agent = rig.Agent{Cluster: fleetMembers()[2], Dir: filepath.Join(e.Dir, "fleet-agent")}
	e.holder.destroy = func(ctx context.Context) error {
		return errors.Join(rig.DestroyDir(ctx, f.agent.Dir), f.plane.Destroy(ctx), f.playground.Destroy(ctx))
	}
	nodes := e.nodes()
	e.Say("a control plane and %d members with %d nodes", len(fleetMembers()), nodes)
	if _, err := f.plane.Init(ctx); err != nil {
		return nil, err
	}
	if err := f.playground.Up(ctx, len(fleetMembers()), nodes); err != nil {
		return nil, err
	}
	for _, name := range fleetMembers()[:2] {
		if _, err := f.plane.Run(ctx, "", f.plane.JoinArgs(f.playground, name, name)...); err != nil {
			return nil, err
		}
	}
	args, err := f.plane.RegisterArgs(ctx, f.playground, f.agent.Cluster, f.agent)
	if err != nil {
		return nil, err
	}
	if _, err := f.plane.Run(ctx, "", args...); err != nil {
		return nil, err
	}
	return f, nil
}

// nodes is how many nodes a member needs for the pods of all that scenarios propagate, twice for the floor, and some
// to spare.
func (e *Env) nodes() int {
	const podsPerNode, replicas = 110, 2
	return e.largest()*replicas/podsPerNode + 5
}

func (e *Env) largest() int {
	largest := 0
	for _, n := range e.Sizes {
		largest = max(largest, n)
	}
	return largest
}

// everywhere applies a template in the control plane, or in the members.
func applyTemplate(ctx context.Context, targets []*load.Target, name string, replace ...string) error {
	u, err := load.Template(name, replace...)
	if err != nil {
		return err
	}
	for _, t := range targets {
		if err := t.Apply(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

// watchDeployments follows the Deployments of a namespace on several API servers.
func watchDeployments(
	ctx context.Context, targets []*load.Target, namespace string, checks map[string]func(*unstructured.Unstructured) bool,
) ([]*load.Watch, error) {
	var watches []*load.Watch
	for _, t := range targets {
		w, err := t.Watch(ctx, load.Deployments(), namespace, checks)
		if err != nil {
			return nil, err
		}
		watches = append(watches, w)
	}
	return watches, nil
}

// Checks of Deployments.
const (
	present = "there"
	ready   = "ready"
)

// readyReplicas counts what a Deployment's status says.
func readyReplicas(want int64) func(*unstructured.Unstructured) bool {
	return func(u *unstructured.Unstructured) bool {
		n, _, err := unstructured.NestedInt64(u.Object, "status", "readyReplicas")
		return err == nil && n == want
	}
}

func anyState(*unstructured.Unstructured) bool { return true }

// createEverywhere creates the same objects in all members, so many at a time altogether.
func createEverywhere(ctx context.Context, members []*load.Target, count int, object func(int) *unstructured.Unstructured) error {
	group, ctx := errgroup.WithContext(ctx)
	each := concurrently / len(members)
	for _, m := range members {
		group.Go(func() error { return m.Create(ctx, count, each, object) })
	}
	return group.Wait()
}

// processes are those of the fleet, by what they are: the control plane's own, and the members'.
func (f *fleet) processes() (own, members []Watched, err error) {
	if f.plane.Dir == "" {
		return nil, nil, nil
	}
	for _, dir := range []string{f.plane.Dir, f.agent.Dir} {
		running, err := rig.FindProcesses(dir)
		if err != nil {
			return nil, nil, err
		}
		for _, p := range running {
			own = append(own, Watched{PID: p.PID, Name: p.Role()})
		}
	}
	running, err := rig.FindProcesses(f.playground.Dir)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range running {
		members = append(members, Watched{PID: p.PID, Name: strings.TrimSpace("member " + p.Role())})
	}
	return own, members, nil
}

// A meter takes what a fleet uses and writes between two moments.
type meter struct {
	fleet        *fleet
	own, members []Watched
	ownCPU       []time.Duration
	membersCPU   []time.Duration
	writes       load.Writes
	begin        time.Time
}

func (f *fleet) meter(ctx context.Context) (*meter, error) {
	m := &meter{fleet: f, begin: time.Now()}
	var err error
	if m.own, m.members, err = f.processes(); err != nil {
		return nil, err
	}
	if m.ownCPU, err = cpuTimes(m.own); err != nil {
		return nil, err
	}
	if m.membersCPU, err = cpuTimes(m.members); err != nil {
		return nil, err
	}
	m.writes, err = f.control.Writes(ctx)
	return m, err
}

// report adds what was used and written since the meter was made. objects is what the writes are divided by; created is
// how many of the writes are the load itself. It returns the writes.
func (m *meter) report(ctx context.Context, e *Env, label string, objects, created int) (load.Writes, error) {
	writes, err := m.fleet.control.Writes(ctx)
	if err != nil {
		return nil, err
	}
	events := writes.EventsSince(m.writes)
	writes = writes.Since(m.writes)
	if objects > 0 {
		e.Add(label+": events per object", Count, events/float64(objects))
		e.Add(label+": writes per object", Count, (writes.Total()-float64(created))/float64(objects))
	} else {
		e.Add(label+": writes", Count, writes.Total()-float64(created))
	}
	for _, kind := range writes.Kinds() {
		e.Add(label+":   "+kind.String(), Count, writes[kind])
	}
	if len(m.own) == 0 {
		return writes, nil
	}
	total := 0.0
	after, err := cpuTimes(m.own)
	if err != nil {
		return nil, err
	}
	for i, w := range m.own {
		used := (after[i] - m.ownCPU[i]).Seconds()
		total += used
		memory, err := memory(w.PID)
		if err != nil {
			return nil, fmt.Errorf("measure %s: %w", w.Name, err)
		}
		e.Add(label+":   CPU, "+w.Name, Seconds, used)
		e.Add(label+":   peak RSS, "+w.Name, MiB, memory.Peak/mebi)
	}
	e.Add(label+": CPU of the control plane", Seconds, total)
	if after, err = cpuTimes(m.members); err != nil {
		return nil, err
	}
	total = 0
	for i := range m.members {
		total += (after[i] - m.membersCPU[i]).Seconds()
	}
	e.Add(label+": CPU of the members", Seconds, total)
	return writes, nil
}
