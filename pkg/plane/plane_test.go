package plane

import (
	"maps"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/karmadactl/karmadactl/pkg/certs"
)

// planes are the ones described here, with the certificates inside the data directory and elsewhere.
func planes(t *testing.T) map[string]Plane {
	t.Helper()
	member, err := NewMemberConfig("member1", 1, 4)
	if err != nil {
		t.Fatal(err)
	}
	if err := member.ChoosePorts(func(string, int) bool { return false }); err != nil {
		t.Fatal(err)
	}
	elsewhere := aConfig(KindControlPlane, func(c *Config) { c.PKI, c.BindAddress = "/srv/pki", "192.0.2.11" })
	return map[string]Plane{
		"ControlPlane": ControlPlane(aConfig(KindControlPlane), NewLayout("/data", "")),
		"PKIElsewhere": ControlPlane(elsewhere, NewLayout("/data", elsewhere.PKI)),
		"Member":       Member(member, NewLayout("/data", "")),
	}
}

func eachPlane(t *testing.T, check func(t *testing.T, p Plane)) {
	t.Helper()
	for name, p := range planes(t) {
		t.Run(name, func(t *testing.T) { check(t, p) })
	}
}

// flagsOf splits the arguments of a component into names and values. Files that are given by their name in a directory
// are under the names that others give them by path.
func flagsOf(t *testing.T, c Component) map[string]string {
	t.Helper()
	flags := map[string]string{}
	for _, arg := range c.Args {
		name, value, ok := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if !strings.HasPrefix(arg, "--") || !ok {
			t.Errorf("component %s: argument %q is not of the form --name=value", c.Name, arg)
		}
		if _, twice := flags[name]; twice {
			t.Errorf("component %s: --%s is there twice, the first one has no effect", c.Name, name)
		}
		flags[name] = value
	}
	if dir, ok := flags["cert-dir"]; ok {
		flags["tls-cert-file"] = filepath.Join(dir, flags["tls-cert-file-name"])
		flags["tls-private-key-file"] = filepath.Join(dir, flags["tls-private-key-file-name"])
	}
	return flags
}

// produced are the files that an installation makes, by path.
func produced(p Plane) map[string]bool {
	files := map[string]bool{}
	dir := certs.Dir{Path: p.Layout.PKI}
	for _, path := range dir.Files(p.Certificates, certs.Options{KeyPairs: p.KeyPairs}) {
		files[path] = true
	}
	for _, k := range p.Kubeconfigs {
		files[k.Path] = true
	}
	for _, f := range p.Files {
		files[f.Path] = true
	}
	return files
}

func TestComponentsStartInOrder(t *testing.T) {
	eachPlane(t, func(t *testing.T, p Plane) {
		seen := map[string]bool{}
		for _, c := range p.Components {
			for _, before := range c.After {
				if !seen[before] {
					t.Errorf("%s comes after %s, which is not listed before it: stopping in reverse would stop %s too early", c.Name, before, before)
				}
			}
			if seen[c.Name] {
				t.Errorf("two components are called %s: errors and states could not tell them apart", c.Name)
			}
			seen[c.Name] = true
			if c.Role == "" {
				t.Errorf("%s has no role to run it", c.Name)
			}
		}
	})
}

func TestFilesOfComponentsAreProduced(t *testing.T) {
	eachPlane(t, func(t *testing.T, p Plane) {
		files := produced(p)
		check := func(who, path string) {
			if !files[path] {
				t.Errorf("%s reads %s, which nothing makes: is it misspelt?", who, path)
			}
		}
		below := []string{p.Layout.PKI, p.Layout.ConfigDir(), p.Layout.KubeconfigDir()}
		for _, c := range p.Components {
			named := 0
			for name, value := range flagsOf(t, c) {
				for _, dir := range below {
					if strings.HasPrefix(value, dir+string(filepath.Separator)) {
						check(c.Name+" --"+name, value)
						named++
					}
				}
			}
			if named == 0 {
				t.Errorf("%s names no file at all: this test may look for them in the wrong place", c.Name)
			}
			for _, path := range []string{c.Health.CAFile, c.Health.CertFile, c.Health.KeyFile} {
				if path != "" {
					check("the health check of "+c.Name, path)
				}
			}
		}
		for _, k := range p.Kubeconfigs {
			for _, path := range []string{k.CAFile, k.CertFile, k.KeyFile} {
				check("kubeconfig "+k.Path, path)
			}
		}
		ca, cert, key := p.Layout.AdminFiles()
		for _, path := range []string{ca, cert, key} {
			check("the admin", path)
		}
	})
}

