package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karmadactl/karmadactl/test/bench/load"
)

// replicas is what each Deployment has on each member.
const replicas = 2

// propagate measures how long Deployments take from the control plane to being ready on three members, with their
// status back, beside the floor: a client that creates the same objects in the members itself.
func propagate(ctx context.Context, e *Env) error {
	f, err := e.Fleet(ctx)
	if err != nil {
		return err
	}
	for _, n := range e.Sizes {
		floor, err := propagateFloor(ctx, e, f, n)
		if err != nil {
			return err
		}
		if err := f.clear(ctx, e); err != nil {
			return err
		}
		took, err := f.propagate(ctx, e, n)
		if err != nil {
			return err
		}
		label := fmt.Sprintf("%d Deployments", n)
		e.Add(label+": present / floor", Ratio, took.present.Seconds()/floor.present.Seconds())
		e.Add(label+": ready and status back / floor", Ratio, took.status.Seconds()/floor.ready.Seconds())
	}
	return nil
}

// times are what it took until objects were on all members, ready there, and told so in the control plane.
type times struct{ present, ready, status time.Duration }

// propagateFloor creates the objects in the members, and removes them again.
func propagateFloor(ctx context.Context, e *Env, f *fleet, n int) (times, error) {
	const namespace = "floor"
	label := fmt.Sprintf("floor, %d Deployments", n)
	e.Say("%s", label)
	if err := applyTemplate(ctx, f.members, "namespace", "NAMESPACE", namespace); err != nil {
		return times{}, err
	}
	object, err := load.Template("deployment", "NAMESPACE", namespace)
	if err != nil {
		return times{}, err
	}
	watched, stop := context.WithCancel(ctx)
	defer stop()
	watches, err := watchDeployments(watched, f.members, namespace, map[string]func(*unstructured.Unstructured) bool{present: anyState, ready: readyReplicas(replicas)})
	if err != nil {
		return times{}, err
	}
	before, err := f.meter(ctx)
	if err != nil {
		return times{}, err
	}
	var t times
	begin := time.Now()
	if err := createEverywhere(ctx, f.members, n, load.Numbered(object)); err != nil {
		return times{}, err
	}
	if err := load.AllUntil(ctx, watches, present, n); err != nil {
		return times{}, err
	}
	t.present = time.Since(begin)
	e.Add(label+": present", Seconds, t.present.Seconds())
	if err := load.AllUntil(ctx, watches, ready, n); err != nil {
		return times{}, err
	}
	t.ready = time.Since(begin)
	e.Add(label+": ready", Seconds, t.ready.Seconds())
	if _, err := before.report(ctx, e, label, 0, 0); err != nil {
		return times{}, err
	}
	return t, removeNamespace(ctx, e, f.members, namespace)
}

