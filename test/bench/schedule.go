package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karmadactl/karmadactl/test/bench/load"
	"github.com/karmadactl/karmadactl/test/chaos/rig"
)

const (
	// scheduleNodes is how many nodes each of three members has.
	scheduleNodes = 100
	// wideClusters is how many clusters there are that are objects only, and wideShare which part of the bindings of the
	// three members they get.
	wideClusters = 100
	wideShare    = 5
	// singles is how many bindings are scheduled one by one.
	singles = 100
)

// schedule measures how fast bindings are decided about that divide their replicas by the room of clusters: many at once
// on three members, and on a hundred clusters; and how long a single one waits. The control plane runs without its
// controllers, so that nothing is rendered, and the scheduler as a role of its own.
func schedule(ctx context.Context, e *Env) (err error) {
	p, err := rig.NewPlane(e.Binaries, filepath.Join(e.Dir, "schedule-plane"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Destroy(context.WithoutCancel(ctx))) }()
	if err := e.planeWithMembers(ctx, p); err != nil {
		return err
	}
	without, err := startRole(ctx, e, "plane", "--data-dir="+p.Dir, "--without=karmada-controller-manager,karmada-scheduler")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, without.stop()) }()
	control, err := openWhenServed(ctx, p)
	if err != nil {
		return err
	}
	s := &scheduling{e: e, plane: p, control: control, server: Watched{PID: without.cmd.Process.Pid, Name: "plane"}}
	if err := s.many(ctx, "few", "DoesNotExist", fmt.Sprintf("%d members", len(fleetMembers())), e.Placements); err != nil {
		return err
	}
	return s.wide(ctx)
}

// planeWithMembers makes a control plane that knows three members with their nodes, and stops it.
func (e *Env) planeWithMembers(ctx context.Context, p rig.Plane) (err error) {
	g := rig.NewPlayground(e.Binaries, filepath.Join(e.Dir, "schedule-members"))
	// Nobody asks members for anything once it is known what they have.
	defer func() { err = errors.Join(err, g.Destroy(context.WithoutCancel(ctx))) }()
	e.Say("a control plane and %d members with %d nodes", len(fleetMembers()), scheduleNodes)
	if _, err := p.Init(ctx); err != nil {
		return err
	}
	if err := g.Up(ctx, len(fleetMembers()), scheduleNodes); err != nil {
		return err
	}
	for _, name := range fleetMembers() {
		if _, err := p.Run(ctx, "", p.JoinArgs(g, name, name)...); err != nil {
			return err
		}
		_, err := p.WaitCluster(ctx, name, "has its nodes", func(c rig.Cluster) error {
			if c.Status.NodeSummary.ReadyNum < scheduleNodes {
				return fmt.Errorf("%d nodes are ready", c.Status.NodeSummary.ReadyNum)
			}
			return rig.IsReady("True")(c)
		})
		if err != nil {
			return err
		}
	}
	return p.Stop(ctx)
}

// openWhenServed returns the API server once it serves what is measured.
func openWhenServed(ctx context.Context, p rig.Plane) (control *load.Target, err error) {
	err = rig.Eventually(ctx, "the API server serves bindings and clusters", func() error {
		control, err = load.Open("the control plane", p.Kubeconfig())
		if err != nil {
			return err
		}
		return errors.Join(control.Serves(bindingResource()), control.Serves(clusterResource()))
	})
	return control, err
}

// A scheduling is what the parts of the scenario share.
type scheduling struct {
	e       *Env
	plane   rig.Plane
	control *load.Target
	server  Watched // API server, its etcd and the webhook
}

// placed counts the bindings about which the scheduler has said all that there is to say.
const placed = "scheduled"

func isPlaced(u *unstructured.Unstructured) bool {
	clusters, _, err := unstructured.NestedSlice(u.Object, "spec", "clusters")
	if err != nil || len(clusters) == 0 {
		return false
	}
	conditions, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	return err == nil && slices.ContainsFunc(conditions, func(c any) bool {
		m, ok := c.(map[string]any)
		return ok && m["type"] == "Scheduled" && m["status"] == "True"
	})
}

// hasClusters counts the bindings that have been decided about.
func hasClusters(u *unstructured.Unstructured) bool {
	clusters, _, err := unstructured.NestedSlice(u.Object, "spec", "clusters")
	return err == nil && len(clusters) > 0
}

// binding returns what makes bindings for clusters with the label of the wide ones, or without it.
func (s *scheduling) binding(namespace, operator string) (func(i int) *unstructured.Unstructured, error) {
	u, err := load.Template("scheduledbinding", "NAMESPACE", namespace, "WIDE", operator)
	if err != nil {
		return nil, err
	}
	return load.Numbered(u), nil
}

// start starts the scheduler, as who it is in the control plane: the webhook is not asked about what it writes.
func (s *scheduling) start(ctx context.Context) (*role, error) {
	return startRole(ctx, s.e, "karmada-scheduler", "--kubeconfig="+filepath.Join(s.plane.Dir, "kubeconfig", "karmada-controller-manager.config"),
		"--leader-elect=false", "--health-probe-bind-address=0", "--metrics-bind-address=0")
}

