package admission

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/test/fleetrig"
)

// configurations are what tells the API server where the webhook is: two for admission, two for versions.
func configurations(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	return []*unstructured.Unstructured{
		fleetrig.Object(t, `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: mutating-config}}`),
		fleetrig.Object(t, `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: validating-config}}`),
		fleetrig.Object(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: resourcebindings.work.karmada.io}}`),
		fleetrig.Object(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: clusterresourcebindings.work.karmada.io}}`),
	}
}

// clientConfigs are the parts of a configuration that have the webhook's address.
func clientConfigs(u *unstructured.Unstructured) ([]map[string]any, error) {
	if hooks, ok := u.Object["webhooks"].([]any); ok {
		var all []map[string]any
		for i := range hooks {
			c, err := at(hooks[i], "clientConfig")
			if err != nil {
				return nil, err
			}
			all = append(all, c.(map[string]any))
		}
		return all, nil
	}
	c, err := at(u.Object, "spec", "conversion", "webhook", "clientConfig")
	if err != nil {
		return nil, err
	}
	return []map[string]any{c.(map[string]any)}, nil
}

// webhookAddress is host and port of the webhook.
func webhookAddress(t *testing.T) string {
	t.Helper()
	u := shared.Control.Await(t, configurations(t)[0], "it is installed", fleetrig.IsThere)
	all, err := clientConfigs(u)
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(fmt.Sprint(all[0]["url"]))
	if err != nil {
		t.Fatal(err)
	}
	return address.Host
}

// lead makes the API server look for the webhook at another address.
func lead(t *testing.T, address string) {
	t.Helper()
	reconfigure(t, configurations(t), "names another address", func(c map[string]any) error {
		at, err := url.Parse(fmt.Sprint(c["url"]))
		if err != nil {
			return err
		}
		at.Host = address
		c["url"] = at.String()
		return nil
	})
}

// reconfigure changes what configurations say of the webhook.
func reconfigure(t *testing.T, configurations []*unstructured.Unstructured, what string, change func(clientConfig map[string]any) error) {
	t.Helper()
	for _, u := range configurations {
		fleetrig.Eventually(t, u.GetName()+" "+what, func() error {
			now, err := shared.Control.Get(t.Context(), u)
			if err != nil || now == nil {
				return fmt.Errorf("get it: %w", err)
			}
			all, err := clientConfigs(now)
			if err != nil {
				return err
			}
			for _, c := range all {
				if err := change(c); err != nil {
					return err
				}
			}
			r, err := shared.Control.Resource(u)
			if err != nil {
				return err
			}
			_, err = r.Update(t.Context(), now, metav1.UpdateOptions{})
			return err
		})
	}
}

// nobody is an address where connections are refused.
func nobody(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

// silence is an address where connections are accepted, and nothing is ever answered.
func silence(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var (
		mu   sync.Mutex
		held []net.Conn
		done sync.WaitGroup
	)
	done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // the test has ended
			}
			mu.Lock()
			held = append(held, c)
			mu.Unlock()
		}
	})
	t.Cleanup(func() {
		errs := []error{l.Close()}
		done.Wait()
		for _, c := range held {
			errs = append(errs, c.Close())
		}
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

func configMapPolicy(t *testing.T, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	return fleetrig.Object(t, fmt.Sprintf(`{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {namespace: %s, name: %s}, spec: {
		resourceSelectors: [{apiVersion: v1, kind: ConfigMap, labelSelector: {matchLabels: {policy: %[2]s}}}], placement: {}}}`, namespace, name))
}

// renewals are the times at which the leases of a namespace were renewed.
func renewals(t *testing.T, namespace string) (map[string]string, error) {
	t.Helper()
	r, err := shared.Control.Resource(fleetrig.Object(t, `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {namespace: `+namespace+`}}`))
	if err != nil {
		return nil, err
	}
	list, err := r.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	times := map[string]string{}
	for _, l := range list.Items {
		times[l.GetName()], _, _ = unstructured.NestedString(l.Object, "spec", "renewTime")
	}
	return times, nil
}

// TestAway checks that all goes on that does not need the webhook while it does not answer, the control plane's own
// stop and start above all. start puts right what this test changes.
func TestAway(t *testing.T) {
	cases := map[string]struct {
		reason  string
		address func(*testing.T) string
	}{
		"refuses": {reason: "The webhook's process is not there.", address: nobody},
		"silent":  {reason: "The webhook is cut off: each question to it takes as long as the API server waits.", address: silence},
	}
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range cases {
			if !yield(name) {
				return
			}
		}
	}) {
		t.Run(name, func(t *testing.T) {
			t.Log(cases[name].reason)
			goesOn(t, "away-"+name, cases[name].address(t))
		})
	}
}

