package kwok

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"
	corev1 "k8s.io/api/core/v1"
	utilexec "k8s.io/utils/exec"
)

const (
	exitUsage           = 2
	exitNotFound        = 127
	maxScriptLineLength = 1 << 16
)

// A shell stands for the programs inside one simulated container. Its commands
// are functions over the pod and the streams handed in, and there are no
// others: nothing of the host can be run, read or reached through it.
type shell struct {
	pod       *corev1.Pod
	container *corev1.Container
	in        io.Reader // nil when the caller sends no input
	out, err  io.Writer
	tty       bool

	exited bool // by exit or the input's end
	status int  // of the last command
}

// exec runs one command and returns the error that carries its exit status.
func (s *shell) exec(ctx context.Context, argv []string) error {
	if s.in == nil {
		s.in = strings.NewReader("")
	}
	if s.err == nil {
		s.err = s.out // a terminal has one output
	}
	status := s.run(ctx, argv)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if status != 0 {
		return utilexec.CodeExitError{Err: fmt.Errorf("command terminated with exit code %d", status), Code: status}
	}
	return nil
}

// commands lists what run knows, for its own help.
func commands() []string {
	return []string{"cat", "date", "echo", "env", "exit", "false", "hostname", "id", "ls", "printenv", "pwd", "sh", "sleep", "true", "uname", "whoami"}
}

// run runs one command and returns its exit status.
func (s *shell) run(ctx context.Context, argv []string) int {
	if len(argv) == 0 {
		return 0
	}
	name, args := argv[0][strings.LastIndex(argv[0], "/")+1:], argv[1:]
	switch name {
	case "sh", "bash", "ash":
		return s.shell(ctx, args)
	case "true", ":":
	case "false":
		return 1
	case "exit":
		s.exited = true
		if len(args) > 0 {
			n, err := strconv.ParseUint(args[0], 10, 8)
			if err != nil {
				return s.complain(exitUsage, "exit: not a status: %s", args[0])
			}
			return int(n)
		}
		return s.status
	case "echo":
		end := "\n"
		if len(args) > 0 && args[0] == "-n" {
			args, end = args[1:], ""
		}
		fmt.Fprint(s.out, strings.Join(args, " ")+end)
	case "hostname":
		fmt.Fprintln(s.out, s.hostname())
	case "whoami":
		fmt.Fprintln(s.out, "root")
	case "id":
		fmt.Fprintln(s.out, "uid=0(root) gid=0(root) groups=0(root)")
	case "pwd":
		fmt.Fprintln(s.out, "/")
	case "date":
		fmt.Fprintln(s.out, time.Now().UTC().Format(time.UnixDate))
	case "uname":
		fmt.Fprintln(s.out, "Linux")
	case "env", "printenv":
		return s.printenv(args)
	case "ls":
		for _, f := range s.fileNames() {
			fmt.Fprintln(s.out, f)
		}
	case "cat":
		return s.cat(args)
	case "sleep":
		return s.sleep(ctx, args)
	default:
		return s.complain(exitNotFound, "%s: not found in a simulated container, which has only: %s", argv[0], strings.Join(commands(), " "))
	}
	return 0
}

// complain says what is wrong and returns the status.
func (s *shell) complain(status int, format string, args ...any) int {
	fmt.Fprintf(s.err, "sh: "+format+"\n", args...)
	return status
}

func (s *shell) hostname() string {
	switch {
	case s.pod.Spec.HostNetwork:
		return s.pod.Spec.NodeName
	case s.pod.Spec.Hostname != "":
		return s.pod.Spec.Hostname
	}
	return s.pod.Name
}

// env is the container's environment as far as its pod tells it.
func (s *shell) env() map[string]string {
	env := map[string]string{
		"HOSTNAME": s.hostname(),
		"HOME":     "/root",
		"PATH":     "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	}
	for _, e := range s.container.Env {
		switch {
		case e.ValueFrom == nil:
			env[e.Name] = e.Value
		case e.ValueFrom.FieldRef != nil:
			env[e.Name] = s.field(e.ValueFrom.FieldRef.FieldPath)
		}
	}
	return env
}

// field is the value of a downward API field, empty for those not simulated.
func (s *shell) field(path string) string {
	return map[string]string{
		"metadata.name":           s.pod.Name,
		"metadata.namespace":      s.pod.Namespace,
		"metadata.uid":            string(s.pod.UID),
		"spec.nodeName":           s.pod.Spec.NodeName,
		"spec.serviceAccountName": s.pod.Spec.ServiceAccountName,
		"status.hostIP":           s.pod.Status.HostIP,
		"status.podIP":            s.pod.Status.PodIP,
	}[path]
}

func (s *shell) printenv(names []string) int {
	env := s.env()
	if len(names) == 0 {
		for k, v := range env {
			names = append(names, k+"="+v)
		}
		slices.Sort(names)
		fmt.Fprintln(s.out, strings.Join(names, "\n"))
		return 0
	}
	status := 0
	for _, n := range names {
		v, ok := env[n]
		if !ok {
			status = 1
			continue
		}
		fmt.Fprintln(s.out, v)
	}
	return status
}

// fileNames lists the files that cat knows.
func (s *shell) fileNames() []string {
	return []string{"/etc/hostname", "/etc/hosts"}
}

func (s *shell) cat(files []string) int {
	if len(files) == 0 {
		files = []string{"-"}
	}
	status := 0
	for _, f := range files {
		switch f {
		case "-":
			if _, err := io.Copy(s.out, s.in); err != nil {
				status = s.complain(1, "cat: %v", err)
			}
		case "/etc/hostname":
			fmt.Fprintln(s.out, s.hostname())
		case "/etc/hosts":
			fmt.Fprintf(s.out, "127.0.0.1\tlocalhost\n%s\t%s\n", s.pod.Status.PodIP, s.hostname())
		default:
			status = s.complain(1, "cat: %s: no such file in a simulated container", f)
		}
	}
	return status
}

func (s *shell) sleep(ctx context.Context, args []string) int {
	if len(args) != 1 {
		return s.complain(exitUsage, "sleep: give the number of seconds")
	}
	d, err := time.ParseDuration(args[0])
	if err != nil {
		d, err = time.ParseDuration(args[0] + "s")
	}
	if err != nil || d < 0 {
		return s.complain(exitUsage, "sleep: not a number of seconds: %s", args[0])
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return 0
	case <-ctx.Done():
		return 1
	}
}

// shell runs a script given with -c, or else line by line what comes in.
func (s *shell) shell(ctx context.Context, args []string) int {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		if strings.HasSuffix(args[0], "c") {
			if len(args) < 2 {
				return s.complain(exitUsage, "-c: give a script")
			}
			return s.script(ctx, args[1])
		}
		args = args[1:] // -i, -l, -e: all the same here
	}
	if len(args) > 0 {
		return s.complain(exitNotFound, "%s: no such file in a simulated container", args[0])
	}

	read := s.lines()
	for !s.exited && ctx.Err() == nil {
		line, err := read()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				return s.complain(1, "read: %v", err)
			}
			break
		}
		s.status = s.script(ctx, line)
	}
	return s.status
}

