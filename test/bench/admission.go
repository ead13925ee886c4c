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
	// admissionRate is how many requests a second there are.
	admissionRate = 200
	// admissionWarmUp is how many come first and are not measured.
	admissionWarmUp = 200
	// admissionBound is a bucket of the API server's metrics, and what 99 of 100 calls should be within.
	admissionBound = 5 * time.Millisecond
)

// admission measures what it costs that the API server asks the webhook: at the webhook, with reviews such as the API
// server sends, and as the API server itself counts while users' requests come in.
func admission(ctx context.Context, e *Env) (err error) {
	kubeconfig := e.Control
	if kubeconfig == "" {
		p, planeErr := rig.NewPlane(e.Binaries, filepath.Join(e.Dir, "admission"))
		if planeErr != nil {
			return planeErr
		}
		defer func() { err = errors.Join(err, p.Destroy(context.WithoutCancel(ctx))) }()
		e.Say("start a control plane")
		if _, err := p.Init(ctx); err != nil {
			return err
		}
		kubeconfig = p.Kubeconfig()
	}
	control, err := load.Open("the control plane", kubeconfig)
	if err != nil {
		return err
	}
	if err := pause(ctx, e.Settle); err != nil {
		return err
	}
	if err := admissionAtWebhook(ctx, e, control); err != nil {
		return err
	}
	return admissionThroughServer(ctx, e, control)
}

// admissionAtWebhook asks the webhook itself, over TLS.
func admissionAtWebhook(ctx context.Context, e *Env, control *load.Target) error {
	hooks, err := control.Webhooks(ctx)
	if err != nil {
		return err
	}
	for _, ask := range []struct{ kind, name, template string }{
		{"admit", "propagationpolicy.karmada.io", "namedpolicy"},
		{"validating", "propagationpolicy.karmada.io", "namedpolicy"},
		{"validating", "overridepolicy.karmada.io", "overridepolicy"},
		{"admit", "work.karmada.io", "work"},
	} {
		i := slices.IndexFunc(hooks, func(h load.Webhook) bool { return h.Type == ask.kind && h.Name == ask.name })
		if i < 0 {
			e.Note("there is no webhook %s (%s)", ask.name, ask.kind)
			continue
		}
		object, err := load.Template(ask.template, "NAMESPACE", "default", "WAVE", "1")
		if err != nil {
			return err
		}
		if ask.kind == "validating" {
			if err := fillIn(object); err != nil {
				return err
			}
		}
		if err := e.atRate(ctx, fmt.Sprintf("%s %s, at the webhook", ask.kind, ask.name), load.Numbered(object), hooks[i].Review); err != nil {
			return err
		}
	}
	return nil
}

// fillIn does to a policy what the webhooks do that come before those that check it.
func fillIn(policy *unstructured.Unstructured) error {
	policy.SetLabels(map[string]string{"propagationpolicy.karmada.io/permanent-id": "7a9e0f4c-6a3b-4f6e-9a53-3f9f1c0a2b11"})
	selectors, _, err := unstructured.NestedSlice(policy.Object, "spec", "resourceSelectors")
	if err != nil {
		return fmt.Errorf("read the selectors of %s: %w", policy.GetName(), err)
	}
	for _, s := range selectors {
		if selector, ok := s.(map[string]any); ok {
			selector["namespace"] = policy.GetNamespace()
		}
	}
	return unstructured.SetNestedSlice(policy.Object, selectors, "spec", "resourceSelectors")
}

// admissionThroughServer has requests admitted that store nothing, with webhooks and without.
func admissionThroughServer(ctx context.Context, e *Env, control *load.Target) error {
	plain, err := load.Template("configmap", "NAMESPACE", "default")
	if err != nil {
		return err
	}
	if err := e.atRate(ctx, "request without a webhook", load.Numbered(plain), control.Try); err != nil {
		return err
	}
	policy, err := load.Template("namedpolicy", "NAMESPACE", "default")
	if err != nil {
		return err
	}
	before, err := control.AdmissionCalls(ctx)
	if err != nil {
		return err
	}
	if err := e.atRate(ctx, "request with two webhooks", load.Numbered(policy), control.Try); err != nil {
		return err
	}
	after, err := control.AdmissionCalls(ctx)
	if err != nil {
		return err
	}
	for _, kind := range []string{"admit", "validating"} {
		key := kind + " propagationpolicy.karmada.io"
		calls := after[key].Since(before[key])
		if calls.Count == 0 {
			e.Note("the API server has not asked %s", key)
			continue
		}
		e.Add(key+", by the API server: mean", Millis, millis(calls.Mean()))
		e.Add(fmt.Sprintf("%s, by the API server: %% above %s", key, admissionBound), Count, 100*(1-calls.Within(admissionBound)))
	}
	return nil
}

// atRate does something with objects at the rate of this scenario, and adds how long it takes.
func (e *Env) atRate(ctx context.Context, name string, object func(i int) *unstructured.Unstructured, do func(context.Context, *unstructured.Unstructured) error) error {
	count := admissionRate * max(1, int(e.Idle.Seconds()))
	e.Say("%s: %d at %d/s", name, count, admissionRate)
	one := func(ctx context.Context, i int) error { return do(ctx, object(i)) }
	if _, err := load.AtRate(ctx, admissionWarmUp, admissionRate, one); err != nil {
		return err
	}
	took, err := load.AtRate(ctx, count, admissionRate, one)
	if err != nil {
		return err
	}
	e.Add(name+": p50", Millis, millis(load.Quantile(took, 0.5)))
	e.Add(name+": p99", Millis, millis(load.Quantile(took, 0.99)))
	return nil
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