func TestFilesStayInTheirDirectories(t *testing.T) {
	eachPlane(t, func(t *testing.T, p Plane) {
		for path := range produced(p) {
			inside := strings.HasPrefix(path, p.Layout.Dir+"/") || strings.HasPrefix(path, p.Layout.PKI+"/")
			if !inside || filepath.Clean(path) != path {
				t.Errorf("%s is outside of %s and %s: removing would not find it", path, p.Layout.Dir, p.Layout.PKI)
			}
		}
	})
}

func TestEveryProducedFileIsUsed(t *testing.T) {
	eachPlane(t, func(t *testing.T, p Plane) {
		ca, cert, key := p.Layout.AdminFiles()
		used := map[string]bool{ca: true, cert: true, key: true}
		for _, c := range p.Components {
			for _, value := range flagsOf(t, c) {
				used[value] = true
			}
			used[c.Health.CertFile], used[c.Health.KeyFile] = true, true
		}
		for _, k := range p.Kubeconfigs {
			used[k.CertFile], used[k.KeyFile] = true, true
		}
		for path := range produced(p) {
			// The keys of authorities sign, and the chain is for what the user brings.
			isAuthority := strings.HasSuffix(path, "ca.key") || strings.HasSuffix(path, "-chain.pem")
			if !used[path] && !isAuthority {
				t.Errorf("%s is made, and nothing reads it: a key that is not needed should not exist", path)
			}
		}
	})
}

func TestListeners(t *testing.T) {
	eachPlane(t, func(t *testing.T, p Plane) {
		owners := map[int]string{}
		for _, c := range p.Components {
			if len(c.Listen) == 0 {
				t.Errorf("%s listens nowhere: its health could not be asked", c.Name)
			}
			for _, e := range c.Listen {
				if other, ok := owners[e.Port]; ok {
					t.Errorf("port %d is used by %s and %s", e.Port, other, c.Name)
				}
				owners[e.Port] = c.Name
				if e.Port < 1 || e.Port > 65535 {
					t.Errorf("%s: port %d of %s", c.Name, e.Port, e.Name)
				}
				a, err := netip.ParseAddr(e.Host)
				if c.Name != KubeAPIServer && (err != nil || !a.IsLoopback()) {
					t.Errorf("%s listens on %s: only the API server is for other hosts", c.Name, e.Host)
				}
			}
		}
		var want []Endpoint
		for _, c := range p.Components {
			want = append(want, c.Listen...)
		}
		if diff := cmp.Diff(want, p.Endpoints()); diff != "" {
			t.Errorf("Endpoints differs from what components listen on (-want +got):\n%s", diff)
		}
		if ports := len(p.Config.Ports) + 1; ports != len(owners) {
			t.Errorf("%d ports are set aside and %d are used", ports, len(owners))
		}
	})
}

