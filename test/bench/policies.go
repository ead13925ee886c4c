package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/karmadactl/karmadactl/test/bench/load"
)

// matchRuns is how many Deployments are created for each number of policies, one after the other.
const matchRuns = 50

// policies measures how long a new Deployment waits for its policy, beside many policies for others.
func policies(ctx context.Context, e *Env) error {
	const namespace = "policies"
	f, err := e.Fleet(ctx)
	if err != nil {
		return err
	}
	control := []*load.Target{f.control}
	if err := applyTemplate(ctx, control, "namespace", "NAMESPACE", namespace); err != nil {
		return err
	}
	policy, err := load.Template("namedpolicy", "NAMESPACE", namespace)
	if err != nil {
		return err
	}
	object, err := load.Template("deployment", "NAMESPACE", namespace)
	if err != nil {
		return err
	}
	watched, stop := context.WithCancel(ctx)
	defer stop()
	bindings, err := f.control.Watch(watched, schema.GroupVersionResource{Group: "work.karmada.io", Version: "v1alpha2", Resource: "resourcebindings"},
		namespace, map[string]func(*unstructured.Unstructured) bool{present: anyState})
	if err != nil {
		return err
	}
	made, created := 0, 0
	for _, count := range []int{1000, 5000, 10000} {
		e.Say("%d policies", count)
		from := made
		err := f.control.Create(ctx, count-made, concurrently, func(i int) *unstructured.Unstructured {
			p := policy.DeepCopy()
			p.SetName(fmt.Sprintf("web-%d", from+i))
			selectors := []any{map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": p.GetName()}}
			if err := unstructured.SetNestedSlice(p.Object, selectors, "spec", "resourceSelectors"); err != nil {
				return policy // which fails to be created a second time
			}
			return p
		})
		if err != nil {
			return err
		}
		made = count
		if err := pause(ctx, e.Settle); err != nil {
			return err
		}
		for range matchRuns {
			begin := time.Now()
			d := object.DeepCopy()
			d.SetName(fmt.Sprintf("web-%d", created))
			if err := f.control.Create(ctx, 1, 1, func(int) *unstructured.Unstructured { return d }); err != nil {
				return err
			}
			created++
			if err := bindings.Until(ctx, present, created); err != nil {
				return err
			}
			e.Add(fmt.Sprintf("from a Deployment to its binding, %d policies", count), Millis, float64(time.Since(begin).Microseconds())/1000)
		}
	}
	return removeNamespace(ctx, e, control, namespace)
}