func goesOn(t *testing.T, namespace, address string) {
	home := webhookAddress(t)
	makeNamespace(t, namespace)
	settings := func(name, value string) *unstructured.Unstructured {
		u := fleetrig.ConfigMap(t, namespace, name, value)
		u.SetLabels(map[string]string{"policy": "before"})
		return u
	}
	policy := created(t, configMapPolicy(t, namespace, "before"))
	created(t, settings("old", "v"))
	there := shared.Members[0]
	there.Await(t, settings("old", ""), "it is propagated", fleetrig.HoldsValue("v"))
	protected := created(t, fleetrig.ConfigMap(t, namespace, "kept", "v"))
	protect(t, shared.Control, protected, names.DeletionProtectedAlways)

	lead(t, address)
	fleetrig.Eventually(t, "policies are refused, since nobody checks them", func() error {
		late, err := create(t, configMapPolicy(t, namespace, "late"))
		if err != nil {
			says(t, "the API server says whom it could not ask", err, `failed calling webhook "propagationpolicy.karmada.io"`)
			return nil
		}
		if err := remove(t, late); err != nil {
			return err
		}
		fleetrig.Eventually(t, "it goes", func() error {
			got, err := shared.Control.Get(t.Context(), late)
			return errors.Join(err, fleetrig.IsGone(got))
		})
		return errors.New("it was accepted: the API server has not heard of the new address yet")
	})
	err := remove(t, protected)
	says(t, "what is protected stays", err, `failed calling webhook "resourcedeletionprotection.karmada.io"`)

	created(t, settings("new", "v"))
	there.Await(t, settings("new", ""), "what is new is propagated", fleetrig.HoldsValue("v"))
	shared.Control.Patch(t, settings("old", ""), `{"data":{"value":"w"}}`)
	there.Await(t, settings("old", ""), "what changes is changed", fleetrig.HoldsValue("w"))
	if err := remove(t, settings("new", "")); err != nil {
		t.Error(err)
	}
	there.Await(t, settings("new", ""), "what is deleted goes", fleetrig.IsGone)

	before, err := renewals(t, metav1.NamespaceSystem)
	if err != nil || len(before) == 0 {
		t.Fatalf("want a lease, got %v, %v", before, err)
	}
	fleetrig.Eventually(t, "leases are renewed", func() error {
		now, err := renewals(t, metav1.NamespaceSystem)
		if err != nil {
			return err
		}
		for name, at := range now {
			if before[name] != "" && before[name] != at {
				return nil
			}
		}
		return fmt.Errorf("none of %v is", now)
	})

	space := makeNamespace(t, namespace+"-short")
	there.Await(t, space, "a new namespace is propagated", fleetrig.IsThere)
	created(t, fleetrig.ConfigMap(t, space.GetName(), "c", "v"))
	if err := remove(t, space); err != nil {
		t.Fatal(err)
	}
	shared.Control.Await(t, space, "a namespace goes", fleetrig.IsGone)
	there.Await(t, space, "a namespace goes", fleetrig.IsGone)
	if err := remove(t, policy); err != nil {
		t.Fatal(err)
	}
	shared.Control.Await(t, policy, "a policy loses its finalizer and goes", fleetrig.IsGone)

	if err := shared.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := shared.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	shared.Healthy(t, "the control plane has started")
	if now := webhookAddress(t); now != home {
		t.Errorf("start leads to %s, want %s", now, home)
	}
	shared.Control.Create(t, configMapPolicy(t, namespace, "after"))
	protect(t, shared.Control, protected, "")
	if err := remove(t, fleetrig.Object(t, `{apiVersion: v1, kind: Namespace, metadata: {name: `+namespace+`}}`)); err != nil {
		t.Error(err)
	}
}
