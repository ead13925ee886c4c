package interpreter

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
)

func service() kind {
	return kind{
		retain: retainService,
		healthy: func(o map[string]any) (bool, error) {
			balanced, err := isLoadBalancer(o)
			if err != nil || !balanced {
				return err == nil, err
			}
			return hasAddress(o)
		},
		status: func(o map[string]any) (map[string]any, error) {
			balanced, err := isLoadBalancer(o)
			if err != nil || !balanced {
				return nil, err
			}
			return loadBalancerOf(o)
		},
		aggregate: func(template, status map[string]any, reports []report) error {
			balanced, err := isLoadBalancer(template)
			if err != nil || !balanced {
				return err
			}
			return aggregateAddresses(status, reports, func(entry map[string]any) {
				if !isZero(entry["ip"]) && isZero(entry["ipMode"]) {
					entry["ipMode"] = string(corev1.LoadBalancerIPModeVIP) // as servers do that know the field
				}
			})
		},
	}
}

func ingress() kind {
	return kind{
		healthy:      hasAddress,
		dependencies: ingressDependencies,
		aggregate: func(_, status map[string]any, reports []report) error {
			return aggregateAddresses(status, reports, func(map[string]any) {})
		},
	}
}

func isLoadBalancer(o map[string]any) (bool, error) {
	t, err := orZero[string](o, "spec", "type")
	return t == string(corev1.ServiceTypeLoadBalancer), err
}

// retainService keeps what the cluster has allocated. One that becomes a name of
// something elsewhere must give its address back.
func retainService(desired, observed map[string]any) error {
	port, err := orZero[int64](observed, "spec", "healthCheckNodePort")
	if err != nil {
		return err
	}
	ip, err := orZero[string](observed, "spec", "clusterIP")
	if err != nil {
		return err
	}
	t, err := orZero[string](desired, "spec", "type")
	if err != nil {
		return err
	}
	if port > 0 {
		err = keep(desired, observed, "spec", "healthCheckNodePort")
	}
	if ip != "" && t != string(corev1.ServiceTypeExternalName) {
		err = errors.Join(err, keep(desired, observed, "spec", "clusterIP"))
	}
	return err
}

// loadBalancerOf returns the part of a status with addresses, nothing when there
// are none.
func loadBalancerOf(o map[string]any) (map[string]any, error) {
	balancer, err := orZero[map[string]any](o, "status", "loadBalancer")
	if err != nil || isZero(balancer) {
		return nil, err
	}
	return map[string]any{"loadBalancer": balancer}, nil
}

// hasAddress says whether what is behind a load balancer can be reached.
func hasAddress(o map[string]any) (bool, error) {
	list, err := objects(o, "status", "loadBalancer", "ingress")
	return slices.ContainsFunc(list, func(entry map[string]any) bool {
		return !isZero(entry["hostname"]) || !isZero(entry["ip"])
	}), err
}

// aggregateAddresses lists the addresses in all clusters, each once.
func aggregateAddresses(status map[string]any, reports []report, complete func(entry map[string]any)) error {
	type address struct {
		ip, hostname, whole string
		entry               any
	}
	var all []address
	for _, r := range reports {
		list, err := objects(r.status, "loadBalancer", "ingress")
		if err != nil {
			return fmt.Errorf("status of cluster %s: %w", r.cluster, err)
		}
		for _, entry := range list {
			complete(entry)
			whole, err := json.Marshal(entry)
			if err != nil {
				return fmt.Errorf("status of cluster %s: %w", r.cluster, err)
			}
			ip, _ := entry["ip"].(string)
			hostname, _ := entry["hostname"].(string)
			all = append(all, address{ip: ip, hostname: hostname, whole: string(whole), entry: entry})
		}
	}
	slices.SortFunc(all, func(a, b address) int {
		return cmp.Or(cmp.Compare(a.ip, b.ip), cmp.Compare(a.hostname, b.hostname), cmp.Compare(a.whole, b.whole))
	})
	all = slices.CompactFunc(all, func(a, b address) bool { return a.whole == b.whole })

	balancer, err := orZero[map[string]any](status, "loadBalancer")
	if err != nil {
		return err
	}
	if balancer == nil {
		balancer = map[string]any{}
	}
	var entries []any
	for _, a := range all {
		entries = append(entries, a.entry)
	}
	setList(balancer, "ingress", entries)
	status["loadBalancer"] = balancer
	return nil
}

// ingressDependencies are the certificates.
func ingressDependencies(o map[string]any) ([]configv1alpha1.DependentObjectReference, error) {
	tls, err := objects(o, "spec", "tls")
	if err != nil {
		return nil, err
	}
	secrets := map[string]bool{}
	for _, entry := range tls {
		name, err := orZero[string](entry, "secretName")
		if err != nil {
			return nil, fmt.Errorf("spec.tls: %w", err)
		}
		secrets[name] = true
	}
	namespace, err := orZero[string](o, "metadata", "namespace")
	if err != nil {
		return nil, err
	}
	return references("v1", "Secret", namespace, secrets), nil
}

func serviceImport() kind {
	return kind{dependencies: serviceImportDependencies}
}

// serviceImportDependencies are the Service that stands for the import, and where
// that leads.
func serviceImportDependencies(o map[string]any) ([]configv1alpha1.DependentObjectReference, error) {
	name, err := orZero[string](o, "metadata", "name")
	if err != nil {
		return nil, err
	}
	namespace, err := orZero[string](o, "metadata", "namespace")
	if err != nil {
		return nil, err
	}
	derived := "derived-" + name
	return []configv1alpha1.DependentObjectReference{
		{APIVersion: "v1", Kind: "Service", Namespace: namespace, Name: derived},
		{
			APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice", Namespace: namespace,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{discoveryv1.LabelServiceName: derived}},
		},
	}, nil
}
