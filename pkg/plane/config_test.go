package plane

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// aConfig is a valid configuration with every port set, changed by change.
func aConfig(kind string, change ...func(*Config)) Config {
	c := NewConfig(kind, "karmada")
	c.AdvertiseAddress = "192.0.2.10"
	if kind == KindMember {
		c.PodCIDR, c.Nodes = "10.10.0.0/16", 4
	}
	for i, name := range c.PortNames() {
		c.Ports[name] = c.Port + 1 + i
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

func TestValidate(t *testing.T) {
	cases := map[string]struct {
		reason string
		config Config
		want   []string // what the error names, in any order; none: valid
	}{
		"ControlPlane": {
			reason: "The defaults are valid.",
			config: aConfig(KindControlPlane),
		},
		"Member": {
			reason: "A member has other ports.",
			config: aConfig(KindMember),
		},
		"IPv6": {
			reason: "Addresses may be of either family.",
			config: aConfig(KindControlPlane, func(c *Config) { c.BindAddress, c.AdvertiseAddress = "::", "2001:db8::1" }),
		},
		"Wildcard": {
			reason: "A certificate may be for all names below one.",
			config: aConfig(KindControlPlane, func(c *Config) { c.ExternalDNS = []string{"*.example.com", "Karmada.Example.COM"} }),
		},
		"Everything": {
			reason: "Whoever made several mistakes learns of all of them at once.",
			config: aConfig(KindControlPlane, func(c *Config) {
				c.Kind = "Something"
				c.Port = 70000
				c.Ports[PortEtcdPeer] = 0
				c.BindAddress, c.AdvertiseAddress = "all", "eth0"
				c.ExternalIPs = []string{"203.0.113.7", "not-an-ip"}
				c.ExternalDNS = []string{"ok.example.com", "under_score", "", "*.*.example.com"}
				c.CertValidity = metav1.Duration{Duration: time.Second}
				c.ServiceCIDR = "10.0.0.0"
			}),
			want: []string{
				`kind "Something"`, "port 70000", "ports.etcdPeer is missing", `bind address "all"`, `advertise address "eth0"`, `external IP "not-an-ip"`,
				`"under_score"`, `external DNS name ""`, `"*.*.example.com"`, "validity 1s", `service range "10.0.0.0"`,
			},
		},
		"AdvertiseEverything": {
			reason: "Nobody can connect to the unspecified address of another host.",
			config: aConfig(KindControlPlane, func(c *Config) { c.AdvertiseAddress = "0.0.0.0" }),
			want:   []string{"advertise address 0.0.0.0"},
		},
		"Zones": {
			reason: "A zone means something on this host only, and nothing in a certificate.",
			config: aConfig(KindControlPlane, func(c *Config) {
				c.BindAddress, c.AdvertiseAddress, c.ExternalIPs = "fe80::1%eth0", "fe80::2%eth0", []string{"fe80::3%eth0"}
			}),
			want: []string{`bind address "fe80::1%eth0"`, `advertise address "fe80::2%eth0"`, `external IP "fe80::3%eth0"`},
		},
		"PortTwice": {
			reason: "Two servers cannot listen on one port, and the second would say so late.",
			config: aConfig(KindControlPlane, func(c *Config) {
				c.Ports[PortEtcdClient] = c.Port
				c.Ports[PortKubeControllerManager] = c.Ports[PortEtcdPeer]
			}),
			want: []string{"ports.etcdClient 32443: the API server", "ports.kubeControllerManager 32445: etcdPeer"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := c.config.Validate()
			if (err == nil) != (len(c.want) == 0) {
				t.Fatalf("error: %v, want %d problems\nreason: %s", err, len(c.want), c.reason)
			}
			if err == nil {
				return
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error does not name %s\nreason: %s\ngot: %v", part, c.reason, err)
				}
			}
			if lines := strings.Split(err.Error(), "\n"); len(lines) != len(c.want) {
				t.Errorf("got %d problems, want %d\nreason: %s\ngot: %v", len(lines), len(c.want), c.reason, err)
			}
		})
	}
}

func TestSaveThenLoad(t *testing.T) {
	want := aConfig(KindControlPlane, func(c *Config) {
		c.PKI, c.ExternalIPs, c.ExternalDNS, c.Provided = "/srv/pki", []string{"203.0.113.7"}, []string{"k.example.com"}, []string{"ca"}
	})
	dir := t.TempDir()
	for i, wantChanged := range []bool{true, false} {
		changed, err := want.Save(dir)
		if err != nil || changed != wantChanged {
			t.Fatalf("save %d: changed %t, error %v; want changed %t: what is right is not written again", i, changed, err, wantChanged)
		}
	}
	got, err := Load(dir)
	if err != nil {
		t.Fatalf("load what was saved: %v", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("loaded differs from saved (-saved +loaded):\n%s", diff)
	}
	info, err := os.Stat(NewLayout(dir, "").ConfigFile())
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("plane.yaml has mode %o, want 600", info.Mode().Perm())
	}
}

// A version that has a component more finds no port for it in what an earlier one has installed.
func TestLoadOfAnEarlierVersion(t *testing.T) {
	dir := t.TempDir()
	if _, err := aConfig(KindControlPlane, func(c *Config) { delete(c.Ports, PortKarmadaAggregatedAPIServer) }).Save(dir); err != nil {
		t.Fatal(err)
	}
	c, err := Load(dir)
	if err != nil {
		t.Fatalf("it can be taken up, got: %v", err)
	}
	if err := c.Validate(); err == nil {
		t.Error("it cannot be run as it is: a port is missing")
	}
	if err := c.ChoosePorts(func(string, int) bool { return false }); err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Errorf("with a port for the new component it is complete, got: %v", err)
	}
}