// lines returns what reads the next line of input: on a terminal with a prompt,
// echo and editing.
func (s *shell) lines() func() (string, error) {
	if s.tty {
		t := term.NewTerminal(struct {
			io.Reader
			io.Writer
		}{s.in, s.out}, "/ # ")
		s.out, s.err = t, t
		return t.ReadLine
	}
	scanner := bufio.NewScanner(s.in)
	scanner.Buffer(nil, maxScriptLineLength)
	return func() (string, error) {
		if scanner.Scan() {
			return scanner.Text(), nil
		}
		if err := scanner.Err(); err != nil {
			return "", err
		}
		return "", io.EOF
	}
}

// script runs commands that are separated by newlines, ";", "&&" and "||".
func (s *shell) script(ctx context.Context, text string) int {
	lookup := func(name string) string {
		if name == "?" {
			return strconv.Itoa(s.status)
		}
		return s.env()[name]
	}
	skip := false
	for text != "" && !s.exited && ctx.Err() == nil {
		argv, separator, rest, err := nextCommand(text, lookup)
		if err != nil {
			return s.complain(exitUsage, "%v", err)
		}
		if len(argv) > 0 && !skip {
			s.status = s.run(ctx, argv)
		}
		switch separator {
		case "&&":
			skip = s.status != 0
		case "||":
			skip = s.status == 0
		default:
			skip = false
		}
		text = rest
	}
	return s.status
}

// nextCommand takes the first command off a script: its words, with single and
// double quotes, backslashes and $NAME resolved, and what separates it from the
// rest. What else a shell can do (pipes, redirections, background jobs,
// substitution) is refused.
func nextCommand(text string, lookup func(string) string) (argv []string, separator, rest string, err error) {
	var word strings.Builder
	inWord := false
	end := func() {
		if inWord {
			argv = append(argv, word.String())
			word.Reset()
			inWord = false
		}
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == ' ' || c == '\t' || c == '\r':
			end()
		case c == '\n' || c == ';':
			end()
			return argv, ";", text[i+1:], nil
		case (c == '&' || c == '|') && i+1 < len(text) && text[i+1] == c:
			end()
			return argv, text[i : i+2], text[i+2:], nil
		case strings.IndexByte("&|<>()`", c) >= 0:
			return nil, "", "", fmt.Errorf("%q is not possible in a simulated container", string(c))
		case c == '#' && !inWord:
			for i+1 < len(text) && text[i+1] != '\n' {
				i++
			}
		case c == '\\' && i+1 < len(text):
			i++
			word.WriteByte(text[i])
			inWord = true
		case c == '\'' || c == '"':
			n := strings.IndexByte(text[i+1:], c)
			if n < 0 {
				return nil, "", "", errors.New("unterminated quote")
			}
			part := text[i+1 : i+1+n]
			if c == '"' {
				part = os.Expand(part, lookup)
			}
			word.WriteString(part)
			inWord = true
			i += n + 1
		case c == '$':
			n := variableLength(text[i+1:])
			word.WriteString(os.Expand(text[i:i+1+n], lookup))
			inWord = true
			i += n
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	end()
	return argv, "", "", nil
}

// variableLength is the length of the NAME, {NAME} or ? at the start of text.
func variableLength(text string) int {
	if strings.HasPrefix(text, "{") {
		return strings.IndexByte(text, '}') + 1
	}
	if strings.HasPrefix(text, "?") {
		return 1
	}
	n := 0
	for n < len(text) && (text[n] == '_' || text[n] >= '0' && text[n] <= '9' || text[n]|0x20 >= 'a' && text[n]|0x20 <= 'z') {
		n++
	}
	return n
}