// Where an argument says an address of this host, it is one of the plane's endpoints: a misspelt port would show late.
func TestAddressesInArguments(t *testing.T) {
	eachPlane(t, func(t *testing.T, p Plane) {
		known := map[string]bool{}
		for _, e := range p.Endpoints() {
			known[e.Address()] = true
		}
		for _, c := range p.Components {
			mine := map[string]bool{}
			for _, e := range c.Listen {
				mine[e.Address()] = true
			}
			for name, value := range flagsOf(t, c) {
				value = strings.TrimPrefix(value, etcdMember+"=")
				address := value
				if u, err := url.Parse(value); err == nil && u.Host != "" && u.Scheme == "https" {
					address = u.Host
				}
				if !strings.HasPrefix(address, loopback+":") {
					continue
				}
				if !known[address] {
					t.Errorf("%s --%s=%s: nothing of this plane listens there", c.Name, name, value)
				}
				if isListen := strings.Contains(name, "listen") || strings.Contains(name, "bind"); isListen && !mine[address] {
					t.Errorf("%s --%s=%s: that address is not among those it is said to listen on", c.Name, name, value)
				}
			}
			u, err := url.Parse(c.Health.URL)
			if err != nil {
				t.Errorf("health check of %s: %v", c.Name, err)
				continue
			}
			if !mine[u.Host] && c.Name != KubeAPIServer {
				t.Errorf("health check of %s asks %s, which is not where it listens", c.Name, u.Host)
			}
			if (u.Scheme == "https") != (c.Health.CAFile != "") {
				t.Errorf("health check of %s: %s with CA file %q: TLS needs one, plain HTTP has none", c.Name, c.Health.URL, c.Health.CAFile)
			}
		}
	})
}

func TestOneCertificateAPurpose(t *testing.T) {
	eachPlane(t, func(t *testing.T, p Plane) {
		authorities := map[string]bool{}
		for _, s := range p.Certificates {
			if s.IsCA() {
				authorities[certs.Dir{Path: p.Layout.PKI}.CertFile(s.Name)] = true
			}
		}
		users := map[string]string{}
		use := func(path, who string) {
			if path == "" || authorities[path] {
				return
			}
			if other, ok := users[path]; ok {
				t.Errorf("%s serves both %s and %s: a leaf is for one purpose, so that losing one key loses one thing", path, other, who)
			}
			users[path] = who
		}
		for _, c := range p.Components {
			for name, value := range flagsOf(t, c) {
				if filepath.Ext(value) == ".crt" {
					use(value, c.Name+" --"+name)
				}
			}
			use(c.Health.CertFile, "the health check of "+c.Name)
		}
		for _, k := range p.Kubeconfigs {
			use(k.CertFile, "kubeconfig "+k.Path)
		}
		_, cert, _ := p.Layout.AdminFiles()
		use(cert, "the admin")
	})
}

func TestUsagesOfCertificates(t *testing.T) {
	// An etcd member shows the certificate that it serves its peers with when it is a peer's client, too.
	both := map[string]bool{"etcd-peer": true}
	eachPlane(t, func(t *testing.T, p Plane) {
		dir := certs.Dir{Path: p.Layout.PKI}
		server := map[string]bool{}
		for _, c := range p.Components {
			flags := flagsOf(t, c)
			for _, name := range []string{"tls-cert-file", "cert-file", "peer-cert-file"} {
				server[flags[name]] = true
			}
		}
		for _, s := range p.Certificates {
			if s.IsCA() {
				if s.Usages != 0 {
					t.Errorf("authority %s has usages", s.Name)
				}
				continue
			}
			want := certs.ClientAuth
			if server[dir.CertFile(s.Name)] {
				want = certs.ServerAuth
			}
			if both[s.Name] {
				want = certs.ServerAuth | certs.ClientAuth
			}
			if s.Usages != want {
				t.Errorf("certificate %s is for %b, want %b: a client's does not serve, a server's is no client's", s.Name, s.Usages, want)
			}
			if s.Validity != p.Config.CertValidity.Duration {
				t.Errorf("certificate %s is valid for %s, want what the user asked for: %s", s.Name, s.Validity, p.Config.CertValidity.Duration)
			}
			if s.Usages&certs.ServerAuth == 0 && len(s.DNSNames)+len(s.IPs) > 0 {
				t.Errorf("certificate %s is a client's and has names of hosts", s.Name)
			}
		}
	})
}

