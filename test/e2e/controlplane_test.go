package e2e

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const sample = `
apiVersion: v1
kind: ConfigMap
metadata: {name: greeting, namespace: default}
data: {text: hello}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: greeting, namespace: default}
spec:
  resourceSelectors:
  - {apiVersion: v1, kind: ConfigMap, name: greeting}
  placement:
    clusterAffinity:
      clusterNames: [member1, member2]
`

// TestLife is the story of one control plane: made, used, made again, killed, started, removed.
func TestLife(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "karmada")
	port := strconv.Itoa(freePort())
	t.Cleanup(func() { cleanUp(t, dir) })

	refused(t, 2, []string{"no control plane is installed", "karmadactl init"}, "status", "--data-dir", dir)
	refused(t, 1, []string{"no control plane is installed"}, "start", "--data-dir", dir)

	preview := karmadactl(t, "init", "--data-dir", dir, "--port", port, "--dry-run")
	for _, want := range []string{"kube-apiserver", "CustomResourceDefinition propagationpolicies.policy.karmada.io", "apiserver: created"} {
		if !strings.Contains(preview, want) {
			t.Errorf("dry run does not tell of %q:\n%s", want, preview)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Fatalf("a dry run made %s", dir)
	}

	var made struct {
		Changed    bool   `json:"changed"`
		Kubeconfig string `json:"kubeconfig"`
	}
	decode(t, karmadactl(t, "init", "--data-dir", dir, "--port", port, "-o", "json"), &made)
	if !made.Changed || made.Kubeconfig != filepath.Join(dir, "karmada-apiserver.config") {
		t.Errorf("init says %+v", made)
	}
	checkModes(t, dir)

	s, r := statusOf(t, dir)
	if !s.Healthy || r.code != 0 || s.Certificates.DaysLeft < 360 || s.DataBytes == 0 {
		t.Fatalf("a new control plane is not well: %s", r)
	}
	with(t, made.Kubeconfig, "apply", "-f", write(t, "sample.yaml", sample))
	o := objects{kubeconfig: made.Kubeconfig}
	o.configMap, o.policy = o.read(t)
	if !strings.HasSuffix(o.configMap, " hello") || !strings.HasSuffix(o.policy, " Abort") {
		t.Fatalf("the objects are not what was applied: %+v", o)
	}

	before, versions := files(t, dir), resourceVersions(t, made.Kubeconfig)
	decode(t, karmadactl(t, "init", "--data-dir", dir, "-o", "json"), &made)
	if made.Changed {
		t.Error("init changed a control plane that was right")
	}
	if after := files(t, dir); after != before {
		t.Errorf("init again rewrote files:\n%s\n%s", before, after)
	}
	if again := resourceVersions(t, made.Kubeconfig); again != versions {
		t.Errorf("init again wrote objects:\n%s\n%s", versions, again)
	}

	t.Run("KilledAndRestarted", func(t *testing.T) {
		if err := syscall.Kill(s.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the supervisor starts the plane again", func() (bool, string) {
			now, r := statusOf(t, dir)
			return now.Healthy && now.PID != s.PID && now.Supervisor.Restarts == 1, r.String()
		})
		o.check(t)
	})
	t.Run("StoppedAndStarted", func(t *testing.T) {
		karmadactl(t, "stop", "--data-dir", dir)
		refused(t, 1, []string{"not running", "karmadactl start"}, "status", "--data-dir", dir)
		if left := processesOf(t, dir); len(left) > 0 {
			t.Errorf("stop left processes: %q", left)
		}
		karmadactl(t, "stop", "--data-dir", dir)
		karmadactl(t, "start", "--data-dir", dir)
		karmadactl(t, "start", "--data-dir", dir)
		karmadactl(t, "status", "--wait", "--data-dir", dir)
		o.check(t)
	})
	t.Run("RemovedButData", func(t *testing.T) {
		refused(t, 1, []string{"--yes"}, "deinit", "--data-dir", dir)
		karmadactl(t, "deinit", "--yes", "--data-dir", dir)
		refused(t, 2, nil, "status", "--data-dir", dir)
		karmadactl(t, "init", "--data-dir", dir)
		o.check(t)
	})
	t.Run("Removed", func(t *testing.T) {
		karmadactl(t, "deinit", "--purge", "--yes", "--data-dir", dir)
		if _, err := os.Lstat(dir); !os.IsNotExist(err) {
			t.Errorf("deinit --purge left:\n%s", files(t, dir))
		}
		if left := processesOf(t, dir); len(left) > 0 {
			t.Errorf("deinit left processes: %q", left)
		}
		karmadactl(t, "deinit", "--purge", "--yes", "--data-dir", dir)
	})
}