// removeNamespace removes a namespace with its content, and waits for that.
func removeNamespace(ctx context.Context, e *Env, targets []*load.Target, namespace string) error {
	e.Say("remove namespace %s", namespace)
	u, err := load.Template("namespace", "NAMESPACE", namespace)
	if err != nil {
		return err
	}
	for _, t := range targets {
		if err := t.Remove(ctx, u); err != nil {
			return err
		}
	}
	for _, t := range targets {
		if err := t.UntilGone(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

// clear removes what was propagated.
func (f *fleet) clear(ctx context.Context, e *Env) error {
	f.propagated = 0
	if err := removeNamespace(ctx, e, []*load.Target{f.control}, benchNamespace); err != nil {
		return err
	}
	return removeNamespace(ctx, e, f.members, benchNamespace)
}

// propagate creates a policy and Deployments in the control plane, and waits until all is as it should be.
func (f *fleet) propagate(ctx context.Context, e *Env, n int) (times, error) {
	label := fmt.Sprintf("%d Deployments", n)
	e.Say("%s", label)
	control := []*load.Target{f.control}
	if err := applyTemplate(ctx, control, "namespace", "NAMESPACE", benchNamespace); err != nil {
		return times{}, err
	}
	if err := applyTemplate(ctx, control, "propagationpolicy", "NAMESPACE", benchNamespace); err != nil {
		return times{}, err
	}
	object, err := load.Template("deployment", "NAMESPACE", benchNamespace)
	if err != nil {
		return times{}, err
	}
	watched, stop := context.WithCancel(ctx)
	defer stop()
	members, err := watchDeployments(watched, f.members, benchNamespace, map[string]func(*unstructured.Unstructured) bool{present: anyState, ready: readyReplicas(replicas)})
	if err != nil {
		return times{}, err
	}
	templates, err := watchDeployments(watched, control, benchNamespace, map[string]func(*unstructured.Unstructured) bool{
		ready: readyReplicas(int64(replicas * len(f.members))),
	})
	if err != nil {
		return times{}, err
	}
	before, err := f.meter(ctx)
	if err != nil {
		return times{}, err
	}
	var t times
	begin := time.Now()
	if err := f.control.Create(ctx, n, concurrently, load.Numbered(object)); err != nil {
		return times{}, err
	}
	e.Add(label+": created", Seconds, time.Since(begin).Seconds())
	if err := load.AllUntil(ctx, members, present, n); err != nil {
		return times{}, err
	}
	t.present = time.Since(begin)
	e.Add(label+": present on all members", Seconds, t.present.Seconds())
	if err := load.AllUntil(ctx, members, ready, n); err != nil {
		return times{}, err
	}
	t.ready = time.Since(begin)
	e.Add(label+": ready on all members", Seconds, t.ready.Seconds())
	if err := load.AllUntil(ctx, templates, ready, n); err != nil {
		return times{}, err
	}
	t.status = time.Since(begin)
	e.Add(label+": status back on all templates", Seconds, t.status.Seconds())
	f.propagated = n
	_, err = before.report(ctx, e, label, n, n)
	return t, err
}

// ensure makes sure that n Deployments are propagated.
func (f *fleet) ensure(ctx context.Context, e *Env, n int) error {
	if f.propagated == n {
		return nil
	}
	if err := f.clear(ctx, e); err != nil {
		return err
	}
	_, err := f.propagate(ctx, e, n)
	return err
}

// steady measures what a control plane does and writes when nothing changes.
func steady(ctx context.Context, e *Env) error {
	f, err := e.Fleet(ctx)
	if err != nil {
		return err
	}
	if err := f.ensure(ctx, e, e.largest()); err != nil {
		return err
	}
	e.Say("idle for %s, then measured for %s", e.Settle, e.Steady)
	if err := pause(ctx, e.Settle); err != nil {
		return err
	}
	before, err := f.meter(ctx)
	if err != nil {
		return err
	}
	if err := pause(ctx, e.Steady); err != nil {
		return err
	}
	window := time.Since(before.begin)
	if len(before.own) > 0 {
		after, err := cpuTimes(before.own)
		if err != nil {
			return err
		}
		used := 0.0
		for i := range after {
			used += (after[i] - before.ownCPU[i]).Seconds()
		}
		e.Add(steadyCPU, Cores, used/window.Seconds())
	}
	writes, err := before.report(ctx, e, "steady", 0, 0)
	if err != nil {
		return err
	}
	e.Add(steadyWrites, Count, writes.Total())
	return nil
}

// overrideSize is how many objects one policy touches.
const overrideSize = 500

// override measures how long one OverridePolicy takes to be on every object of all members: when it is created, and
// when it is edited.
func override(ctx context.Context, e *Env) error {
	f, err := e.Fleet(ctx)
	if err != nil {
		return err
	}
	if err := f.ensure(ctx, e, overrideSize); err != nil {
		return err
	}
	for _, step := range []struct{ name, wave string }{{overrideCreate, "1"}, {overrideEdit, "2"}} {
		e.Say("%s, %d objects", step.name, overrideSize)
		if err := overrideOnce(ctx, e, f, step.name, step.wave); err != nil {
			return err
		}
	}
	u, err := load.Template("overridepolicy", "NAMESPACE", benchNamespace, "WAVE", "2")
	if err != nil {
		return err
	}
	return f.control.Remove(ctx, u)
}

func overrideOnce(ctx context.Context, e *Env, f *fleet, name, wave string) error {
	watched, stop := context.WithCancel(ctx)
	defer stop()
	overridden := "overridden by " + wave
	watches, err := watchDeployments(watched, f.members, benchNamespace, map[string]func(*unstructured.Unstructured) bool{
		overridden: func(u *unstructured.Unstructured) bool { return u.GetAnnotations()["example.com/wave"] == wave },
	})
	if err != nil {
		return err
	}
	before, err := f.meter(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := applyTemplate(ctx, []*load.Target{f.control}, "overridepolicy", "NAMESPACE", benchNamespace, "WAVE", wave); err != nil {
		return err
	}
	if err := load.AllUntil(ctx, watches, overridden, overrideSize); err != nil {
		return err
	}
	e.Add(name, Seconds, time.Since(begin).Seconds())
	_, err = before.report(ctx, e, name, overrideSize, 0)
	return err
}