// Etcd trusts whoever its authority signed, and the front proxy authority's signature lets its holder be anybody.
func TestAuthoritiesAreSeparate(t *testing.T) {
	want := map[string]string{
		"etcd-server": "etcd-ca", "etcd-peer": "etcd-ca", "etcd-client": "etcd-ca", "etcd-health-client": "etcd-ca",
		"karmada-aggregated-apiserver-etcd-client": "etcd-ca",
		"front-proxy-client":                       "front-proxy-ca",
	}
	eachPlane(t, func(t *testing.T, p Plane) {
		for _, s := range p.Certificates {
			ca := "ca"
			if special, ok := want[s.Name]; ok {
				ca = special
			}
			if !s.IsCA() && s.CA != ca {
				t.Errorf("certificate %s is signed by %s, want %s", s.Name, s.CA, ca)
			}
		}
		for _, c := range p.Components {
			flags := flagsOf(t, c)
			for name, file := range map[string]string{
				"client-ca-file": "ca.crt", "root-ca-file": "ca.crt", "requestheader-client-ca-file": "front-proxy-ca.crt",
				"trusted-ca-file": "etcd-ca.crt", "peer-trusted-ca-file": "etcd-ca.crt", "etcd-cafile": "etcd-ca.crt",
			} {
				if value, ok := flags[name]; ok && filepath.Base(value) != file {
					t.Errorf("%s --%s=%s: want %s", c.Name, name, value, file)
				}
			}
		}
	})
}

func TestSubjects(t *testing.T) {
	type subject struct {
		CN string
		O  []string
	}
	common := map[string]subject{
		"admin":                   {"system:admin", []string{"system:masters"}},
		"kube-controller-manager": {"system:kube-controller-manager", nil},
		"front-proxy-client":      {"front-proxy-client", nil},
	}
	want := map[string]map[string]subject{
		KindControlPlane: {
			"karmada-controller-manager":   {"system:karmada:controller-manager", []string{"system:karmada"}},
			"karmada-aggregated-apiserver": {"system:karmada:aggregated-apiserver", []string{"system:karmada"}},
		},
		KindMember: {
			"apiserver-kubelet-client": {"kube-apiserver-kubelet-client", nil},
			"kube-scheduler":           {"system:kube-scheduler", nil},
			"nodes":                    {"system:nodes-simulator", []string{"system:masters"}},
		},
	}
	eachPlane(t, func(t *testing.T, p Plane) {
		expected := maps.Clone(common)
		maps.Copy(expected, want[p.Config.Kind])
		got := map[string]subject{}
		for _, s := range p.Certificates {
			if s.CA == "ca" && s.Usages&certs.ClientAuth != 0 || s.Name == "front-proxy-client" {
				got[s.Name] = subject{s.CommonName, s.Organization}
			}
		}
		if diff := cmp.Diff(expected, got); diff != "" {
			t.Errorf("who clients are differs (-want +got):\n%s\nreason: names are what access rules are about", diff)
		}
		if p.Config.Kind == KindControlPlane {
			for _, s := range p.Certificates {
				if slices.Contains(s.Organization, "system:masters") && s.Name != AdminCertificate {
					t.Errorf("certificate %s is in system:masters: no access rule could ever take that away", s.Name)
				}
			}
		}
	})
}