func TestSaveWithoutDirectory(t *testing.T) {
	if _, err := aConfig(KindControlPlane).Save(filepath.Join(t.TempDir(), "absent")); err == nil {
		t.Error("saving into a directory that is not there succeeded: it is for the caller to make, with the mode it wants")
	}
}

func TestLoad(t *testing.T) {
	const (
		notInstalled = "not installed"
		foreign      = "foreign"
		other        = "other"
	)
	minor := func(delta int) string {
		var major, m int
		if _, err := fmt.Sscanf(KubernetesVersion, "%d.%d", &major, &m); err != nil {
			t.Fatalf("read the version of this program: %v", err)
		}
		return fmt.Sprintf("%d.%d", major, m+delta)
	}
	saved := func(change func(*Config)) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			if _, err := aConfig(KindControlPlane, change).Save(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	file := func(name, content string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) { write(t, filepath.Join(dir, name), content) }
	}
	folder := func(names ...string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			for _, name := range names {
				if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	cases := map[string]struct {
		reason string
		make   func(t *testing.T, dir string)
		want   string // "" is success
		says   string
	}{
		"Missing": {
			reason: "A directory that is not there is free.",
			make: func(t *testing.T, dir string) {
				if err := os.Remove(dir); err != nil {
					t.Fatal(err)
				}
			},
			want: notInstalled,
		},
		"Empty":          {reason: "An empty directory is free.", make: folder(), want: notInstalled},
		"RunOnly":        {reason: "Killed before its first file, init leaves the run directory only.", make: folder("run"), want: notInstalled},
		"LostAndFound":   {reason: "A new file system is not empty.", make: folder("lost+found"), want: notInstalled},
		"TemporaryOnly":  {reason: "Killed in its first write, init leaves a temporary file.", make: file(".plane.yaml.tmp-123", "half"), want: notInstalled},
		"SomethingElse":  {reason: "Files of somebody else are not to be mixed with ours.", make: file("notes.txt", "mine"), want: foreign, says: "notes.txt"},
		"RunAndMore":     {reason: "The run directory excuses nothing beside it.", make: folder("run", "etcd"), want: foreign, says: "etcd"},
		"Installed":      {reason: "What was saved is what is installed.", make: saved(func(*Config) {})},
		"OwnFormat":      {reason: "A later format says so, whatever else it holds.", make: file("plane.yaml", "apiVersion: plane.karmadactl.io/v9\nnovelty: {}\n"), want: foreign, says: `"plane.karmadactl.io/v9"`},
		"LaterSameShape": {reason: "A later format says so, also when all fields are known.", make: saved(func(c *Config) { c.APIVersion = "plane.karmadactl.io/v2" }), want: foreign, says: "another version of karmadactl"},
		"Truncated":      {reason: "A damaged file is not guessed at.", make: file("plane.yaml", "apiVersion: plane.karmadactl.io/v1\nport: [3"), want: foreign, says: "damaged"},
		"UnknownField":   {reason: "A field that this program does not know may matter.", make: file("plane.yaml", "apiVersion: plane.karmadactl.io/v1\nsurprise: 1\n"), want: foreign, says: "surprise"},
		"EmptyFile":      {reason: "An empty file is not an installation of defaults.", make: file("plane.yaml", ""), want: foreign},
		"Invalid":        {reason: "A file that somebody edited is checked as flags are.", make: saved(func(c *Config) { c.Port = 0 }), want: foreign, says: "port 0"},
		"PreviousMinor":  {reason: "Kubernetes takes over the data of the previous minor version.", make: saved(func(c *Config) { c.KubernetesVersion = minor(-1) })},
		"TooOld":         {reason: "Kubernetes does not convert data that is two minor versions behind.", make: saved(func(c *Config) { c.KubernetesVersion = minor(-2) }), want: foreign, says: minor(-2)},
		"Newer":          {reason: "Objects of a later version may not be understood.", make: saved(func(c *Config) { c.KubernetesVersion = minor(1) }), want: foreign, says: minor(1)},
		"NoVersion":      {reason: "A version that is none is damage.", make: saved(func(c *Config) { c.KubernetesVersion = "soon" }), want: foreign, says: `"soon"`},
		"Unreadable":     {reason: "What cannot be read is neither free nor somebody else's: it is an error of its own.", make: folder("plane.yaml"), want: other, says: "plane.yaml"},
		"NotADirectory": {
			reason: "A file in the place of the directory is not free either.",
			make: func(t *testing.T, dir string) {
				if err := os.Remove(dir); err != nil {
					t.Fatal(err)
				}
				write(t, dir, "a file")
			},
			want: other, says: "not a directory",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c.make(t, dir)
			_, err := Load(dir)
			var isForeign *ForeignDirectoryError
			got := other
			switch {
			case err == nil:
				got = ""
			case errors.Is(err, ErrNotInstalled):
				got = notInstalled
			case errors.As(err, &isForeign):
				got = foreign
				if isForeign.Dir != dir || !strings.Contains(err.Error(), dir) {
					t.Errorf("the error names %q, want %q: %v", isForeign.Dir, dir, err)
				}
			}
			if got != c.want {
				t.Fatalf("got %q (%v), want %q\nreason: %s", got, err, c.want, c.reason)
			}
			if err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error does not say %q: %v\nreason: %s", c.says, err, c.reason)
			}
		})
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestChoosePorts(t *testing.T) {
	cases := map[string]struct {
		reason string
		config Config
		inUse  []int
		want   []int // in the order of PortNames; nil: there are none
	}{
		"Fresh": {
			reason: "The ports follow the API server's.",
			config: NewConfig(KindControlPlane, "karmada"),
			want:   []int{32444, 32445, 32446, 32447, 32448, 32449, 32450, 32451},
		},
		"Taken": {
			reason: "Ports of others are stepped over.",
			config: NewConfig(KindControlPlane, "karmada"),
			inUse:  []int{32444, 32446, 32447},
			want:   []int{32445, 32448, 32449, 32450, 32451, 32452, 32453, 32454},
		},
		"Kept": {
			reason: "What is installed moves no port without need; the one that was lost gets the next free one.",
			config: aConfig(KindControlPlane, func(c *Config) { c.Ports[PortEtcdClient] = 40000 }),
			inUse:  []int{32445},
			want:   []int{40000, 32444, 32446, 32447, 32448, 32449, 32450, 32451},
		},
		"MovedAPIServer": {
			reason: "The API server's own port is never given to another.",
			config: aConfig(KindControlPlane, func(c *Config) { c.Port = 32445 }),
			want:   []int{32444, 32452, 32446, 32447, 32448, 32449, 32450, 32451},
		},
		"Twice": {
			reason: "A port that two have is given to the first.",
			config: aConfig(KindControlPlane, func(c *Config) { c.Ports[PortEtcdPeer] = c.Ports[PortEtcdClient] }),
			want:   []int{32444, 32445, 32446, 32447, 32448, 32449, 32450, 32451},
		},
		"Member": {
			reason: "A member has ports for its scheduler and its nodes.",
			config: NewConfig(KindMember, "member1"),
			want:   []int{32444, 32445, 32446, 32447, 32448},
		},
		"TopOfRange": {
			reason: "There is no port above 65535, even where asking about one says that it is free.",
			config: aConfig(KindControlPlane, func(c *Config) { c.Port, c.Ports = 65533, nil }),
		},
		"AllTaken": {
			reason: "The search ends.",
			config: NewConfig(KindControlPlane, "karmada"),
			inUse:  upTo(32444, 33443),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before := fmt.Sprint(c.config.Ports)
			err := c.config.ChoosePorts(func(host string, port int) bool {
				if host != loopback {
					t.Errorf("asked about %s: these ports are on loopback", host)
				}
				return slices.Contains(c.inUse, port)
			})
			if (err == nil) != (c.want != nil) {
				t.Fatalf("error %v, want ports %v\nreason: %s", err, c.want, c.reason)
			}
			if err != nil {
				if after := fmt.Sprint(c.config.Ports); after != before {
					t.Errorf("ports changed from %s to %s although there was an error", before, after)
				}
				return
			}
			var got []int
			for _, name := range c.config.PortNames() {
				got = append(got, c.config.Ports[name])
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("ports differ (-want +got):\n%s\nreason: %s", diff, c.reason)
			}
		})
	}
}

func upTo(first, last int) []int {
	var all []int
	for p := first; p <= last; p++ {
		all = append(all, p)
	}
	return all
}

func TestServers(t *testing.T) {
	cases := map[string]struct {
		reason                string
		bind, advertise       string
		wantLocal, wantServer string
	}{
		"Unspecified":     {"What listens everywhere is reached on loopback from here.", "0.0.0.0", "192.0.2.10", "https://127.0.0.1:32443", "https://192.0.2.10:32443"},
		"UnspecifiedIPv6": {"The same for the other family, which listens on both.", "::", "2001:db8::1", "https://127.0.0.1:32443", "https://[2001:db8::1]:32443"},
		"Bound":           {"What listens on one address is not on loopback.", "192.0.2.10", "203.0.113.7", "https://192.0.2.10:32443", "https://203.0.113.7:32443"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cfg := aConfig(KindControlPlane, func(cfg *Config) { cfg.BindAddress, cfg.AdvertiseAddress = c.bind, c.advertise })
			if got := cfg.LocalServer(); got != c.wantLocal {
				t.Errorf("LocalServer: got %s, want %s\nreason: %s", got, c.wantLocal, c.reason)
			}
			if got := cfg.Server(); got != c.wantServer {
				t.Errorf("Server: got %s, want %s\nreason: %s", got, c.wantServer, c.reason)
			}
		})
	}
}

