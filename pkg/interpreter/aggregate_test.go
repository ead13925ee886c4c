package interpreter

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

// items are what clusters m1, m2 … report, "" for nothing.
func items(t *testing.T, statuses ...string) []workv1alpha2.AggregatedStatusItem {
	t.Helper()
	var all []workv1alpha2.AggregatedStatusItem
	for i, status := range statuses {
		item := workv1alpha2.AggregatedStatusItem{ClusterName: "m" + string(rune('1'+i)), Applied: true}
		if status != "" {
			raw, err := yaml.YAMLToJSON([]byte(status))
			if err != nil {
				t.Fatal(err)
			}
			item.Status = &runtime.RawExtension{Raw: raw}
		}
		all = append(all, item)
	}
	return all
}

func benchmarkDeployment(tb testing.TB) *unstructured.Unstructured {
	tb.Helper()
	u := &unstructured.Unstructured{}
	err := u.UnmarshalJSON([]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","generation":1,"labels":{"a":"b"}},
	  "spec":{"replicas":2,"template":{"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"e","value":"v"}]}]}}},
	  "status":{"replicas":2,"readyReplicas":2,"observedGeneration":1}}`))
	if err != nil {
		tb.Fatal(err)
	}
	return u
}

func TestAggregate(t *testing.T) {
	const (
		jobStart = "2026-01-02T03:00:00Z"
		jobLater = "2026-01-02T03:01:00Z"
		jobEnd   = "2026-01-02T04:00:00Z"
		jobLast  = "2026-01-02T05:00:00Z"
		complete = `{succeeded: 1, startTime: "` + jobStart + `", completionTime: "` + jobEnd + `", conditions: [{type: SuccessCriteriaMet, status: "True"}, {type: Complete, status: "True", lastTransitionTime: "` + jobEnd + `"}]}`
		last     = `{succeeded: 2, startTime: "` + jobLater + `", completionTime: "` + jobLast + `", conditions: [{type: Complete, status: "True", lastTransitionTime: "` + jobLast + `"}]}`
		failed   = `{failed: 4, startTime: "` + jobStart + `", conditions: [{type: Failed, status: "True", lastTransitionTime: "` + jobEnd + `"}]}`
		running  = `{active: 2, failed: 1, startTime: "` + jobLater + `"}`
		isDone   = `[{type: SuccessCriteriaMet, status: "True", reason: CompletionsReached, message: All member clusters have met success criteria, lastTransitionTime: "` + jobLast + `"},
		  {type: Complete, status: "True", reason: Completed, message: Job completed, lastTransitionTime: "` + jobLast + `"}]`
	)
	cases := map[string]struct {
		reason, object string
		reports        []string
		want           string // the status
		err            string
	}{
		"Deployment": {
			"Counts are summed; conditions and what the typed API does not know stay.",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 4}, spec: {replicas: 5}, status: {replicas: 9, observedGeneration: 3, conditions: [{type: Available}], novelty: 1}}`,
			[]string{
				`{replicas: 2, readyReplicas: 2, updatedReplicas: 2, availableReplicas: 1, unavailableReplicas: 1, observedGeneration: 7, generation: 7, resourceTemplateGeneration: 4}`,
				`{replicas: 3, readyReplicas: 1, updatedReplicas: 3, availableReplicas: 1, unavailableReplicas: 2, observedGeneration: 2, generation: 2, resourceTemplateGeneration: 4}`,
			},
			`{replicas: 5, readyReplicas: 3, updatedReplicas: 5, availableReplicas: 2, unavailableReplicas: 3, observedGeneration: 4, conditions: [{type: Available}], novelty: 1}`, "",
		},
		"DeploymentOldTemplate": {
			"A cluster that has an older version has not observed this one.",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 4}, status: {observedGeneration: 3}}`,
			[]string{`{replicas: 2, observedGeneration: 1, generation: 1, resourceTemplateGeneration: 4}`, `{replicas: 1, observedGeneration: 1, generation: 1, resourceTemplateGeneration: 3}`},
			`{replicas: 3, readyReplicas: 0, updatedReplicas: 0, availableReplicas: 0, unavailableReplicas: 0, observedGeneration: 3}`, "",
		},
		"DeploymentUnseen": {
			"Nor has one whose controller has not looked at it.",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 4}, status: {observedGeneration: 3}}`,
			[]string{`{replicas: 2, observedGeneration: 1, generation: 2, resourceTemplateGeneration: 4}`},
			`{replicas: 2, readyReplicas: 0, updatedReplicas: 0, availableReplicas: 0, unavailableReplicas: 0, observedGeneration: 3}`, "",
		},
		"DeploymentSilent": {
			"Nor one that says nothing; the others count.",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 4}, status: {observedGeneration: 3}}`,
			[]string{`{replicas: 2, observedGeneration: 1, generation: 1, resourceTemplateGeneration: 4}`, ""},
			`{replicas: 2, readyReplicas: 0, updatedReplicas: 0, availableReplicas: 0, unavailableReplicas: 0, observedGeneration: 3}`, "",
		},
		"DeploymentNowhere": {
			"Where there are no clusters there are no replicas, and nobody to wait for.",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 4}, status: {replicas: 3, observedGeneration: 3}}`, nil,
			`{replicas: 0, readyReplicas: 0, updatedReplicas: 0, availableReplicas: 0, unavailableReplicas: 0, observedGeneration: 4}`, "",
		},
		"DeploymentSame": {
			"Zero and absent are the same: there is nothing to write.",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 4}, status: {replicas: 2, observedGeneration: 4}}`,
			[]string{`{replicas: 2, observedGeneration: 1, generation: 1, resourceTemplateGeneration: 4}`},
			`{replicas: 2, observedGeneration: 4}`, "",
		},
		"DeploymentBadReport": {
			"What cannot be summed is not guessed.",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}`,
			[]string{`{replicas: 2}`, `{replicas: many}`}, "", "status of cluster m2: replicas has the wrong type",
		},
		"DeploymentNoObject": {
			"A status is an object.", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}`, []string{`fine`}, "", "status of cluster m1",
		},
		"ReplicaSet": {
			"As a Deployment, with fewer counts.",
			`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a, generation: 1}}`,
			[]string{`{replicas: 2, readyReplicas: 2, availableReplicas: 1, observedGeneration: 1, generation: 1, resourceTemplateGeneration: 1}`, `{replicas: 1}`},
			`{replicas: 3, readyReplicas: 2, availableReplicas: 1}`, "",
		},
		"StatefulSet": {
			"As a Deployment: it can be told when a rollout is done.",
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, generation: 5}, status: {observedGeneration: 4}}`,
			[]string{
				`{replicas: 2, readyReplicas: 2, currentReplicas: 2, updatedReplicas: 2, availableReplicas: 2, observedGeneration: 3, generation: 3, resourceTemplateGeneration: 5}`,
				`{replicas: 1, readyReplicas: 1, currentReplicas: 1, updatedReplicas: 1, availableReplicas: 1, observedGeneration: 1, generation: 1, resourceTemplateGeneration: 5}`,
			},
			`{replicas: 3, readyReplicas: 3, currentReplicas: 3, updatedReplicas: 3, availableReplicas: 3, observedGeneration: 5}`, "",
		},
		"StatefulSetOfOldAgent": {
			"One that does not tell what it has observed is waited for.",
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, generation: 5}, status: {observedGeneration: 4}}`,
			[]string{`{replicas: 2, generation: 3, resourceTemplateGeneration: 5}`},
			`{replicas: 2, readyReplicas: 0, currentReplicas: 0, updatedReplicas: 0, availableReplicas: 0, observedGeneration: 4}`, "",
		},
		"DaemonSet": {
			"Its own counts.",
			`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a, generation: 1}}`,
			[]string{
				`{currentNumberScheduled: 1, desiredNumberScheduled: 2, numberAvailable: 3, numberMisscheduled: 4, numberReady: 5, updatedNumberScheduled: 6, numberUnavailable: 7, observedGeneration: 1, generation: 1, resourceTemplateGeneration: 1}`,
				`{currentNumberScheduled: 1, desiredNumberScheduled: 1, numberAvailable: 1, numberMisscheduled: 1, numberReady: 1, updatedNumberScheduled: 1, numberUnavailable: 1, observedGeneration: 1, generation: 1, resourceTemplateGeneration: 1}`,
			},
			`{currentNumberScheduled: 2, desiredNumberScheduled: 3, numberAvailable: 4, numberMisscheduled: 5, numberReady: 6, updatedNumberScheduled: 7, numberUnavailable: 8, observedGeneration: 1}`, "",
		},
		"Service": {
			"Addresses of all, each once, in order; conditions stay.",
			`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer}, status: {conditions: [{type: x}], loadBalancer: {ingress: [{ip: 9.9.9.9, ipMode: VIP}]}}}`,
			[]string{`{loadBalancer: {ingress: [{ip: 2.2.2.2, ipMode: Proxy}, {hostname: x.io}]}}`, `{loadBalancer: {ingress: [{ip: 1.1.1.1, ports: [{port: 80, protocol: TCP}]}, {hostname: x.io}]}}`, ""},
			`{conditions: [{type: x}], loadBalancer: {ingress: [{hostname: x.io}, {ip: 1.1.1.1, ipMode: VIP, ports: [{port: 80, protocol: TCP}]}, {ip: 2.2.2.2, ipMode: Proxy}]}}`, "",
		},
		"ServiceNoMore": {
			"An address that no cluster has any more goes.",
			`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{ip: 9.9.9.9}]}}}`,
			[]string{""}, `{loadBalancer: {}}`, "",
		},
		"ServicePlain": {
			"Without a load balancer there is nothing to aggregate.",
			`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: ClusterIP}, status: {loadBalancer: {}}}`,
			[]string{`{loadBalancer: {ingress: [{ip: 1.1.1.1}]}}`}, `{loadBalancer: {}}`, "",
		},
		"Ingress": {
			"As a Service, which has one field more.",
			`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}}`,
			[]string{`{loadBalancer: {ingress: [{ip: 2.2.2.2}]}}`, `{loadBalancer: {ingress: [{ip: 1.1.1.1}, {ip: 2.2.2.2}]}}`},
			`{loadBalancer: {ingress: [{ip: 1.1.1.1}, {ip: 2.2.2.2}]}}`, "",
		},
		"JobRunning": {
			"It has begun when it has everywhere.",
			`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {}}`, []string{running, complete, ""},
			`{active: 2, succeeded: 1, failed: 1}`, "",
		},
		"JobStarted": {
			"First where it began first.",
			`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {}}`, []string{running, complete},
			`{active: 2, succeeded: 1, failed: 1, startTime: "` + jobStart + `"}`, "",
		},
		"JobStartedBefore": {
			"A time once set stays: no server lets it be changed.",
			`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {startTime: "2025-01-01T00:00:00Z"}}`, []string{running},
			`{active: 2, succeeded: 0, failed: 1, startTime: "2025-01-01T00:00:00Z"}`, "",
		},
		"JobComplete": {
			"Everywhere; also where clusters are too old to say that criteria were met.",
			`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {ready: 1}}`, []string{complete, last},
			`{ready: 1, active: 0, succeeded: 3, failed: 0, startTime: "` + jobStart + `", completionTime: "` + jobLast + `", conditions: ` + isDone + `}`, "",
		},
		"JobNowhere": {
			"What runs nowhere is not complete.",
			`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {}}`, nil, `{}`, "",
		},
		"JobFailed": {
			"In one cluster is enough, when nothing runs in others.",
			`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {conditions: [{type: Suspended, status: "False"}]}}`, []string{failed, complete, failed},
			`{active: 0, succeeded: 1, failed: 8, startTime: "` + jobStart + `", conditions: [{type: Suspended, status: "False"},
			  {type: FailureTarget, status: "True", reason: JobFailed, message: "Job executed failed in member clusters m1,m3", lastTransitionTime: "` + jobEnd + `"},
			  {type: Failed, status: "True", reason: JobFailed, message: "Job executed failed in member clusters m1,m3", lastTransitionTime: "` + jobEnd + `"}]}`, "",
		},
		"JobWillFail": {
			"While pods run elsewhere it is said that it will: no server lets a Job that failed have active pods.",
			`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {}}`, []string{failed, running},
			`{active: 2, succeeded: 0, failed: 5, startTime: "` + jobStart + `", conditions: [
			  {type: FailureTarget, status: "True", reason: JobFailed, message: "Job executed failed in member clusters m1", lastTransitionTime: "` + jobEnd + `"}]}`, "",
		},
		"JobFailedElsewhere": {
			"What has been said to fail fails, wherever it moved.",
			`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {failed: 4, startTime: "` + jobStart + `", conditions: [{type: FailureTarget, status: "True", message: earlier}]}}`, []string{complete},
			`{active: 0, succeeded: 1, failed: 4, startTime: "` + jobStart + `", conditions: [{type: FailureTarget, status: "True", message: earlier}, {type: Failed, status: "True", reason: JobFailed, message: earlier}]}`, "",
		},
		"JobDone": {
			"What is over stays as it is.",
			`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {succeeded: 3, conditions: ` + isDone + `}}`, []string{failed, running},
			`{succeeded: 3, conditions: ` + isDone + `}`, "",
		},
		"JobMoved": {
			"What has been counted is never uncounted: no server lets it.",
			`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {active: 3, succeeded: 5, failed: 7}}`, []string{running},
			`{active: 2, succeeded: 5, failed: 7, startTime: "` + jobLater + `"}`, "",
		},
		"JobClocks": {
			"An end before the beginning is a matter of clocks.",
			`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {startTime: "2027-01-01T00:00:00Z"}}`, []string{last},
			`{active: 0, succeeded: 2, failed: 0, startTime: "2027-01-01T00:00:00Z", completionTime: "2027-01-01T00:00:00Z", conditions: ` + isDone + `}`, "",
		},
		"JobBadTime": {
			"A time that cannot be read is not compared.",
			`{apiVersion: batch/v1, kind: Job, metadata: {name: a}}`, []string{`{startTime: noon}`}, "", "status of cluster m1: startTime",
		},
		"CronJob": {
			"All that run, and when one last did.",
			`{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, status: {lastScheduleTime: "2025-01-01T00:00:00Z"}}`,
			[]string{`{active: [{name: j2}], lastScheduleTime: "` + jobLater + `"}`, "", `{active: [{name: j1}], lastScheduleTime: "` + jobStart + `", lastSuccessfulTime: "` + jobEnd + `"}`},
			`{active: [{name: j2}, {name: j1}], lastScheduleTime: "` + jobLater + `", lastSuccessfulTime: "` + jobEnd + `"}`, "",
		},
		"CronJobIdle": {
			"None runs; when one last did stays known.",
			`{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, status: {active: [{name: j}], lastScheduleTime: "` + jobStart + `"}}`, []string{""},
			`{lastScheduleTime: "` + jobStart + `"}`, "",
		},
		"Pod": {
			"Containers of all, told apart where one that ended would be followed by one that has not.",
			`{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {phase: Pending, qosClass: BestEffort}}`,
			[]string{
				`{phase: Running, containerStatuses: [{name: c, ready: true, restartCount: 3, image: i, state: {running: {startedAt: "` + jobStart + `"}}}], initContainerStatuses: [{name: i, ready: true, state: {terminated: {exitCode: 0}}}]}`,
				`{phase: Succeeded, containerStatuses: [{name: c, ready: false, state: {terminated: {exitCode: 0}}}]}`,
			},
			`{phase: Running, qosClass: BestEffort, containerStatuses: [{name: c, ready: true, state: {running: {startedAt: "` + jobStart + `"}}}, {name: m2/c, ready: false, state: {terminated: {exitCode: 0}}}],
			  initContainerStatuses: [{name: m1/i, ready: true, state: {terminated: {exitCode: 0}}}]}`, "",
		},
		"PodStored": {
			"What a server adds to it is no difference.",
			`{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {phase: Running, containerStatuses: [{name: c, ready: true, state: {running: {}}, lastState: {}, image: "", imageID: "", restartCount: 0}]}}`,
			[]string{`{phase: Running, containerStatuses: [{name: c, ready: true, restartCount: 3, image: i, state: {running: {}}}]}`},
			`{phase: Running, containerStatuses: [{name: c, ready: true, state: {running: {}}, lastState: {}, image: "", imageID: "", restartCount: 0}]}`, "",
		},
		"PodSilent":      {"Silence is pending.", `{apiVersion: v1, kind: Pod, metadata: {name: a}}`, []string{`{phase: Running}`, ""}, `{phase: Pending}`, ""},
		"PodFailed":      {"A failure beats everything.", `{apiVersion: v1, kind: Pod, metadata: {name: a}}`, []string{`{phase: Running}`, "", `{phase: Failed}`}, `{phase: Failed}`, ""},
		"PodSucceeded":   {"All have.", `{apiVersion: v1, kind: Pod, metadata: {name: a}}`, []string{`{phase: Succeeded}`, `{phase: Succeeded}`}, `{phase: Succeeded}`, ""},
		"PodNowhere":     {"It is still to come.", `{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {phase: Running, containerStatuses: [{name: c}]}}`, nil, `{phase: Pending}`, ""},
		"VolumeOrder":    {"What is available is not bound everywhere.", `{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}}`, []string{`{phase: Released}`, `{phase: Available}`, `{phase: Bound}`}, `{phase: Available}`, ""},
		"VolumeReleased": {"All are.", `{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}}`, []string{`{phase: Released}`}, `{phase: Released}`, ""},
		"VolumeFailed":   {"One has failed.", `{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}}`, []string{"", `{phase: Failed}`}, `{phase: Failed}`, ""},
		"VolumeSilent":   {"Silence is pending.", `{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}, status: {phase: Bound, lastPhaseTransitionTime: x}}`, []string{`{phase: Bound}`, ""}, `{phase: Pending, lastPhaseTransitionTime: x}`, ""},
		"ClaimBound":     {"Everywhere.", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}}`, []string{`{phase: Bound}`, `{phase: Bound}`}, `{phase: Bound}`, ""},
		"ClaimPending":   {"Not everywhere.", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}}`, []string{`{phase: Pending}`, `{phase: Bound}`}, `{phase: Pending}`, ""},
		"ClaimLost":      {"A loss beats everything.", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}}`, []string{`{phase: Lost}`, `{phase: Pending}`}, `{phase: Lost}`, ""},
		"ClaimSilent":    {"What nobody has said is bound is not.", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}}`, []string{"", `{phase: Bound}`}, `{phase: Pending}`, ""},
		"Budget": {
			"Counts are summed, pods belong to clusters; what the template had is over.",
			`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a}, status: {observedGeneration: 1, disruptedPods: {m9/p: x}}}`,
			[]string{`{disruptionsAllowed: 1, expectedPods: 2, desiredHealthy: 3, currentHealthy: 4, disruptedPods: {p: "` + jobStart + `"}}`, `{disruptionsAllowed: 1, expectedPods: 1, disruptedPods: {p: "` + jobEnd + `"}}`},
			`{observedGeneration: 1, disruptionsAllowed: 2, expectedPods: 3, desiredHealthy: 3, currentHealthy: 4, disruptedPods: {m1/p: "` + jobStart + `", m2/p: "` + jobEnd + `"}}`, "",
		},
		"Autoscaler": {
			"Counts are summed.",
			`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a}, status: {desiredReplicas: 0, currentMetrics: null}}`,
			[]string{`{currentReplicas: 1, desiredReplicas: 2}`, `{currentReplicas: 3, desiredReplicas: 4}`},
			`{currentReplicas: 4, desiredReplicas: 6, currentMetrics: null}`, "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			i := New(Options{})
			object, reported := parse(t, tc.object), items(t, tc.reports...)
			got, err := i.Aggregate(t.Context(), object, reported)
			unchanged(t, "template", tc.object, object)
			if fails(t, tc.reason, tc.err, err) || tc.err != "" {
				return
			}
			want := parse(t, `{apiVersion: v1, kind: x, status: `+tc.want+`}`).Object["status"]
			if diff := cmp.Diff(want, got.Object["status"]); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
			for key := range object.Object {
				if key != "status" && !cmp.Equal(object.Object[key], got.Object[key]) {
					t.Errorf("%s is not as it was", key)
				}
			}

			slices.Reverse(reported)
			other, err := i.Aggregate(t.Context(), object, reported)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got.Object, other.Object); diff != "" {
				t.Errorf("the order of items matters (-first +second):\n%s", diff)
			}
			again, err := i.Aggregate(t.Context(), got, reported)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got.Object, again.Object); diff != "" {
				t.Errorf("it does not come to rest (-first +second):\n%s", diff)
			}
		})
	}
}

func TestSame(t *testing.T) {
	cases := map[string]struct {
		a, b string
		want bool
	}{
		"Zeros":      {`{a: 0, b: "", c: false, d: {}, e: [], f: null, g: {h: 0}}`, `{}`, true},
		"Values":     {`{a: 1, b: [x, {c: 1}]}`, `{b: [x, {c: 1, d: ""}], a: 1}`, true},
		"Number":     {`{a: 1}`, `{a: 2}`, false},
		"Missing":    {`{a: 1}`, `{}`, false},
		"More":       {`{}`, `{a: {b: 1}}`, false},
		"Types":      {`{a: 1}`, `{a: "1"}`, false},
		"ListLength": {`{a: [x]}`, `{a: [x, ""]}`, false},
		"ListOrder":  {`{a: [x, y]}`, `{a: [y, x]}`, false},
		"ListOrMap":  {`{a: [x]}`, `{a: {b: x}}`, false},
		"EmptyOfAny": {`{a: []}`, `{a: {}}`, true},
		"ZeroOrMap":  {`{a: 0}`, `{a: {}}`, true},
		"OneOrMap":   {`{a: 1}`, `{a: {}}`, false},
	}
	for name, tc := range cases {
		a, b := parse(t, `{apiVersion: v1, kind: x, of: `+tc.a+`}`).Object, parse(t, `{apiVersion: v1, kind: x, of: `+tc.b+`}`).Object
		if same(a, b) != tc.want || same(b, a) != tc.want {
			t.Errorf("%s: %t and %t, want %t", name, same(a, b), same(b, a), tc.want)
		}
	}
}

func BenchmarkAggregate(b *testing.B) {
	i := New(Options{})
	d := benchmarkDeployment(b)
	items := []workv1alpha2.AggregatedStatusItem{
		{ClusterName: "m1", Status: &runtime.RawExtension{Raw: []byte(`{"replicas":1,"readyReplicas":1}`)}},
		{ClusterName: "m2", Status: &runtime.RawExtension{Raw: []byte(`{"replicas":1,"readyReplicas":1}`)}},
	}
	for b.Loop() {
		if _, err := i.Aggregate(b.Context(), d, items); err != nil {
			b.Fatal(err)
		}
	}
}