func TestSecureDefaults(t *testing.T) {
	want := map[string]map[string]string{
		Etcd: {
			"client-cert-auth": "true", "peer-client-cert-auth": "true", "tls-min-version": "TLS1.2",
		},
		KubeAPIServer: {
			"authorization-mode": "Node,RBAC", "tls-min-version": "VersionTLS13", "enable-bootstrap-token-auth": "true",
			"requestheader-allowed-names": "front-proxy-client", "profiling": "false", "endpoint-reconciler-type": "none",
		},
		KubeControllerManager: {
			"tls-min-version": "VersionTLS12", "use-service-account-credentials": "true", "bind-address": loopback,
			"leader-elect": "false", "profiling": "false",
		},
		KubeScheduler: {
			"tls-min-version": "VersionTLS12", "bind-address": loopback, "leader-elect": "false", "profiling": "false",
		},
		KarmadaAggregatedAPIServer: {
			"tls-min-version": "VersionTLS13", "bind-address": loopback, "profiling": "false",
			"requestheader-allowed-names": "front-proxy-client",
		},
		KarmadaWebhook:           {"tls-min-version": "1.3", "bind-address": loopback},
		KarmadaControllerManager: {"leader-elect": "false"},
		KarmadaScheduler:         {"leader-elect": "false"},
	}
	// Anonymous access is given by path in the authentication configuration, which excludes these.
	forbidden := []string{"anonymous-auth", "insecure-port", "insecure-bind-address", "token-auth-file", "listen-metrics-urls"}
	eachPlane(t, func(t *testing.T, p Plane) {
		for _, c := range p.Components {
			flags := flagsOf(t, c)
			for name, value := range want[c.Name] {
				if got, ok := flags[name]; !ok || got != value {
					t.Errorf("%s --%s=%s (set: %t), want %s", c.Name, name, got, ok, value)
				}
			}
			for name, value := range flags {
				if slices.Contains(forbidden, name) || strings.HasPrefix(name, "oidc-") {
					t.Errorf("%s has --%s", c.Name, name)
				}
				if strings.HasPrefix(value, "http://") {
					t.Errorf("%s --%s=%s is not encrypted", c.Name, name, value)
				}
			}
		}
	})
}

// Anonymous users may ask for health and for what a cluster has to read before it can register, and for nothing else.
func TestAnonymousAccess(t *testing.T) {
	eachPlane(t, func(t *testing.T, p Plane) {
		var config struct {
			APIVersion, Kind string
			Anonymous        struct {
				Enabled    bool
				Conditions []struct{ Path string }
			}
			JWT []any
		}
		if len(p.Files) != 1 {
			t.Fatalf("got %d files, want the authentication configuration alone", len(p.Files))
		}
		if err := yaml.UnmarshalStrict(p.Files[0].Content, &config); err != nil {
			t.Fatalf("decode the authentication configuration: %v", err)
		}
		if config.APIVersion != "apiserver.config.k8s.io/v1" || config.Kind != "AuthenticationConfiguration" || !config.Anonymous.Enabled {
			t.Errorf("got %+v", config)
		}
		var paths []string
		for _, c := range config.Anonymous.Conditions {
			paths = append(paths, c.Path)
		}
		want := []string{"/livez", "/readyz", "/healthz", "/api/v1/namespaces/kube-public/configmaps/cluster-info"}
		if diff := cmp.Diff(want, paths); diff != "" {
			t.Errorf("paths differ (-want +got):\n%s", diff)
		}
		api, ok := p.Component(KubeAPIServer)
		if !ok {
			t.Fatal("there is no API server")
		}
		if got := flagsOf(t, api)["authentication-config"]; got != p.Files[0].Path {
			t.Errorf("the API server reads %q, and the file is %q", got, p.Files[0].Path)
		}
	})
}

func TestControllersOfTheControlPlane(t *testing.T) {
	p := planes(t)["ControlPlane"]
	kcm, ok := p.Component(KubeControllerManager)
	if !ok {
		t.Fatal("there is no kube-controller-manager")
	}
	// spec: cli/init.md 7.4
	const want = "namespace,garbagecollector,serviceaccount-token,ttl-after-finished,bootstrapsigner,tokencleaner,csrcleaner,csrsigning,clusterrole-aggregation"
	flags := flagsOf(t, kcm)
	if got := flags["controllers"]; got != want {
		t.Errorf("--controllers=%s\nwant %s\nreason: others act on templates as if this were the cluster they run in", got, want)
	}
	if got := flags["cluster-name"]; got != "karmada-apiserver" {
		t.Errorf("--cluster-name=%s, want karmada-apiserver (spec: cli/init.md 7.4)", got)
	}
	api, _ := p.Component(KubeAPIServer)
	if got, want := flagsOf(t, api)["disable-admission-plugins"], "StorageObjectInUseProtection,ServiceAccount"; got != want {
		t.Errorf("--disable-admission-plugins=%s, want %s (spec: cli/init.md 7.4)", got, want)
	}
}