func TestServerNames(t *testing.T) {
	kubernetes := []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	ours := []string{"karmada-apiserver", "karmada-apiserver.karmada-system.svc", "karmada-apiserver.karmada-system.svc.cluster.local"}
	cases := map[string]struct {
		reason  string
		config  Config
		wantDNS []string
		wantIPs []string
	}{
		"ControlPlane": {
			reason:  "Everything by which components and clients call it (spec: cli/init.md 5).",
			config:  aConfig(KindControlPlane),
			wantDNS: slices.Concat(kubernetes, ours),
			wantIPs: []string{"10.96.0.1", "127.0.0.1", "192.0.2.10", "::1"},
		},
		"Member": {
			reason:  "A member is no karmada-apiserver, and listens on loopback only.",
			config:  aConfig(KindMember, func(c *Config) { c.BindAddress, c.AdvertiseAddress, c.ServiceCIDR = loopback, loopback, "10.11.0.0/16" }),
			wantDNS: kubernetes,
			wantIPs: []string{"10.11.0.1", "127.0.0.1", "::1"},
		},
		"External": {
			reason: "The user's names are added, once each; the bound address counts when it is one.",
			config: aConfig(KindControlPlane, func(c *Config) {
				c.BindAddress = "192.0.2.11"
				c.ExternalIPs = []string{"203.0.113.7", "127.0.0.1", "0:0:0:0:0:0:0:1"}
				c.ExternalDNS = []string{"k.example.com", "localhost"}
			}),
			wantDNS: slices.Concat(kubernetes, ours, []string{"k.example.com"}),
			wantIPs: []string{"10.96.0.1", "127.0.0.1", "192.0.2.10", "192.0.2.11", "203.0.113.7", "::1"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.wantDNS, c.config.serverNames()); diff != "" {
				t.Errorf("DNS names differ (-want +got):\n%s\nreason: %s", diff, c.reason)
			}
			var ips []string
			for _, ip := range c.config.serverIPs() {
				ips = append(ips, ip.String())
			}
			if diff := cmp.Diff(c.wantIPs, ips); diff != "" {
				t.Errorf("addresses differ (-want +got):\n%s\nreason: %s", diff, c.reason)
			}
			if diff := cmp.Diff(slices.Concat(c.wantDNS, c.wantIPs), c.config.ServerNames()); diff != "" {
				t.Errorf("what people are told differs (-want +got):\n%s\nreason: %s", diff, c.reason)
			}
		})
	}
}

