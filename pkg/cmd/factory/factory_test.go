package factory

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// kubeconfig is one with a single context, named like its server's host.
func kubeconfig(name string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://%[1]s.invalid"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: %[1]s, context: {cluster: c, user: u, namespace: ns-of-%[1]s}}]
current-context: %[1]s
`, name)
}

func TestWhereTheKubeconfigComesFrom(t *testing.T) {
	type want struct {
		host      string
		namespace string
		reason    Reason
	}
	cases := map[string]struct {
		reason string
		files  map[string]string // below the test's directory, which is HOME
		env    string            // KUBECONFIG; %s is that directory
		args   []string
		want   want
	}{
		"FlagFirst": {
			reason: "What is typed wins over everything.",
			files:  map[string]string{"flag": kubeconfig("flag"), "env": kubeconfig("env"), ".kube/config": kubeconfig("home"), "init": kubeconfig("init")},
			env:    "%s/env", args: []string{"--kubeconfig=%s/flag"},
			want: want{host: "https://flag.invalid", namespace: "ns-of-flag"},
		},
		"EnvSecond": {
			reason: "KUBECONFIG wins over files that nobody named.",
			files:  map[string]string{"env": kubeconfig("env"), ".kube/config": kubeconfig("home"), "init": kubeconfig("init")},
			env:    "%s/env",
			want:   want{host: "https://env.invalid", namespace: "ns-of-env"},
		},
		"EnvMerges": {
			reason: "Several files are one kubeconfig; the first current context wins.",
			files:  map[string]string{"a": kubeconfig("first"), "b": strings.ReplaceAll(strings.ReplaceAll(kubeconfig("second"), "name: c", "name: d"), "cluster: c", "cluster: d")},
			env:    "%s/a:%s/none:%s/b", args: []string{"--karmada-context=second"},
			want: want{host: "https://second.invalid", namespace: "ns-of-second"},
		},
		"EnvOfNoFile": {
			reason: "Who names a file means it: another control plane is no replacement.",
			files:  map[string]string{".kube/config": kubeconfig("home"), "init": kubeconfig("init")},
			env:    "%s/none",
			want:   want{host: "https://no-kubeconfig.invalid", namespace: "default"},
		},
		"HomeThird": {
			reason: "The user's own file wins over what init left.",
			files:  map[string]string{".kube/config": kubeconfig("home"), "init": kubeconfig("init")},
			want:   want{host: "https://home.invalid", namespace: "ns-of-home"},
		},
		"InitLast": {
			reason: "After init on this host, karmadactl just works.",
			files:  map[string]string{"init": kubeconfig("init")},
			want:   want{host: "https://init.invalid", namespace: "ns-of-init"},
		},
		"None": {
			reason: "Without any, what needs no server still works.",
			want:   want{host: "https://no-kubeconfig.invalid", namespace: "default"},
		},
		"Namespace": {
			reason: "-n wins over the context's.",
			files:  map[string]string{"init": kubeconfig("init")},
			args:   []string{"-n", "mine"},
			want:   want{host: "https://init.invalid", namespace: "mine"},
		},
		"HomeIsBroken": {
			reason: "A broken file is an error, not a reason to look further.",
			files:  map[string]string{".kube/config": "{", "init": kubeconfig("init")},
			want:   want{reason: KubeconfigInvalid},
		},
		"NoSuchContext": {
			reason: "Another context may be another control plane.",
			files:  map[string]string{"init": kubeconfig("init")},
			args:   []string{"--karmada-context=other"},
			want:   want{reason: ContextMissing},
		},
		"NoSuchFile": {
			reason: "A file that was named must exist.",
			files:  map[string]string{"init": kubeconfig("init")},
			args:   []string{"--kubeconfig=%s/none"},
			want:   want{reason: KubeconfigUnreadable},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range tc.files {
				path := filepath.Join(dir, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("KUBECONFIG", strings.ReplaceAll(tc.env, "%s", dir))
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			f := New(Options{Program: "karmadactl", ErrOut: io.Discard, DefaultKubeconfig: func() string { return filepath.Join(dir, "init") }})
			f.conn.home = filepath.Join(dir, ".kube", "config")
			fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
			f.AddConnectionFlags(fs)
			f.AddNamespaceFlag(fs)
			args := make([]string, 0, len(tc.args))
			for _, a := range tc.args {
				args = append(args, strings.ReplaceAll(a, "%s", dir))
			}
			if err := fs.Parse(args); err != nil {
				t.Fatal(err)
			}

			var got want
			cfg, err := f.ToRESTConfig()
			var known *Error
			switch {
			case errors.As(err, &known):
				got.reason = known.Reason
			case err != nil:
				t.Fatalf("ToRESTConfig(): %v", err)
			default:
				got.host = cfg.Host
				if got.namespace, _, err = f.ToRawKubeConfigLoader().Namespace(); err != nil {
					t.Fatalf("Namespace(): %v", err)
				}
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("(-want +got): %s\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFailFast(t *testing.T) {
	boom := errors.New("boom")
	cases := map[string]struct {
		reason  string
		answers []error // of the server, one per request it sees
		want    []error // of the client
	}{
		"NeverAnswered": {reason: "Who never answered is not asked again.", answers: []error{boom, nil}, want: []error{boom, boom, boom}},
		"Answered":      {reason: "One failure of a server that is there is no verdict.", answers: []error{nil, boom, nil}, want: []error{nil, boom, nil}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			asked := 0
			rt := failFast(roundTripper(func(*http.Request) (*http.Response, error) {
				err := tc.answers[asked]
				asked++
				return &http.Response{}, err
			}))
			for i, want := range tc.want {
				if _, err := rt.RoundTrip(&http.Request{URL: &url.URL{}}); !errors.Is(err, want) {
					t.Errorf("request %d: %v, want %v: %s", i, err, want, tc.reason)
				}
			}
		})
	}
}

func TestScope(t *testing.T) {
	cases := map[string]struct {
		reason  string
		value   string
		allowed []Scope
		want    Scope
		wantErr string
	}{
		"Empty":      {reason: "An empty value changes nothing.", allowed: []Scope{ScopeKarmada}, want: ScopeKarmada},
		"Members":    {reason: "A legal value is taken.", value: "members", allowed: []Scope{ScopeKarmada, ScopeMembers}, want: ScopeMembers},
		"Unknown":    {reason: "The text is contract.", value: "host", want: ScopeKarmada, wantErr: "not support OperationScope: host"},
		"NotAllowed": {reason: "The text is contract, and another.", value: "all", allowed: []Scope{ScopeKarmada, ScopeMembers}, want: ScopeAll, wantErr: "not support operation scope: all"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			scope := ScopeKarmada
			err := scope.Set(tc.value)
			if err == nil {
				err = scope.Check(tc.allowed...)
			}
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tc.wantErr || scope != tc.want {
				t.Errorf("scope %q, error %q; want %q, %q: %s", scope, got, tc.want, tc.wantErr, tc.reason)
			}
		})
	}
}
