package kubeconfig

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
)

func files(context, server string) Files {
	return Files{Server: server, Cluster: context, User: context + "-admin", Context: context, CAFile: "/pki/ca.crt", CertFile: "/pki/x.crt", KeyFile: "/pki/x.key"}
}

func TestFromFiles(t *testing.T) {
	data := encode(t, FromFiles(files("karmada-apiserver", "https://127.0.0.1:32443")))
	want := `apiVersion: v1
clusters:
- cluster:
    certificate-authority: /pki/ca.crt
    server: https://127.0.0.1:32443
  name: karmada-apiserver
contexts:
- context:
    cluster: karmada-apiserver
    user: karmada-apiserver-admin
  name: karmada-apiserver
current-context: karmada-apiserver
kind: Config
users:
- name: karmada-apiserver-admin
  user:
    client-certificate: /pki/x.crt
    client-key: /pki/x.key
`
	if diff := cmp.Diff(want, data); diff != "" {
		t.Errorf("embedded data is never read again, so files must be named (-want +got):\n%s", diff)
	}
}

func TestEmbedded(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"ca", "cert", "key"} {
		write(t, filepath.Join(dir, name), "the "+name, 0o600)
	}
	n := Names{Cluster: "karmada-apiserver", User: "karmada-admin", Context: "karmada-apiserver"}
	c, err := Embedded(n, "https://[::1]:32443", filepath.Join(dir, "ca"), filepath.Join(dir, "cert"), filepath.Join(dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := clientcmd.Load([]byte(encode(t, c)))
	if err != nil {
		t.Fatal(err)
	}
	rest, err := clientcmd.NewDefaultClientConfig(*loaded, nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	got := []string{rest.Host, string(rest.CAData), string(rest.CertData), string(rest.KeyData), rest.CAFile + rest.CertFile + rest.KeyFile}
	if diff := cmp.Diff([]string{"https://[::1]:32443", "the ca", "the cert", "the key", ""}, got); diff != "" {
		t.Errorf("a copied file must work anywhere (-want +got):\n%s", diff)
	}

	_, err = Embedded(n, "https://x", filepath.Join(dir, "ca"), filepath.Join(dir, "none"), filepath.Join(dir, "key"))
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "none") {
		t.Errorf("a missing file must be named: %v", err)
	}
}

func TestClusterInfo(t *testing.T) {
	want := `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: Y2E=
    server: https://10.0.0.1:32443
  name: ""
contexts: null
current-context: ""
kind: Config
users: null
`
	if diff := cmp.Diff(want, encode(t, ClusterInfo("https://10.0.0.1:32443", []byte("ca")))); diff != "" {
		t.Errorf("it is readable by anybody, so it must hold no user (-want +got):\n%s", diff)
	}
}

func TestMerge(t *testing.T) {
	m1, m2 := FromFiles(files("member1", "https://127.0.0.1:1")), FromFiles(files("member2", "https://127.0.0.1:2"))
	other := FromFiles(files("member1", "https://127.0.0.1:3"))
	cases := map[string]struct {
		reason  string
		current string
		configs []Config
		want    []string // contexts
		wantCur string
		wantErr string
	}{
		"Two":         {reason: "All contexts in one file; the first one is current.", configs: []Config{m1, m2}, want: []string{"member1", "member2"}, wantCur: "member1"},
		"Current":     {reason: "Unless another one is named.", current: "member2", configs: []Config{m1, m2}, want: []string{"member1", "member2"}, wantCur: "member2"},
		"SameTwice":   {reason: "The same entry twice is no conflict.", configs: []Config{m1, m1}, want: []string{"member1"}, wantCur: "member1"},
		"Conflict":    {reason: "One of two clusters would silently be out of reach.", configs: []Config{m1, other}, wantErr: `cluster "member1"`},
		"NoSuch":      {reason: "A current context that is not there breaks every command.", current: "x", configs: []Config{m1}, wantErr: `context "x"`},
		"NothingToDo": {reason: "No member, no entry.", configs: nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Merge(tc.current, tc.configs...)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("%s\ngot %v", tc.reason, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			for _, c := range tc.want {
				if got.Contexts[c] == nil || got.Clusters[c] == nil || got.AuthInfos[c+"-admin"] == nil {
					t.Errorf("%s\n%s is incomplete", tc.reason, c)
				}
			}
			if got.CurrentContext != tc.wantCur || len(got.Contexts) != len(tc.want) {
				t.Errorf("%s\ncurrent %q, contexts %v", tc.reason, got.CurrentContext, got.Contexts)
			}
		})
	}
}

func TestWriteIfChanged(t *testing.T) {
	c := FromFiles(files("karmada-apiserver", "https://127.0.0.1:32443"))
	good := encode(t, c)
	cases := map[string]struct {
		reason string
		before *string
		mode   fs.FileMode
		want   bool
		keep   bool // the bytes stay as they were
	}{
		"Missing":  {reason: "It is made.", want: true},
		"Same":     {reason: "What is right stays.", before: &good, mode: 0o600, keep: true},
		"Layout":   {reason: "JSON says the same.", before: ptr(`{"kind":"Config","apiVersion":"v1","current-context":"karmada-apiserver","contexts":[{"name":"karmada-apiserver","context":{"user":"karmada-apiserver-admin","cluster":"karmada-apiserver"}}],"clusters":[{"name":"karmada-apiserver","cluster":{"certificate-authority":"/pki/ca.crt","server":"https://127.0.0.1:32443"}}],"users":[{"name":"karmada-apiserver-admin","user":{"client-certificate":"/pki/x.crt","client-key":"/pki/x.key"}}]}`), mode: 0o600, keep: true},
		"Open":     {reason: "A credential that others can read is closed.", before: &good, mode: 0o644, want: true},
		"Other":    {reason: "Another server is not right.", before: ptr(strings.ReplaceAll(good, "32443", "1")), mode: 0o600, want: true},
		"Rubbish":  {reason: "The file is ours alone: it is made anew.", before: ptr("{"), mode: 0o600, want: true},
		"Empty":    {reason: "An empty file is no kubeconfig.", before: ptr(""), mode: 0o600, want: true},
		"WithMore": {reason: "Entries that are not ours have no place in a component's file.", before: ptr(encode(t, merge(t, c, FromFiles(files("mine", "https://x"))))), mode: 0o600, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.config")
			if tc.before != nil {
				write(t, path, *tc.before, tc.mode)
			}
			got, err := WriteIfChanged(path, c)
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			if got != tc.want {
				t.Errorf("%s\nwrote: got %v, want %v", tc.reason, got, tc.want)
			}
			want := good
			if tc.keep {
				want = *tc.before
			}
			check(t, tc.reason, path, want)
		})
	}
}