func TestNewMemberConfig(t *testing.T) {
	type owned struct {
		prefix netip.Prefix
		owner  string
	}
	var ranges []owned
	claimRange := func(cidr, who string) {
		p, err := netip.ParsePrefix(cidr)
		if err != nil {
			t.Fatalf("range of %s: %v", who, err)
		}
		for _, other := range ranges {
			if other.prefix.Overlaps(p) {
				t.Errorf("%s of %s overlaps %s of %s: they could not reach one another", p, who, other.prefix, other.owner)
			}
		}
		ranges = append(ranges, owned{p, who})
	}
	ports := map[int]string{}
	claimPort := func(port int, who string) {
		if other, ok := ports[port]; ok {
			t.Errorf("port %d is used by %s and %s", port, who, other)
		}
		ports[port] = who
	}
	claimRange(NewConfig(KindControlPlane, "karmada").ServiceCIDR, "the control plane")
	for i := 1; i <= 100; i++ {
		c, err := NewMemberConfig(fmt.Sprintf("member%d", i), i, 4)
		if err != nil {
			t.Fatalf("member %d: %v", i, err)
		}
		if err := c.ChoosePorts(func(string, int) bool { return false }); err != nil {
			t.Fatalf("member %d: %v", i, err)
		}
		if err := c.Validate(); err != nil {
			t.Errorf("member %d: %v", i, err)
		}
		claimRange(c.PodCIDR, "pods of "+c.Name)
		claimRange(c.ServiceCIDR, "services of "+c.Name)
		claimPort(c.Port, c.Name)
		for _, p := range c.Ports {
			claimPort(p, c.Name)
		}
	}
	for _, i := range []int{-1, 0, 101} {
		if _, err := NewMemberConfig("member", i, 4); err == nil {
			t.Errorf("member %d: no error, although there is no range for it", i)
		}
	}
}