// cleanUp removes a control plane at the end of a test, when t's own context has ended already.
func cleanUp(t *testing.T, dir string) {
	t.Helper()
	if err := shared.run(context.WithoutCancel(t.Context()), nil, "deinit", "--purge", "--yes", "--data-dir", dir).failure(); err != nil {
		t.Error(err)
	}
}

// objects are the two of the sample as they were first.
type objects struct {
	kubeconfig, configMap, policy string
}

func (o objects) read(t *testing.T) (configMap, policy string) {
	t.Helper()
	configMap = with(t, o.kubeconfig, "get", "configmap", "greeting", "-o", "jsonpath={.metadata.uid} {.data.text}")
	policy = with(t, o.kubeconfig, "get", "propagationpolicy", "greeting", "-o", "jsonpath={.metadata.uid} {.spec.conflictResolution}")
	return configMap, policy
}

// check makes sure that they are the same still.
func (o objects) check(t *testing.T) {
	t.Helper()
	if configMap, policy := o.read(t); configMap != o.configMap || policy != o.policy {
		t.Errorf("ConfigMap is %q, was %q; PropagationPolicy is %q, was %q", configMap, o.configMap, policy, o.policy)
	}
}

// resourceVersions lists those of everything that init makes.
func resourceVersions(t *testing.T, kubeconfig string) string {
	t.Helper()
	return with(t, kubeconfig, "get", "clusterroles,clusterrolebindings,crd,ns", "-o",
		`jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.resourceVersion}{"\n"}{end}`)
}

// checkModes makes sure that nobody else can read keys and kubeconfigs.
func checkModes(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		secret := strings.HasSuffix(path, ".key") || strings.HasSuffix(path, ".config")
		if d.IsDir() && info.Mode().Perm()&0o077 != 0 || secret && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// files lists what does not change by itself, with its time of change.
func files(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch d.Name() {
		case "etcd", "run", "log":
			return fs.SkipDir
		}
		if d.IsDir() {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		b.WriteString(path + " " + info.ModTime().String() + "\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func decode(t *testing.T, data string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(data), into); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
}

// TestAnonymous checks what somebody without credentials gets: health and cluster-info, and nothing else.
func TestAnonymous(t *testing.T) {
	dir, err := shared.controlPlane()
	if err != nil {
		t.Fatal(err)
	}
	s, _ := statusOf(t, dir)
	// What the certificate says is not the matter here; what is served without one is.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	cases := map[string]struct {
		reason string
		path   string
		want   int
	}{
		"Health":      {"Load balancers ask for it.", "/readyz", http.StatusOK},
		"ClusterInfo": {"register reads it before it has credentials.", "/api/v1/namespaces/kube-public/configmaps/cluster-info", http.StatusOK},
		"OtherMap":    {"One ConfigMap is public, the others are not.", "/api/v1/namespaces/kube-public/configmaps/other", http.StatusUnauthorized},
		"Version":     {"Versions help those who look for holes.", "/version", http.StatusUnauthorized},
		"Metrics":     {"Metrics tell about users.", "/metrics", http.StatusUnauthorized},
		"Secrets":     {"Of course.", "/api/v1/secrets", http.StatusUnauthorized},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			resp, err := client.Get(s.Server + c.path)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != c.want {
				t.Errorf("%s answers %d, want %d: %s\n%s", c.path, resp.StatusCode, c.want, c.reason, body)
			}
		})
	}
}

