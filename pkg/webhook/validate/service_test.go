package validate

import (
	"testing"

	networkingv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/networking/v1alpha1"
)

func TestServices(t *testing.T) {
	const head = `
metadata: {namespace: shop, name: web}
`
	check(t, services(), head, map[string]ruleCase{
		"CrossCluster": {reason: "To other clusters.", object: `spec: {types: [CrossCluster], ports: [{name: http, port: 80}, {port: 443}], providerClusters: [{name: m1}], consumerClusters: [{name: m2}]}`},
		"LoadBalancer": {reason: "To the world.", object: `spec: {types: [LoadBalancer], range: {clusterNames: [m1]}}`},
		"NoType":       {reason: "Not at all.", object: `spec: {types: []}`},
		"Both":         {reason: "Two ways at once are not there.", object: `spec: {types: [CrossCluster, LoadBalancer]}`, want: []string{`spec.types: Invalid value: ["CrossCluster","LoadBalancer"]`}},
		"Unknown":      {reason: "Nor is a third.", object: `spec: {types: [NodePort]}`, want: []string{`spec.types[0]: Unsupported value: "NodePort"`}},
		"PortNumbers":  {reason: "A port is a number with two bytes.", object: `spec: {types: [], ports: [{port: 0}, {port: 65536}, {port: 65535}]}`, want: []string{`spec.ports[0].port: Invalid value: 0`, `spec.ports[1].port: Invalid value: 65536`}},
		"PortNames":    {reason: "Names tell ports apart.", object: `spec: {types: [], ports: [{name: a, port: 1}, {name: a, port: 2}, {name: A, port: 3}]}`, want: []string{`spec.ports[1].name: Duplicate value: "a"`, `spec.ports[2].name: Invalid value: "A"`}},
		"NoPortNames":  {reason: "Ports that have no names have no names in common.", object: `spec: {types: [], ports: [{port: 1}, {port: 2}]}`},
		"Clusters":     {reason: "No cluster has such a name.", object: `spec: {types: [], providerClusters: [{name: ""}], consumerClusters: [{name: m1}, {name: a.b}]}`, want: []string{`spec.providerClusters[0].name: Invalid value: ""`, `spec.consumerClusters[1].name: Invalid value: "a.b"`}},
	})
	check(t, services(), "", map[string]ruleCase{
		"Name": {reason: "It is the name of a Service.", object: `{metadata: {name: 1st}, spec: {types: []}}`, want: []string{`metadata.name: Invalid value: "1st"`}},
	})
}

func TestServiceChange(t *testing.T) {
	const crossing = `spec: {types: [CrossCluster]}`
	cases := map[string]struct {
		reason   string
		was, now string
		want     []string
	}{
		"Same":      {reason: "Nothing changes.", was: crossing, now: crossing},
		"Other":     {reason: "What was made for one type is not unmade.", was: crossing, now: `spec: {types: [LoadBalancer]}`, want: []string{`spec.types: Invalid value: ["LoadBalancer"]: MultiClusterService types are immutable`}},
		"None":      {reason: "None is another.", was: crossing, now: `spec: {types: []}`, want: []string{`spec.types: …MultiClusterService types are immutable`}},
		"Ports":     {reason: "The rest may change.", was: crossing, now: `spec: {types: [CrossCluster], ports: [{port: 1}]}`},
		"Reported":  {reason: "A load balancer has addresses or names.", was: crossing, now: crossing + "\nstatus: {loadBalancer: {ingress: [{ip: 10.0.0.1, ipMode: VIP}, {ip: \"::1\"}, {hostname: a.b}]}}"},
		"Address":   {reason: "What is none leads nowhere.", was: crossing, now: crossing + "\nstatus: {loadBalancer: {ingress: [{ip: 10.0.0}, {hostname: a_b}, {hostname: 10.0.0.1}]}}", want: []string{`status.loadBalancer.ingress[0].ip: Invalid value: "10.0.0"`, `status.loadBalancer.ingress[1].hostname: Invalid value: "a_b"`, `status.loadBalancer.ingress[2].hostname: Invalid value: "10.0.0.1"`}},
		"Mode":      {reason: "A mode is of an address, and one of two.", was: crossing, now: crossing + "\nstatus: {loadBalancer: {ingress: [{hostname: a, ipMode: VIP}, {ip: 10.0.0.1, ipMode: Foo}]}}", want: []string{`status.loadBalancer.ingress[0].ipMode: Forbidden`, `status.loadBalancer.ingress[1].ipMode: Unsupported value: "Foo"`}},
		"OldReport": {reason: "What was reported wrongly before is nobody's fault now.", was: crossing + "\nstatus: {loadBalancer: {ingress: [{ip: x}]}}", now: crossing + "\nstatus: {loadBalancer: {ingress: [{ip: x}]}}"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			was, now := object[networkingv1alpha1.MultiClusterService](t, c.was), object[networkingv1alpha1.MultiClusterService](t, c.now)
			compare(t, c.reason, services().change(was, now), c.want)
		})
	}
}