// many creates bindings while there is no scheduler, starts one, and measures from the first decision to the last.
func (s *scheduling) many(ctx context.Context, namespace, operator, label string, count int) (err error) {
	e := s.e
	label = fmt.Sprintf("%d bindings on %s", count, label)
	e.Say("%s", label)
	if err := s.create(ctx, namespace, operator, count); err != nil {
		return err
	}
	watched, stop := context.WithCancel(ctx)
	defer stop()
	bindings, err := s.control.Watch(watched, bindingResource(), namespace, map[string]func(*unstructured.Unstructured) bool{placed: isPlaced})
	if err != nil {
		return err
	}
	before, err := s.control.Writes(ctx)
	if err != nil {
		return err
	}
	serverBefore, err := cpuTimes([]Watched{s.server})
	if err != nil {
		return err
	}
	begin := time.Now()
	r, err := s.start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	if err := bindings.AtLeast(ctx, placed, 1); err != nil {
		return err
	}
	first := time.Now()
	if err := bindings.AtLeast(ctx, placed, count); err != nil {
		return err
	}
	took := time.Since(first)
	e.Add(label+": until the first decision", Seconds, first.Sub(begin).Seconds())
	e.Add(label, Seconds, took.Seconds())
	e.Add(scheduleFigure(operator), Millis, took.Seconds()*1000/float64(count))
	e.Note("%s: %.0f bindings a second", label, float64(count)/took.Seconds())
	after, err := s.control.Writes(ctx)
	if err != nil {
		return err
	}
	writes := after.Since(before)
	e.Add(label+": writes per binding", Count, writes.Total()/float64(count))
	serverAfter, err := cpuTimes([]Watched{s.server})
	if err != nil {
		return err
	}
	e.Add(label+": CPU of the API server", Seconds, (serverAfter[0] - serverBefore[0]).Seconds())
	return s.usage(label, r)
}

// usage adds what the scheduler has used since it began.
func (s *scheduling) usage(label string, r *role) error {
	cpu, err := cpuTimes([]Watched{{PID: r.cmd.Process.Pid, Name: "karmada-scheduler"}})
	if err != nil {
		return err
	}
	u, err := memory(r.cmd.Process.Pid)
	if err != nil {
		return err
	}
	s.e.Add(label+": CPU of the scheduler", Seconds, cpu[0].Seconds())
	s.e.Add(label+": peak RSS of the scheduler", MiB, u.Peak/mebi)
	return nil
}

func (s *scheduling) create(ctx context.Context, namespace, operator string, count int) error {
	if err := applyTemplate(ctx, []*load.Target{s.control}, "namespace", "NAMESPACE", namespace); err != nil {
		return err
	}
	object, err := s.binding(namespace, operator)
	if err != nil {
		return err
	}
	return s.control.Create(ctx, count, concurrently, object)
}

// wide measures with many clusters, which are objects only.
func (s *scheduling) wide(ctx context.Context) (err error) {
	e := s.e
	if err := removeNamespace(ctx, e, []*load.Target{s.control}, "few"); err != nil {
		return err
	}
	e.Say("%d clusters", wideClusters)
	cluster, err := load.Template("cluster")
	if err != nil {
		return err
	}
	if err := s.control.CreateWithStatus(ctx, wideClusters, concurrently, load.Numbered(cluster)); err != nil {
		return err
	}
	if err := s.many(ctx, "wide", "Exists", fmt.Sprintf("%d clusters", wideClusters), max(1, e.Placements/wideShare)); err != nil {
		return err
	}
	r, err := s.start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	for _, one := range []struct{ operator, label string }{
		{"DoesNotExist", fmt.Sprintf("%d members", len(fleetMembers()))}, {"Exists", fmt.Sprintf("%d clusters", wideClusters)},
	} {
		if err := s.single(ctx, one.operator, one.label); err != nil {
			return err
		}
	}
	return nil
}

// single measures how long bindings wait that come one by one: from the request that creates each until its clusters can
// be seen.
func (s *scheduling) single(ctx context.Context, operator, label string) error {
	const namespace = "single"
	e := s.e
	if err := applyTemplate(ctx, []*load.Target{s.control}, "namespace", "NAMESPACE", namespace); err != nil {
		return err
	}
	object, err := s.binding(namespace, operator)
	if err != nil {
		return err
	}
	watched, stop := context.WithCancel(ctx)
	defer stop()
	bindings, err := s.control.Watch(watched, bindingResource(), namespace, map[string]func(*unstructured.Unstructured) bool{placed: hasClusters})
	if err != nil {
		return err
	}
	// The first one waits until the scheduler has started; it does not count.
	if err := s.control.Create(ctx, 1, 1, object); err != nil {
		return err
	}
	if err := bindings.Until(ctx, placed, 1); err != nil {
		return err
	}
	if err := pause(ctx, e.Settle); err != nil {
		return err
	}
	e.Say("%d bindings on %s, one by one", singles, label)
	took := make([]float64, 0, singles)
	for i := 1; i <= singles; i++ {
		begin := time.Now()
		if err := s.control.Create(ctx, 1, 1, func(int) *unstructured.Unstructured { return object(i) }); err != nil {
			return err
		}
		if err := bindings.Until(ctx, placed, i+1); err != nil {
			return err
		}
		took = append(took, float64(time.Since(begin).Microseconds())/1000)
		e.Add("a single binding on "+label, Millis, took[len(took)-1])
	}
	slices.Sort(took)
	e.Add("a single binding on "+label+": p99", Millis, took[len(took)*99/100-1])
	return removeNamespace(ctx, e, []*load.Target{s.control}, namespace)
}

func scheduleFigure(operator string) string {
	if operator == "Exists" {
		return scheduleWide
	}
	return scheduleEach
}
