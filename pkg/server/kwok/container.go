package kwok

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// followInterval is how often a followed container is looked at.
const followInterval = 2 * time.Second

// A logLine is one line of a container's log.
type logLine struct {
	at   time.Time
	text string
}

// findContainer returns the named container of a pod, of whatever sort, and its
// status, nil when there is none yet.
func findContainer(pod *corev1.Pod, name string) (*corev1.Container, *corev1.ContainerStatus, error) {
	for _, kind := range []struct {
		specs    []corev1.Container
		statuses []corev1.ContainerStatus
	}{
		{pod.Spec.Containers, pod.Status.ContainerStatuses},
		{pod.Spec.InitContainers, pod.Status.InitContainerStatuses},
	} {
		for i := range kind.specs {
			if kind.specs[i].Name != name {
				continue
			}
			for j := range kind.statuses {
				if kind.statuses[j].Name == name {
					return &kind.specs[i], &kind.statuses[j], nil
				}
			}
			return &kind.specs[i], nil, nil
		}
	}
	return nil, nil, fmt.Errorf("container %s is not valid for pod %s", name, pod.Name)
}

// running returns the container, or says why it does not run.
func running(pod *corev1.Pod, name string) (*corev1.Container, error) {
	c, status, err := findContainer(pod, name)
	if err != nil {
		return nil, err
	}
	if status == nil || status.State.Running == nil {
		return nil, fmt.Errorf("container %s of pod %s is not running: %s", name, pod.Name, stateReason(status))
	}
	return c, nil
}

func stateReason(status *corev1.ContainerStatus) string {
	switch {
	case status == nil:
		return "ContainerCreating"
	case status.State.Waiting != nil:
		return status.State.Waiting.Reason
	case status.State.Terminated != nil:
		return status.State.Terminated.Reason
	}
	return "Unknown"
}

// logLines derives a container's whole log from its pod. Asked again later it
// is the same, or longer.
func logLines(pod *corev1.Pod, name string) ([]logLine, error) {
	c, status, err := findContainer(pod, name)
	if err != nil {
		return nil, err
	}

	var started, finished time.Time
	var exitCode int32
	switch {
	case status != nil && status.State.Running != nil:
		started = status.State.Running.StartedAt.Time
	case status != nil && status.State.Terminated != nil:
		t := status.State.Terminated
		started, finished, exitCode = t.StartedAt.Time, t.FinishedAt.Time, t.ExitCode
	default:
		return nil, fmt.Errorf("container %q in pod %q is waiting to start: %s", name, pod.Name, stateReason(status))
	}

	lines := []logLine{{started, fmt.Sprintf("simulated container %s of pod %s/%s started on node %s", c.Name, pod.Namespace, pod.Name, pod.Spec.NodeName)}}
	lines = append(lines, logLine{started, "image: " + c.Image})
	if argv := append(append([]string{}, c.Command...), c.Args...); len(argv) > 0 {
		lines = append(lines, logLine{started, fmt.Sprintf("command: %q", argv)})
	}
	for _, p := range c.Ports {
		protocol := p.Protocol
		if protocol == "" {
			protocol = corev1.ProtocolTCP
		}
		lines = append(lines, logLine{started, fmt.Sprintf("listening on port %d/%s", p.ContainerPort, protocol)})
	}
	if !finished.IsZero() {
		lines = append(lines, logLine{finished, fmt.Sprintf("exited with code %d", exitCode)})
	}
	return lines, nil
}

// selectLines applies since, tailLines, limitBytes and timestamps, and renders.
func selectLines(lines []logLine, o *corev1.PodLogOptions, now time.Time) string {
	since := time.Time{}
	if o.SinceSeconds != nil {
		since = now.Add(-time.Duration(*o.SinceSeconds) * time.Second)
	}
	if o.SinceTime != nil {
		since = o.SinceTime.Time
	}
	var kept []string
	for _, l := range lines {
		if l.at.Before(since) {
			continue
		}
		text := l.text + "\n"
		if o.Timestamps {
			text = l.at.UTC().Format(time.RFC3339Nano) + " " + text
		}
		kept = append(kept, text)
	}
	if o.TailLines != nil && int64(len(kept)) > *o.TailLines {
		kept = kept[int64(len(kept))-max(*o.TailLines, 0):]
	}
	all := strings.Join(kept, "")
	if o.LimitBytes != nil && int64(len(all)) > *o.LimitBytes {
		all = all[:max(*o.LimitBytes, 0)]
	}
	return all
}

// logOptions reads what the API server passes on of a request for logs.
func logOptions(q url.Values) (*corev1.PodLogOptions, error) {
	o := &corev1.PodLogOptions{}
	var errs []error
	for name, field := range map[string]*bool{"follow": &o.Follow, "previous": &o.Previous, "timestamps": &o.Timestamps} {
		if v := q.Get(name); v != "" {
			b, err := strconv.ParseBool(v)
			errs = append(errs, err)
			*field = b
		}
	}
	for name, field := range map[string]**int64{"sinceSeconds": &o.SinceSeconds, "tailLines": &o.TailLines, "limitBytes": &o.LimitBytes} {
		if v := q.Get(name); v != "" {
			n, err := strconv.ParseInt(v, 10, 64)
			errs = append(errs, err)
			*field = &n
		}
	}
	if v := q.Get("sinceTime"); v != "" {
		t, err := time.Parse(time.RFC3339, v)
		errs = append(errs, err)
		o.SinceTime = &metav1.Time{Time: t}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("log options: %w", err)
	}
	return o, nil
}

// A podGetter reads a pod from the API server.
type podGetter func(ctx context.Context, namespace, name string) (*corev1.Pod, error)

var errNoPrevious = errors.New("previous terminated container not found: simulated containers never restart")

// A logSource tells what the containers of simulated pods have to say.
type logSource struct {
	get      podGetter
	interval time.Duration // between two looks at a followed container
}

// write writes a container's log, and with Follow what comes until it ends.
func (l logSource) write(ctx context.Context, pod *corev1.Pod, container string, o *corev1.PodLogOptions, w io.Writer) error {
	if o.Previous {
		return errNoPrevious
	}
	lines, err := logLines(pod, container)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, selectLines(lines, o, time.Now())); err != nil {
		return err
	}
	if !o.Follow {
		return nil
	}
	return l.follow(ctx, pod, container, len(lines), o.Timestamps, w)
}

// follow writes the lines after the first seen ones, until the container ends,
// its pod is gone or ctx is done.
func (l logSource) follow(ctx context.Context, pod *corev1.Pod, container string, seen int, timestamps bool, w io.Writer) error {
	tick := time.NewTicker(l.interval)
	defer tick.Stop()
	for {
		if _, err := running(pod, container); err != nil {
			return nil // it ended, and all it had to say is written
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		next, err := l.get(ctx, pod.Namespace, pod.Name)
		if err != nil || next.UID != pod.UID {
			return nil // an end is all that can be told: the log's headers are long sent
		}
		pod = next
		lines, err := logLines(pod, container)
		if err != nil || len(lines) <= seen {
			continue
		}
		more := selectLines(lines[seen:], &corev1.PodLogOptions{Timestamps: timestamps}, time.Now())
		if _, err := io.WriteString(w, more); err != nil {
			return err
		}
		seen = len(lines)
	}
}
