package validate

import (
	"strings"
	"testing"
)

func TestQuotas(t *testing.T) {
	const head = `
metadata: {namespace: shop, name: q}
`
	overall := func(list string) string { return `spec: {overall: {` + list + `}}` }
	assigned := func(list string) string {
		return `spec: {overall: {cpu: 10, memory: 10Gi}, staticAssignments: [` + list + `]}`
	}
	check(t, quotas(), head, map[string]ruleCase{
		"Empty":    {reason: "Nothing is limited.", object: overall(``)},
		"Kinds":    {reason: "What a ResourceQuota limits.", object: overall(`cpu: 500m, limits.memory: 1Gi, requests.ephemeral-storage: 1, pods: 10, services.nodeports: 0, hugepages-2Mi: 4Mi, requests.hugepages-1Gi: 2Gi, count/jobs.batch: 3, example.com/gpu: 2, requests.example.com/gpu: 1`)},
		"Unknown":  {reason: "No cluster knows how to limit it.", object: overall(`apples: 3`), want: []string{`spec.overall[apples]: Invalid value: "apples"`}},
		"BadName":  {reason: "A name has no spaces.", object: overall(`"a b": 3`), want: []string{`spec.overall[a b]: Invalid value: "a b"`}},
		"Negative": {reason: "Nobody uses less than nothing.", object: overall(`cpu: -1`), want: []string{`spec.overall[cpu]: Invalid value: "-1": must be greater than or equal to 0`}},
		"Half":     {reason: "There are no half pods and devices.", object: overall(`pods: 500m, example.com/gpu: 1500m`), want: []string{`spec.overall[example.com/gpu]: Invalid value: "1500m": must be an integer`, `spec.overall[pods]: Invalid value: "500m": must be an integer`}},
		"Huge":     {reason: "A large number is a number.", object: overall(`memory: 1e100, pods: 1E`)},
		"Tiny":     {reason: "A small one is rounded up, as everywhere.", object: overall(`cpu: 1e-20`)},

		"Shares":     {reason: "Shares may be all there is.", object: assigned(`{clusterName: m1, hard: {cpu: 4}}, {clusterName: m2, hard: {cpu: 6, memory: 1Gi}}`)},
		"TooMuch":    {reason: "But not more.", object: assigned(`{clusterName: m1, hard: {cpu: 4}}, {clusterName: m2, hard: {cpu: 6001m}}`), want: []string{`spec.overall[cpu]: Invalid value: "10": overall is less than assignments…10001m`}},
		"Both":       {reason: "Each resource is summed by itself.", object: assigned(`{clusterName: m1, hard: {cpu: 11, memory: 11Gi}}`), want: []string{`spec.overall[cpu]: `, `spec.overall[memory]: `}},
		"NotOverall": {reason: "A share is of something.", object: assigned(`{clusterName: m1, hard: {pods: 1}}`), want: []string{`spec.staticAssignments[0].hard[pods]: Invalid value: "pods": assignment resourceName is not exist in overall`}},
		"BadShare":   {reason: "Shares have the same rules.", object: assigned(`{clusterName: m1, hard: {cpu: -1}}`), want: []string{`spec.staticAssignments[0].hard[cpu]: Invalid value: "-1"`}},
		"BadCluster": {reason: "No cluster has such a name.", object: assigned(`{clusterName: M_1, hard: {cpu: 1}}`), want: []string{`spec.staticAssignments[0].clusterName: Invalid value: "M_1"…invalid cluster name(M_1)`}},
		"Twice":      {reason: "Which of the two counts could not be told.", object: assigned(`{clusterName: m1, hard: {cpu: 1}}, {clusterName: m1, hard: {cpu: 2}}`), want: []string{`spec.staticAssignments[1].clusterName: Duplicate value: "m1"`}},
	})
	long := strings.Repeat("a", 63)
	check(t, quotas(), "", map[string]ruleCase{
		"AsLong": {reason: "So long may the value of a label be.", object: `{metadata: {name: ` + long + `}, spec: {overall: {}}}`},
		"Longer": {reason: "No longer.", object: `{metadata: {name: ` + long + `b}, spec: {overall: {}}}`, want: []string{`metadata.name: Invalid value…must be no more than 63 characters`}},
	})
}