func TestUpsert(t *testing.T) {
	ours, theirs := FromFiles(files("karmada-apiserver", "https://127.0.0.1:32443")), FromFiles(files("mine", "https://mine"))
	stale := FromFiles(files("karmada-apiserver", "https://127.0.0.1:1"))
	both, current := merge(t, ours, theirs), merge(t, ours, theirs)
	current.CurrentContext = "mine"
	staleBoth := merge(t, stale, theirs)
	staleBoth.CurrentContext = "mine"
	dangling := merge(t, theirs)
	dangling.CurrentContext = "gone"

	cases := map[string]struct {
		reason string
		before *Config
		want   Config
		wrote  bool
	}{
		"Missing":  {reason: "It is made, with our context the current one.", want: ours, wrote: true},
		"Same":     {reason: "What is right stays.", before: &ours, want: ours},
		"Added":    {reason: "People's own contexts stay, and so does their choice.", before: &current, want: current},
		"Stale":    {reason: "Our entries are put right, nothing else.", before: &staleBoth, want: current, wrote: true},
		"Dangling": {reason: "A current context that is gone is no choice.", before: &dangling, want: both, wrote: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.config")
			if tc.before != nil {
				write(t, path, encode(t, *tc.before), 0o600)
			}
			got, err := Upsert(path, ours)
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			if got != tc.wrote {
				t.Errorf("%s\nwrote: got %v, want %v", tc.reason, got, tc.wrote)
			}
			check(t, tc.reason, path, encode(t, tc.want))
		})
	}

	t.Run("Rubbish", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "x.config")
		write(t, path, "{", 0o600)
		if _, err := Upsert(path, ours); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("somebody may want it back: %v", err)
		}
		check(t, "It must stay.", path, "{")
	})
}

func merge(t *testing.T, configs ...Config) Config {
	t.Helper()
	c, err := Merge("", configs...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func encode(t *testing.T, c Config) string {
	t.Helper()
	data, err := Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func check(t *testing.T, reason, path, want string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("%s\n(-want +got):\n%s", reason, diff)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != Mode {
		t.Errorf("%s\nmode %v", reason, info.Mode())
	}
}

func write(t *testing.T, path, data string, mode fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(data), mode); err != nil {
		t.Fatal(err)
	}
}

func ptr(s string) *string { return &s }