// Whoever writes while the API server starts or stops is answered, and not told that nobody answers.
func TestWebhookIsThereWhileTheAPIServerIs(t *testing.T) {
	p := planes(t)["ControlPlane"]
	hook, ok := p.Component(KarmadaWebhook)
	if !ok {
		t.Fatal("there is no webhook")
	}
	if len(hook.After) > 0 {
		t.Errorf("it comes after %v: what the API server waits for must not wait for others", hook.After)
	}
	if want := "https://" + hook.Listen[0].Address(); p.WebhookServer() != want {
		t.Errorf("the API server would ask %s, and it listens on %s", p.WebhookServer(), want)
	}
	api, _ := p.Component(KubeAPIServer)
	if !slices.Contains(api.After, KarmadaWebhook) {
		t.Errorf("the API server comes after %v: it would be there before its webhook", api.After)
	}
	i := slices.IndexFunc(p.Certificates, func(s certs.Spec) bool { return s.Name == "karmada-webhook-server" })
	if i < 0 || !slices.Contains(p.Certificates[i].DNSNames, "karmada-webhook.karmada-system.svc") {
		t.Error("its certificate has not the name of its Service, by which existing configurations call it")
	}
}

func TestKubeconfigsOfComponents(t *testing.T) {
	eachPlane(t, func(t *testing.T, p Plane) {
		paths := map[string]bool{}
		for _, k := range p.Kubeconfigs {
			if paths[k.Path] {
				t.Errorf("two components share %s", k.Path)
			}
			paths[k.Path] = true
			if k.Server != p.Config.LocalServer() {
				t.Errorf("%s reaches the API server by %s, want %s: components must not depend on the advertised address", k.Path, k.Server, p.Config.LocalServer())
			}
		}
	})
}

func TestComponent(t *testing.T) {
	p := planes(t)["ControlPlane"]
	if c, ok := p.Component(Etcd); !ok || c.Name != Etcd {
		t.Errorf("got %q, %t, want etcd", c.Name, ok)
	}
	if c, ok := p.Component("nothing"); ok {
		t.Errorf("got %q for a name that no component has", c.Name)
	}
}

func TestLayout(t *testing.T) {
	cases := map[string]struct {
		reason, pki, want string
	}{
		"Default":   {"Everything is in one directory.", "", "/data/pki"},
		"Elsewhere": {"The user may keep certificates in a place of their own.", "/srv/pki", "/srv/pki"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := NewLayout("/data", c.pki)
			if l.PKI != c.want {
				t.Errorf("PKI: got %s, want %s\nreason: %s", l.PKI, c.want, c.reason)
			}
			paths := map[string]bool{}
			all := []string{
				l.ConfigFile(), l.AdminKubeconfig(), l.EtcdData(), l.KubeconfigDir(), l.ConfigDir(), l.LogDir(), l.LogFile(), l.SupervisorLog(),
				l.RunDir(), l.PlaneLock(), l.SupervisorLock(), l.CommandLock(), l.PlaneState(), l.SupervisorState(),
			}
			for _, path := range all {
				if paths[path] || !strings.HasPrefix(path, "/data/") {
					t.Errorf("%s is outside of the data directory, or is there twice", path)
				}
				paths[path] = true
			}
		})
	}
	if got := NewLayout("/data", "").AdminKubeconfig(); got != "/data/karmada-apiserver.config" {
		t.Errorf("the admin's kubeconfig is %s: scripts know its name (spec: cli/init.md 6)", got)
	}
}
