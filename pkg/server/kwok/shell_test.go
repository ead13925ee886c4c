package kwok

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	utilexec "k8s.io/utils/exec"
)

func TestShell(t *testing.T) {
	pod := runningPod()
	cases := map[string]struct {
		reason string
		argv   []string
		in     string
		out    string
		err    string // a part of it
		status int
	}{
		"Echo":        {reason: "The plainest command.", argv: []string{"echo", "a", "b  c"}, out: "a b  c\n"},
		"Path":        {reason: "Images have their programs in a folder.", argv: []string{"/bin/hostname"}, out: "web-1\n"},
		"Env":         {reason: "The environment is the pod's.", argv: []string{"printenv", "FOO", "POD"}, out: "bar\nweb-1\n"},
		"EnvMissing":  {reason: "As printenv does.", argv: []string{"printenv", "NOPE"}, status: 1},
		"Cat":         {reason: "Input comes back.", argv: []string{"cat"}, in: "x\ny", out: "x\ny"},
		"CatHostFile": {reason: "No file of the host may be read.", argv: []string{"cat", "/etc/passwd"}, err: "no such file in a simulated container", status: 1},
		"HostProgram": {reason: "No program of the host may run.", argv: []string{"/bin/rm", "-rf", "/tmp/x"}, err: "rm: not found in a simulated container", status: 127},
		"Script": {
			reason: "What people put after sh -c.",
			argv:   []string{"sh", "-c", `echo "$FOO" '$FOO' ${FOO}s \$FOO; false && echo no || echo yes # comment`},
			out:    "bar $FOO bars $FOO\nyes\n",
		},
		"ScriptExit":    {reason: "exit ends the script with its status.", argv: []string{"bash", "-ec", "exit 3; echo no"}, status: 3},
		"LastStatus":    {reason: "A script has the status of its last command.", argv: []string{"sh", "-c", "false; echo $?; false"}, out: "1\n", status: 1},
		"Input":         {reason: "A shell without a script reads its input.", argv: []string{"sh"}, in: "echo 1\nfalse\nexit\necho 2\n", out: "1\n", status: 1},
		"Pipe":          {reason: "What is not simulated is refused, not half done.", argv: []string{"sh", "-c", "echo a | cat"}, err: `"|" is not possible`, status: 2},
		"Redirection":   {reason: "No file of the host may be written.", argv: []string{"sh", "-c", "echo a > /tmp/x"}, err: `">" is not possible`, status: 2},
		"Substitution":  {reason: "Nor in double quotes.", argv: []string{"sh", "-c", "echo $(id)"}, err: "is not possible", status: 2},
		"Unterminated":  {reason: "A broken script is an error.", argv: []string{"sh", "-c", "echo 'a"}, err: "unterminated quote", status: 2},
		"OpenVariable":  {reason: "A broken variable must not hang or panic.", argv: []string{"sh", "-c", "echo ${FOO $ x$"}, out: "${FOO $ x$\n"},
		"ScriptFile":    {reason: "There are no scripts in a simulated container.", argv: []string{"sh", "/run.sh"}, err: "no such file", status: 127},
		"SleepNonsense": {reason: "As sleep does.", argv: []string{"sleep", "soon"}, err: "not a number of seconds", status: 2},
		"Nothing":       {reason: "No command is no error.", argv: nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			s := &shell{pod: pod, container: &pod.Spec.Containers[0], in: strings.NewReader(tc.in), out: &out, err: &errOut}
			err := s.exec(context.Background(), tc.argv)
			status := 0
			if err != nil {
				var exit utilexec.ExitError
				if !errors.As(err, &exit) {
					t.Fatalf("%s\nexec: %v carries no exit status", tc.reason, err)
				}
				status = exit.ExitStatus()
			}
			if status != tc.status {
				t.Errorf("%s\nstatus %d, want %d (%s)", tc.reason, status, tc.status, errOut.String())
			}
			if diff := cmp.Diff(tc.out, out.String()); diff != "" {
				t.Errorf("%s\noutput (-want +got):\n%s", tc.reason, diff)
			}
			if !strings.Contains(errOut.String(), tc.err) || tc.err == "" && errOut.Len() > 0 {
				t.Errorf("%s\nerrors %q, want %q", tc.reason, errOut.String(), tc.err)
			}
		})
	}
}

func TestShellSleepEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	pod := runningPod()
	s := &shell{pod: pod, container: &pod.Spec.Containers[0], out: &bytes.Buffer{}}
	if err := s.exec(ctx, []string{"sleep", "3600"}); !errors.Is(err, context.Canceled) {
		t.Errorf("Stopping the member must not wait for a sleep: %v", err)
	}
}

func TestShellTerminal(t *testing.T) {
	var out bytes.Buffer
	pod := runningPod()
	s := &shell{pod: pod, container: &pod.Spec.Containers[0], in: strings.NewReader("echo hi\rexit 4\r"), out: &out, tty: true}
	err := s.exec(context.Background(), []string{"sh"})
	var exit utilexec.ExitError
	if !errors.As(err, &exit) || exit.ExitStatus() != 4 {
		t.Errorf("exit on a terminal: %v", err)
	}
	if !strings.Contains(out.String(), "\r\nhi\r\n") {
		t.Errorf("A terminal needs an echo and carriage returns, got %q", out.String())
	}
}

// runningPod is a pod default/web-1 whose containers run, but one.
func runningPod() *corev1.Pod {
	return boundPod(func(p *corev1.Pod) {
		p.Name = "web-1"
		p.Annotations = map[string]string{"kwok.x-k8s.io/usage-cpu": "250m"}
		p.Spec.Containers = []corev1.Container{
			{
				Name: "app", Image: "nginx:1.27", Command: []string{"nginx"}, Args: []string{"-g"}, Ports: []corev1.ContainerPort{{ContainerPort: 80}},
				Env: []corev1.EnvVar{
					{Name: "FOO", Value: "bar"},
					{Name: "POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
				},
			},
			{Name: "done", Image: "x"},
			{Name: "bad", Image: "fake/x"},
		}
		p.Status.Phase = corev1.PodRunning
		p.Status.ContainerStatuses = []corev1.ContainerStatus{
			{Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(0)}}},
			{Name: "done", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: at(0), FinishedAt: at(60), ExitCode: 2, Reason: "Error"}}},
			{Name: "bad", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}},
		}
	})
}
