package kwok

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestLogs(t *testing.T) {
	const (
		started = "simulated container app of pod default/web-1 started on node n\n"
		rest    = "image: nginx:1.27\ncommand: [\"nginx\" \"-g\"]\nlistening on port 80/TCP\n"
	)
	cases := map[string]struct {
		reason    string
		container string
		query     string
		want      string
		err       string
	}{
		"All":        {reason: "A log names its pod, so that one sees which one answers.", container: "app", want: started + rest},
		"Tail":       {reason: "The last lines.", container: "app", query: "tailLines=1", want: "listening on port 80/TCP\n"},
		"TailZero":   {reason: "None.", container: "app", query: "tailLines=0", want: ""},
		"Bytes":      {reason: "The first bytes.", container: "app", query: "limitBytes=9", want: "simulated"},
		"Since":      {reason: "Lines before are left out.", container: "done", query: "sinceTime=2026-01-02T03:05:00Z", want: "exited with code 2\n"},
		"Timestamps": {reason: "Each line has its time.", container: "done", query: "tailLines=1&timestamps=true", want: "2026-01-02T03:05:05Z exited with code 2\n"},
		"Waiting":    {reason: "As a kubelet says it.", container: "bad", err: `container "bad" in pod "web-1" is waiting to start: ImagePullBackOff`},
		"Previous":   {reason: "There is none.", container: "app", query: "previous=true", err: "previous terminated container not found"},
		"Unknown":    {reason: "A wrong name is an error.", container: "nope", err: "container nope is not valid for pod web-1"},
		"Nonsense":   {reason: "So are wrong options.", container: "app", query: "tailLines=x", err: "log options"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q, err := url.ParseQuery(tc.query)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			o, err := logOptions(q)
			if err == nil {
				err = logSource{}.write(context.Background(), runningPod(), tc.container, o, &out)
			}
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("%s\nerror %v, want %q", tc.reason, err, tc.err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFollowEnds(t *testing.T) {
	cases := map[string]struct {
		reason string
		get    podGetter
		want   string
	}{
		"Ended": {
			reason: "What a container says at its end is still shown.",
			get: func(context.Context, string, string) (*corev1.Pod, error) {
				p := runningPod()
				p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: at(0), FinishedAt: at(9)}}
				return p, nil
			},
			want: "exited with code 0\n",
		},
		"Gone": {
			reason: "A pod that is gone has nothing more to say.",
			get:    func(context.Context, string, string) (*corev1.Pod, error) { return nil, errors.New("not found") },
		},
		"Replaced": {
			reason: "Another pod of the same name is not it.",
			get: func(context.Context, string, string) (*corev1.Pod, error) {
				p := runningPod()
				p.UID = "other"
				return p, nil
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			lines, err := logLines(runningPod(), "app")
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := (logSource{get: tc.get, interval: time.Nanosecond}).follow(context.Background(), runningPod(), "app", len(lines), false, &out); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