// TestBadInput checks that init refuses what cannot work before it changes anything.
func TestBadInput(t *testing.T) {
	dir, err := shared.controlPlane()
	if err != nil {
		t.Fatal(err)
	}
	s, _ := statusOf(t, dir)
	taken := s.Server[strings.LastIndex(s.Server, ":")+1:]
	foreign := filepath.Dir(write(t, "thesis.txt", "mine"))
	file := write(t, "file", "")
	cases := map[string]struct {
		reason string
		args   []string
		want   []string
	}{
		"PortInUse":        {"Two servers cannot have one port.", []string{"--port", taken}, []string{taken, "in use"}},
		"PortZero":         {"Port 0 is none.", []string{"--port=0"}, []string{"--port=0"}},
		"ForeignDirectory": {"A directory of somebody else is not ours to fill.", []string{"--data-dir", foreign}, []string{foreign, "thesis.txt"}},
		"FileAsDirectory":  {"A file cannot hold a control plane.", []string{"--data-dir", file}, []string{file}},
		"Unwritable":       {"Nothing can be made below /proc.", []string{"--data-dir", "/proc/karmada"}, []string{"/proc"}},
		"ExternalIP":       {"A name is no address.", []string{"--cert-external-ip=not-an-ip"}, []string{"cert-external-ip", "not-an-ip"}},
		"ExternalDNS":      {"A host name has no spaces.", []string{"--cert-external-dns=not a name"}, []string{"not a name"}},
		"AdvertiseAny":     {"Nobody can connect to 0.0.0.0.", []string{"--advertise-address=0.0.0.0"}, []string{"0.0.0.0"}},
		"BindElsewhere":    {"The address is not this host's.", []string{"--bind-address=203.0.113.1"}, []string{"203.0.113.1"}},
		"CAWithoutKey":     {"A CA without its key signs nothing.", []string{"--ca-cert-file", file}, []string{"--ca-key-file"}},
		"HostCluster":      {"Who names a kubeconfig means a host cluster.", []string{"--kubeconfig=x", "--etcd-replicas=3"}, []string{"--kubeconfig", "--etcd-replicas", "host Kubernetes cluster"}},
		"TargetCluster":    {"Not built yet, and said so.", []string{"--target=cluster"}, []string{"not available"}},
		"UnknownFlag":      {"The text is matched by scripts.", []string{"--frobnicate"}, []string{"unknown flag: --frobnicate"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			own := filepath.Join(t.TempDir(), "karmada")
			args := append([]string{"init", "--data-dir", own}, c.args...)
			r := refused(t, 1, c.want, args...)
			if strings.Count(r.stderr, "error:") != 1 {
				t.Errorf("want one error: %s\n%s", c.reason, r)
			}
			if _, err := os.Lstat(own); !os.IsNotExist(err) {
				t.Errorf("it made %s: %s", own, c.reason)
			}
		})
	}
	if now, r := statusOf(t, dir); !now.Healthy || now.PID != s.PID {
		t.Errorf("the control plane beside it was touched: %s", r)
	}
}

// TestDamagedData checks that an etcd which cannot start is reported, with its reason, and not replaced.
func TestDamagedData(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "karmada")
	t.Cleanup(func() { cleanUp(t, dir) })
	karmadactl(t, "init", "--data-dir", dir, "--port", strconv.Itoa(freePort()))
	karmadactl(t, "stop", "--data-dir", dir)
	db := filepath.Join(dir, "etcd", "member", "snap", "db")
	if err := os.WriteFile(db, []byte("this is no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, 1, []string{"log"}, "start", "--data-dir", dir, "--wait-component-ready-timeout=60")
	if data, err := os.ReadFile(db); err != nil || !strings.HasPrefix(string(data), "this is no database") {
		t.Errorf("the damaged database was replaced: %.40q, %v", data, err)
	}
	if left := processesOf(t, dir); len(left) > 0 {
		t.Errorf("a failed start left processes: %q", left)
	}
}
