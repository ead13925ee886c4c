package certs

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/keyutil"
)

// now is when most tests happen; the handshakes are told the same time.
func now() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 4e8, time.UTC) }

func tree() []Spec {
	local := []net.IP{net.IPv4(127, 0, 0, 1)}
	return []Spec{
		{Name: "ca", CommonName: "karmada"},
		{Name: "apiserver", CA: "ca", CommonName: "karmada-apiserver", DNSNames: []string{"localhost", "*.karmada-system.svc"}, IPs: local, Usages: ServerAuth},
		{Name: "admin", CA: "ca", CommonName: "system:admin", Organization: []string{"system:masters"}, Usages: ClientAuth},
		{Name: "etcd/ca", CommonName: "etcd-ca"},
		{Name: "etcd/peer", CA: "etcd/ca", CommonName: "etcd-peer", DNSNames: []string{"localhost"}, IPs: local, Usages: ServerAuth | ClientAuth},
	}
}

func options() Options { return Options{Now: now(), KeyPairs: []string{"sa"}} }

func TestEnsureCreates(t *testing.T) {
	d := Dir{Path: filepath.Join(t.TempDir(), "deep", "pki")}
	got := mustEnsure(t, d, tree(), options())

	var names []string
	for _, c := range got {
		names = append(names, fmt.Sprintf("%s %s", c.Name, c.Action))
	}
	want := []string{"ca created", "etcd/ca created", "apiserver created", "admin created", "etcd/peer created", "sa created"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("authorities come first, then leaves, then key pairs (-want +got):\n%s", diff)
	}
	verifyTree(t, d, now())

	wantModes := map[string]fs.FileMode{".": 0o700, "etcd": 0o700}
	for _, s := range tree() {
		wantModes[s.Name+".crt"], wantModes[s.Name+".key"] = 0o644, 0o600
	}
	wantModes["sa.key"], wantModes["sa.pub"] = 0o600, 0o644
	if diff := cmp.Diff(wantModes, modes(t, d)); diff != "" {
		t.Errorf("files and modes (-want +got):\n%s", diff)
	}

	ca, leaf := load(t, d, "ca"), load(t, d, "apiserver")
	if want := now().Add(-5 * time.Minute).Truncate(time.Second); !ca.NotBefore.Equal(want) || !leaf.NotBefore.Equal(want) {
		t.Errorf("NotBefore: got %v and %v, want %v: clocks differ between hosts", ca.NotBefore, leaf.NotBefore, want)
	}
	if want := now().Add(10 * 365 * 24 * time.Hour).Truncate(time.Second); !ca.NotAfter.Equal(want) {
		t.Errorf("authority's NotAfter: got %v, want %v", ca.NotAfter, want)
	}
	if want := now().Add(8760 * time.Hour).Truncate(time.Second); !leaf.NotAfter.Equal(want) {
		t.Errorf("leaf's NotAfter: got %v, want %v", leaf.NotAfter, want)
	}
	if ca.SerialNumber.Cmp(leaf.SerialNumber) == 0 || leaf.SerialNumber.Sign() <= 0 || leaf.SerialNumber.BitLen() > 129 {
		t.Errorf("serial numbers: got %v and %v", ca.SerialNumber, leaf.SerialNumber)
	}
	if leaf.IsCA {
		t.Error("a leaf must not be able to sign")
	}
}

func TestEnsureIsIdempotent(t *testing.T) {
	d := Dir{Path: t.TempDir()}
	mustEnsure(t, d, tree(), options())
	before := snapshot(t, d)

	o := options()
	o.Now = now().Add(time.Hour)
	for _, c := range mustEnsure(t, d, tree(), o) {
		if c.Changed() {
			t.Errorf("what is right must stay: %s", c)
		}
	}
	if diff := cmp.Diff(before, snapshot(t, d)); diff != "" {
		t.Errorf("files changed (-before +after):\n%s", diff)
	}
}

func TestPlanWritesNothing(t *testing.T) {
	d := Dir{Path: filepath.Join(t.TempDir(), "pki")}
	planned, err := d.Plan(tree(), options())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(d.Path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a plan must not even make the directory: %v", err)
	}
	done := mustEnsure(t, d, tree(), options())
	if diff := cmp.Diff(planned, done); diff != "" {
		t.Errorf("Ensure did something else than planned (-planned +done):\n%s", diff)
	}
}

// TestDamage takes one file at a time away, or half of it, as a crash, a full
// disk or a person would. Whatever can be made anew must be, and the tree must
// work; what cannot must be refused without touching anything.
func TestDamage(t *testing.T) {
	refused := map[string]string{
		"cut ca.crt": "a damaged authority", "cut ca.key": "a damaged authority", "lost ca.key": "an authority without key",
		"cut etcd/ca.crt": "a damaged authority", "cut etcd/ca.key": "a damaged authority", "lost etcd/ca.key": "an authority without key",
		"cut sa.key": "a damaged key", "lost sa.key": "tokens in use are signed by it",
		"emptied ca.crt": "a damaged authority", "emptied ca.key": "a damaged authority",
		"emptied etcd/ca.crt": "a damaged authority", "emptied etcd/ca.key": "a damaged authority",
		"emptied sa.key": "a damaged key",
	}
	damage := map[string]func(string) error{
		"lost": os.Remove,
		"cut": func(p string) error {
			info, err := os.Stat(p)
			if err != nil {
				return err
			}
			return os.Truncate(p, info.Size()/2)
		},
		"emptied": func(p string) error { return os.Truncate(p, 0) },
	}
	pristine := Dir{Path: t.TempDir()}
	mustEnsure(t, pristine, tree(), options())

	for _, file := range pristine.Files(tree(), options()) {
		rel, err := filepath.Rel(pristine.Path, file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(rel, "-chain.pem") {
			continue
		}
		for how, do := range damage {
			name := how + " " + rel
			t.Run(name, func(t *testing.T) {
				d := Dir{Path: t.TempDir()}
				if err := os.CopyFS(d.Path, os.DirFS(pristine.Path)); err != nil {
					t.Fatal(err)
				}
				if err := do(filepath.Join(d.Path, rel)); err != nil {
					t.Fatal(err)
				}
				before := snapshot(t, d)

				got, err := d.Ensure(t.Context(), tree(), options())
				if reason := refused[name]; reason != "" {
					var unusable *UnusableError
					if !errors.As(err, &unusable) {
						t.Fatalf("%s: want an UnusableError, got %v", reason, err)
					}
					if unusable.WayOut == "" || !strings.Contains(err.Error(), d.Path) {
						t.Errorf("the error must name the files and the way out: %v", err)
					}
					if diff := cmp.Diff(before, snapshot(t, d)); diff != "" {
						t.Errorf("a refusal must change nothing:\n%s", diff)
					}
					return
				}
				if err != nil {
					t.Fatalf("must be put right: %v", err)
				}
				verifyTree(t, d, now())
				after := snapshot(t, d)
				for path, old := range snapshot(t, pristine) {
					sameEntry := strings.TrimSuffix(path, filepath.Ext(path)) == strings.TrimSuffix(rel, filepath.Ext(rel))
					if !sameEntry && after[path] != old {
						t.Errorf("%s was changed too: %v", path, got)
					}
				}
				for _, key := range []string{"ca.key", "etcd/ca.key", "sa.key"} {
					if after[key] != before[key] {
						t.Errorf("%s must stay for ever", key)
					}
				}
			})
		}
	}
}

// TestKilled stops Ensure before each of its writes: the next run must complete it.
func TestKilled(t *testing.T) {
	all := 0
	plan, err := Dir{Path: t.TempDir()}.plan(tree(), options())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range plan {
		all += len(s.writes)
	}
	for n := range all + 1 {
		t.Run(fmt.Sprintf("After%dWrites", n), func(t *testing.T) {
			d := Dir{Path: t.TempDir()}
			steps, err := d.plan(tree(), options())
			if err != nil {
				t.Fatal(err)
			}
			left := n
			for _, s := range steps {
				for _, w := range s.writes {
					if left > 0 {
						if err := w.run(); err != nil {
							t.Fatal(err)
						}
						left--
					}
				}
			}
			temp := filepath.Join(d.Path, ".ca.key.tmp-1234")
			if err := os.WriteFile(temp, []byte("half a k"), 0o600); err != nil {
				t.Fatal(err)
			}
			before := snapshot(t, d)
			mustEnsure(t, d, tree(), options())
			verifyTree(t, d, now())
			after := snapshot(t, d)
			if before["ca.key"] != "" && before["ca.key"] != after["ca.key"] {
				t.Error("the authority's key was made twice")
			}
			if _, err := os.Lstat(temp); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the temporary file of the killed run is still there: %v", err)
			}
		})
	}
}

func TestLeafIsRemade(t *testing.T) {
	const year = 365 * 24 * time.Hour
	cases := map[string]struct {
		reason string
		change func(t *testing.T, d Dir, specs []Spec, o *Options)
		want   Action
		why    string
	}{
		"Expired": {
			reason: "Nobody accepts it any more.",
			change: func(_ *testing.T, _ Dir, _ []Spec, o *Options) { o.Now = now().Add(year + time.Minute) },
			want:   Renewed, why: "it expired at 2027-03-01T12:00:00Z",
		},
		"InRenewalWindow": {
			reason: "It is renewed before anybody is locked out.",
			change: func(_ *testing.T, _ Dir, _ []Spec, o *Options) {
				o.Now, o.RenewBefore = now().Add(year-29*24*time.Hour), 30*24*time.Hour
			},
			want: Renewed, why: "it would expire at 2027-03-01T12:00:00Z",
		},
		"OutsideRenewalWindow": {
			reason: "Renewal has a time, and it is not yet.",
			change: func(_ *testing.T, _ Dir, _ []Spec, o *Options) {
				o.Now, o.RenewBefore = now().Add(year-31*24*time.Hour), 30*24*time.Hour
			},
			want: Kept,
		},
		"WindowLongerThanLife": {
			reason: "A window longer than the life of a leaf must not renew it each time.",
			change: func(_ *testing.T, _ Dir, _ []Spec, o *Options) { o.RenewBefore = 10 * year },
			want:   Kept,
		},
		"ClockWentBack": {
			reason: "A leaf from the future is as useless as an expired one.",
			change: func(t *testing.T, d Dir, specs []Spec, o *Options) {
				later := *o
				later.Now = now().Add(24 * time.Hour)
				remove(t, d.CertFile("apiserver"))
				mustEnsure(t, d, specs, later)
			},
			want: Renewed, why: "it was not valid before 2026-03-02T11:55:00Z",
		},
		"NewIP": {
			reason: "Clients that use the new address would refuse it.",
			change: func(_ *testing.T, _ Dir, specs []Spec, _ *Options) {
				specs[1].IPs = append(slices.Clone(specs[1].IPs), net.ParseIP("10.0.0.5"))
			},
			want: Renewed, why: "it did not cover 10.0.0.5",
		},
		"NewName": {
			reason: "Clients that use the new name would refuse it.",
			change: func(_ *testing.T, _ Dir, specs []Spec, _ *Options) {
				specs[1].DNSNames = append(slices.Clone(specs[1].DNSNames), "k.example.org")
			},
			want: Renewed, why: "it did not cover k.example.org",
		},
		"FewerNames": {
			reason: "It still covers all that is asked for; clients may use the old name.",
			change: func(_ *testing.T, _ Dir, specs []Spec, _ *Options) { specs[1].DNSNames = []string{"LOCALHOST"} },
			want:   Kept,
		},
		"OtherCommonName": {
			reason: "It stands for another user.",
			change: func(_ *testing.T, _ Dir, specs []Spec, _ *Options) { specs[1].CommonName = "x" },
			want:   Renewed, why: `its common name was "karmada-apiserver", not "x"`,
		},
		"GroupTooMany": {
			reason: "A group too many is a right too many; the test starts with one and asks for none.",
			change: func(t *testing.T, d Dir, specs []Spec, o *Options) {
				wider := slices.Clone(specs)
				wider[1].Organization = []string{"system:masters"}
				remove(t, d.CertFile("apiserver"))
				mustEnsure(t, d, wider, *o)
			},
			want: Renewed, why: `its organization was ["system:masters"], not []`,
		},
		"OtherUsage": {
			reason: "A server's certificate must not be good for logging in.",
			change: func(t *testing.T, d Dir, specs []Spec, o *Options) {
				wider := slices.Clone(specs)
				wider[1].Usages = ServerAuth | ClientAuth
				remove(t, d.CertFile("apiserver"))
				mustEnsure(t, d, wider, *o)
			},
			want: Renewed, why: "its usages were others",
		},
		"OtherAuthority": {
			reason: "A leaf of another authority is trusted by nobody here.",
			change: func(t *testing.T, d Dir, _ []Spec, _ *Options) {
				strange := Dir{Path: t.TempDir()}
				mustEnsure(t, strange, tree(), options())
				copyFile(t, strange.CertFile("apiserver"), d.CertFile("apiserver"))
				copyFile(t, strange.KeyFile("apiserver"), d.KeyFile("apiserver"))
			},
			want: Renewed, why: "it was signed by another authority",
		},
		"OtherKey": {
			reason: "Key and certificate from two runs do not work together.",
			change: func(t *testing.T, d Dir, _ []Spec, _ *Options) {
				copyFile(t, d.KeyFile("admin"), d.KeyFile("apiserver"))
			},
			want: Renewed, why: "its key did not belong to its certificate",
		},
		"NewAuthority": {
			reason: "Whoever removes an authority on purpose gets leaves that work with the new one.",
			change: func(t *testing.T, d Dir, _ []Spec, _ *Options) {
				remove(t, d.CertFile("ca"))
				remove(t, d.KeyFile("ca"))
			},
			want: Renewed, why: "it was signed by another authority",
		},
		"OpenKey": {
			reason: "A key that others can read is closed; the certificate stays right.",
			change: func(t *testing.T, d Dir, _ []Spec, _ *Options) {
				if err := os.Chmod(d.KeyFile("apiserver"), 0o644); err != nil {
					t.Fatal(err)
				}
			},
			want: Tightened, why: "others could read its key (mode 0644)",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, specs, o := Dir{Path: t.TempDir()}, tree(), options()
			mustEnsure(t, d, specs, o)
			tc.change(t, d, specs, &o)

			got := find(t, mustEnsure(t, d, specs, o), "apiserver")
			if got.Action != tc.want || got.Reason != tc.why {
				t.Errorf("%s\ngot %q because %q, want %q because %q", tc.reason, got.Action, got.Reason, tc.want, tc.why)
			}
			if again := find(t, mustEnsure(t, d, specs, o), "apiserver"); again.Changed() {
				t.Errorf("%s\nthe second run changed it again: %s", tc.reason, again)
			}
			verifyTree(t, d, o.Now)
			if mode := modes(t, d)["apiserver.key"]; mode != 0o600 {
				t.Errorf("mode of the key: %v", mode)
			}
		})
	}
}

func TestLeafNeverOutlivesItsAuthority(t *testing.T) {
	specs := tree()
	specs[0].Validity = 1000 * time.Hour
	d, o := Dir{Path: t.TempDir()}, options()
	mustEnsure(t, d, specs, o)
	ca, leaf := load(t, d, "ca"), load(t, d, "apiserver")
	if !leaf.NotAfter.Equal(ca.NotAfter) {
		t.Errorf("leaf ends %v, its authority %v", leaf.NotAfter, ca.NotAfter)
	}
	o.Now, o.RenewBefore = now().Add(999*time.Hour), 100*time.Hour
	if c := find(t, mustEnsure(t, d, specs, o), "apiserver"); c.Changed() {
		t.Errorf("a renewal that gains nothing would happen on each run: %s", c)
	}
	o.Now = now().Add(1001 * time.Hour)
	var unusable *UnusableError
	if _, err := d.Ensure(t.Context(), specs, o); !errors.As(err, &unusable) {
		t.Errorf("an expired authority is for the user to replace: got %v", err)
	}
}

func TestErrorsAreCollectedBeforeAnyWrite(t *testing.T) {
	d := Dir{Path: t.TempDir()}
	mustEnsure(t, d, tree(), options())
	remove(t, d.KeyFile("ca"))
	remove(t, d.KeyFile("sa"))
	remove(t, d.CertFile("etcd/peer"))
	before := snapshot(t, d)
	_, err := d.Ensure(t.Context(), tree(), options())
	if err == nil || !strings.Contains(err.Error(), `"ca"`) || !strings.Contains(err.Error(), `"sa"`) {
		t.Errorf("both problems must be named: %v", err)
	}
	if diff := cmp.Diff(before, snapshot(t, d)); diff != "" {
		t.Errorf("nothing may be half made:\n%s", diff)
	}
}

func TestUnreadableIsNotMissing(t *testing.T) {
	cases := map[string]struct {
		reason string
		damage func(t *testing.T, d Dir)
	}{
		"FileInThePath": {
			reason: "A file where a folder should be is somebody's file.",
			damage: func(t *testing.T, d Dir) {
				if err := os.RemoveAll(filepath.Join(d.Path, "etcd")); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(d.Path, "etcd"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			},
		},
		"FolderInsteadOfKey": {
			reason: "A folder where a file should be must not be taken for a missing key.",
			damage: func(t *testing.T, d Dir) {
				remove(t, d.KeyFile("ca"))
				if err := os.Mkdir(d.KeyFile("ca"), 0o700); err != nil {
					t.Fatal(err)
				}
			},
		},
		"LinkLoop": {
			reason: "A link that leads nowhere cannot be read, which is not the same as not there.",
			damage: func(t *testing.T, d Dir) {
				remove(t, d.KeyFile("ca"))
				if err := os.Symlink("ca.key", d.KeyFile("ca")); err != nil {
					t.Fatal(err)
				}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Dir{Path: t.TempDir()}
			mustEnsure(t, d, tree(), options())
			tc.damage(t, d)
			if got, err := d.Ensure(t.Context(), tree(), options()); err == nil {
				t.Errorf("%s\nno error, but %v", tc.reason, got)
			}
		})
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d := Dir{Path: filepath.Join(t.TempDir(), "pki")}
	if _, err := d.Ensure(ctx, tree(), options()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(d.Path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("written after the end: %v", err)
	}
}

func TestValidate(t *testing.T) {
	cases := map[string]struct {
		reason string
		specs  []Spec
		o      Options
		want   string
	}{
		"OutsideDir":      {reason: "No name may leave the directory.", specs: []Spec{{Name: "../ca", CommonName: "x"}}, want: "relative path"},
		"EmptyName":       {reason: "A nameless file cannot be.", specs: []Spec{{CommonName: "x"}}, want: "relative path"},
		"Twice":           {reason: "Two entries must not share files.", specs: []Spec{{Name: "a", CommonName: "x"}, {Name: "a", CommonName: "y"}}, want: "taken"},
		"TwiceWithPair":   {reason: "A key pair must not share files either.", specs: []Spec{{Name: "a", CommonName: "x"}}, o: Options{KeyPairs: []string{"a"}}, want: "taken"},
		"NoAuthority":     {reason: "Somebody must sign.", specs: []Spec{{Name: "a", CA: "b", CommonName: "x", Usages: ClientAuth}}, want: `authority "b"`},
		"LeafSigns":       {reason: "A leaf is no authority.", specs: []Spec{{Name: "c", CommonName: "c"}, {Name: "a", CA: "c", CommonName: "x", Usages: ClientAuth}, {Name: "b", CA: "a", CommonName: "x", Usages: ClientAuth}}, want: `authority "a"`},
		"NoUsage":         {reason: "A leaf without usage would be good for all.", specs: []Spec{{Name: "c", CommonName: "c"}, {Name: "a", CA: "c", CommonName: "x"}}, want: "neither"},
		"ServerNameless":  {reason: "No client accepts a server without names.", specs: []Spec{{Name: "c", CommonName: "c"}, {Name: "a", CA: "c", CommonName: "x", Usages: ServerAuth}}, want: "no DNS name"},
		"EmptyDNSName":    {reason: "An empty flag must not become an empty name.", specs: []Spec{{Name: "c", CommonName: "c"}, {Name: "a", CA: "c", CommonName: "x", Usages: ServerAuth, DNSNames: []string{""}}}, want: "empty"},
		"BadIP":           {reason: "What is no address cannot be signed.", specs: []Spec{{Name: "c", CommonName: "c", IPs: []net.IP{{1, 2}}}}, want: "not valid"},
		"NoCommonName":    {reason: "A certificate must stand for somebody.", specs: []Spec{{Name: "c"}}, want: "common name"},
		"SuppliedUnknown": {reason: "A supplied authority must not be silently unused.", specs: []Spec{{Name: "c", CommonName: "c"}}, o: Options{Supplied: map[string]*Authority{"d": {}}}, want: `"d"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Dir{Path: t.TempDir()}.Plan(tc.specs, tc.o)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\ngot %v, want it to say %q", tc.reason, err, tc.want)
			}
		})
	}
}

// brought is an authority as a company would hand it out.
type brought struct {
	root, issuing       *x509.Certificate
	rootKey, issuingKey crypto.Signer
}

func bring(t *testing.T, modify func(c *x509.Certificate)) brought {
	t.Helper()
	var b brought
	var err error
	if b.rootKey, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	if b.issuingKey, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	b.root = signedCA(t, "Example Root", nil, b.rootKey, nil, b.rootKey.Public(), nil)
	b.issuing = signedCA(t, "Example Issuing", b.root, b.rootKey, nil, b.issuingKey.Public(), modify)
	return b
}

func signedCA(t *testing.T, name string, parent *x509.Certificate, parentKey crypto.Signer, serial *big.Int, pub crypto.PublicKey, modify func(*x509.Certificate)) *x509.Certificate {
	t.Helper()
	if serial == nil {
		serial = big.NewInt(1)
	}
	c := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: now().Add(-time.Hour), NotAfter: now().Add(20 * 8760 * time.Hour),
	}
	if modify != nil {
		modify(c)
	}
	if parent == nil {
		parent = c
	}
	signed, err := sign(c, parent, pub, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func TestSupplied(t *testing.T) {
	b := bring(t, nil)
	renewed := signedCA(t, "Example Issuing", b.root, b.rootKey, big.NewInt(2), b.issuingKey.Public(), nil)
	supplied := func(a *Authority) Options {
		o := options()
		o.Supplied = map[string]*Authority{"ca": a, "etcd/ca": nil}
		return o
	}
	issuing := &Authority{cert: b.issuing, key: b.issuingKey, parents: []*x509.Certificate{b.root}}
	root := &Authority{cert: b.root, key: b.rootKey}

	cases := map[string]struct {
		reason  string
		before  func(t *testing.T, d Dir)
		give    *Authority
		want    Action
		refused bool
	}{
		"Root":         {reason: "A root on an empty directory is copied in.", give: root, want: Imported},
		"Intermediate": {reason: "So is one below a root, with its parents.", give: issuing, want: Imported},
		"Again": {
			reason: "The same flags a second time change nothing.",
			before: func(t *testing.T, d Dir) { mustEnsure(t, d, tree(), supplied(issuing)) },
			give:   issuing, want: Kept,
		},
		"WithoutFlags": {
			reason: "Once in place, the flags can be left out.",
			before: func(t *testing.T, d Dir) { mustEnsure(t, d, tree(), supplied(issuing)) },
			give:   nil, want: Kept,
		},
		"RenewedCertificate": {
			reason: "A newer certificate for the same key is the same authority; leaves stay valid.",
			before: func(t *testing.T, d Dir) { mustEnsure(t, d, tree(), supplied(issuing)) },
			give:   &Authority{cert: renewed, key: b.issuingKey, parents: []*x509.Certificate{b.root}}, want: Imported,
		},
		"ParentsDropped": {
			reason: "Parents are what was supplied last.",
			before: func(t *testing.T, d Dir) { mustEnsure(t, d, tree(), supplied(issuing)) },
			give:   &Authority{cert: b.issuing, key: b.issuingKey}, want: Imported,
		},
		"Generated": {
			reason: "An authority that is in use must not be replaced.",
			before: func(t *testing.T, d Dir) { mustEnsure(t, d, tree(), options()) },
			give:   root, refused: true,
		},
		"OtherSupplied": {
			reason: "Nor one that was supplied earlier.",
			before: func(t *testing.T, d Dir) { mustEnsure(t, d, tree(), supplied(issuing)) },
			give:   root, refused: true,
		},
		"KeyLost": {
			reason: "Supplying it again is a way out of a lost key.",
			before: func(t *testing.T, d Dir) {
				mustEnsure(t, d, tree(), supplied(issuing))
				remove(t, d.KeyFile("ca"))
			},
			give: issuing, want: Imported,
		},
		"CertificateCut": {
			reason: "And of a damaged certificate, as the key shows that it is the same one.",
			before: func(t *testing.T, d Dir) {
				mustEnsure(t, d, tree(), supplied(issuing))
				if err := os.Truncate(d.CertFile("ca"), 10); err != nil {
					t.Fatal(err)
				}
			},
			give: issuing, want: Imported,
		},
		"BothCut": {
			reason: "When nothing shows which one it was, nothing is replaced.",
			before: func(t *testing.T, d Dir) {
				mustEnsure(t, d, tree(), supplied(issuing))
				for _, f := range []string{d.CertFile("ca"), d.KeyFile("ca")} {
					if err := os.Truncate(f, 10); err != nil {
						t.Fatal(err)
					}
				}
			},
			give: issuing, refused: true,
		},
		"CertificateLostNotSupplied": {
			reason: "A company's key must not be given a certificate that the company never signed.",
			before: func(t *testing.T, d Dir) {
				mustEnsure(t, d, tree(), supplied(issuing))
				remove(t, d.CertFile("ca"))
			},
			give: nil, refused: true,
		},
		"StrangeKeyLeft": {
			reason: "A key without certificate may be somebody's.",
			before: func(t *testing.T, d Dir) {
				mustEnsure(t, d, tree(), options())
				remove(t, d.CertFile("ca"))
			},
			give: root, refused: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Dir{Path: t.TempDir()}
			if tc.before != nil {
				tc.before(t, d)
			}
			before := snapshot(t, d)
			got, err := d.Ensure(t.Context(), tree(), supplied(tc.give))
			if tc.refused {
				var unusable *UnusableError
				if !errors.As(err, &unusable) || unusable.WayOut == "" {
					t.Errorf("%s\nwant an UnusableError with a way out, got %v", tc.reason, err)
				}
				if diff := cmp.Diff(before, snapshot(t, d)); diff != "" {
					t.Errorf("%s\nfiles changed:\n%s", tc.reason, diff)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\nEnsure: %v", tc.reason, err)
			}
			if c := find(t, got, "ca"); c.Action != tc.want {
				t.Errorf("%s\ngot %s, want %s", tc.reason, c, tc.want)
			}
			verifyTree(t, d, now())
			if mode := modes(t, d)["ca.key"]; mode != 0o600 {
				t.Errorf("mode of the copied key: %v", mode)
			}
			for _, c := range mustEnsure(t, d, tree(), supplied(tc.give)) {
				if c.Changed() {
					t.Errorf("%s\nthe second run changed something: %s", tc.reason, c)
				}
			}
		})
	}

	t.Run("KilledBeforeEachWrite", func(t *testing.T) {
		for n := range 3 {
			d := Dir{Path: t.TempDir()}
			steps, err := d.plan(tree(), supplied(issuing))
			if err != nil {
				t.Fatal(err)
			}
			if len(steps[0].writes) != 3 {
				t.Fatalf("want chain, certificate and key, got %v", steps[0].change.Files)
			}
			for _, w := range steps[0].writes[:n] {
				if err := w.run(); err != nil {
					t.Fatal(err)
				}
			}
			mustEnsure(t, d, tree(), supplied(issuing))
			verifyTree(t, d, now())
		}
	})

	t.Run("PeerTrustsTheRootAlone", func(t *testing.T) {
		d := Dir{Path: t.TempDir()}
		mustEnsure(t, d, tree(), supplied(issuing))
		pool := x509.NewCertPool()
		pool.AddCert(b.root)
		handshake(t, d, "apiserver", "admin", pool, poolOf(t, d, "ca"), now())
	})

	t.Run("SiblingIsNotTrusted", func(t *testing.T) {
		d := Dir{Path: t.TempDir()}
		mustEnsure(t, d, tree(), supplied(issuing))
		certs := loadAll(t, d.CertFile("ca"))
		if len(certs) != 1 || !certs[0].Equal(b.issuing) {
			t.Error("ca.crt must hold the issuing authority alone: whatever else the root signed is no client of ours")
		}
	})

	t.Run("NameConstraints", func(t *testing.T) {
		narrow := bring(t, func(c *x509.Certificate) {
			c.PermittedDNSDomains, c.PermittedDNSDomainsCritical = []string{"example.org"}, true
		})
		d := Dir{Path: filepath.Join(t.TempDir(), "pki")}
		a := &Authority{cert: narrow.issuing, key: narrow.issuingKey, parents: []*x509.Certificate{narrow.root}}
		if _, err := d.Ensure(t.Context(), tree(), supplied(a)); err == nil || !strings.Contains(err.Error(), "Example Issuing") {
			t.Errorf("an authority that may not sign our names must be refused: %v", err)
		}
		if _, err := os.Lstat(d.Path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("something was written: %v", err)
		}
	})
}

func TestLoadAuthority(t *testing.T) {
	b := bring(t, nil)
	expired := signedCA(t, "Old", b.root, b.rootKey, nil, b.issuingKey.Public(), func(c *x509.Certificate) { c.NotAfter = now().Add(-time.Minute) })
	future := signedCA(t, "Soon", b.root, b.rootKey, nil, b.issuingKey.Public(), func(c *x509.Certificate) { c.NotBefore = now().Add(time.Minute) })
	leaf := signedCA(t, "Leaf", b.root, b.rootKey, nil, b.issuingKey.Public(), func(c *x509.Certificate) { c.IsCA = false })
	noSign := signedCA(t, "CRL only", b.root, b.rootKey, nil, b.issuingKey.Public(), func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageCRLSign })
	stranger := bring(t, nil)
	weakKey, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	weak := signedCA(t, "Weak", b.root, b.rootKey, nil, weakKey.Public(), nil)

	sec1, err := x509.MarshalECPrivateKey(b.issuingKey.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	pemOf := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	sec1PEM := pemOf("EC PRIVATE KEY", sec1)
	pkcs1PEM := pemOf("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(b.rootKey.(*rsa.PrivateKey)))
	pkcs8PEM, err := encodeKey(b.issuingKey)
	if err != nil {
		t.Fatal(err)
	}
	good := encodeCertificates(b.issuing)

	cases := map[string]struct {
		reason    string
		cert, key []byte // nil: flag not given
		want      string // in the error; empty: good
	}{
		"PKCS8":        {reason: "What openssl genpkey makes.", cert: good, key: pkcs8PEM},
		"SEC1":         {reason: "What openssl ecparam makes, with its parameters first.", cert: good, key: append(pemOf("EC PARAMETERS", []byte{6, 5, 43, 129, 4, 0, 34}), sec1PEM...)},
		"PKCS1":        {reason: "What older tools make for RSA.", cert: encodeCertificates(b.root), key: pkcs1PEM},
		"Bundle":       {reason: "The parents may follow.", cert: encodeCertificates(b.issuing, b.root), key: pkcs8PEM},
		"NoKey":        {reason: "A certificate alone signs nothing.", cert: good, want: "--ca-key-file"},
		"NoCert":       {reason: "A key alone is trusted by nobody.", key: pkcs8PEM, want: "--ca-cert-file"},
		"NotPEM":       {reason: "DER and anything else is refused.", cert: b.issuing.Raw, key: pkcs8PEM, want: "PEM"},
		"CutCert":      {reason: "Half a file is not taken for a shorter chain.", cert: encodeCertificates(b.issuing, b.root)[:len(good)+50], key: pkcs8PEM, want: "incomplete"},
		"KeyNotPEM":    {reason: "The key has its own message.", cert: good, key: []byte("x"), want: "private key"},
		"Encrypted":    {reason: "We have no way to ask for the passphrase.", cert: good, key: pemOf("ENCRYPTED PRIVATE KEY", []byte("x")), want: "decrypt it first"},
		"OtherKey":     {reason: "They must belong together.", cert: good, key: pkcs1PEM, want: "not the key"},
		"RootFirst":    {reason: "In a bundle the first one signs.", cert: encodeCertificates(b.root, b.issuing), key: pkcs8PEM, want: "not the key"},
		"Leaf":         {reason: "A server's certificate is no authority.", cert: encodeCertificates(leaf), key: pkcs8PEM, want: "CA:TRUE"},
		"NoCertSign":   {reason: "Peers would refuse everything it signs.", cert: encodeCertificates(noSign), key: pkcs8PEM, want: "keyCertSign"},
		"Expired":      {reason: "So they would then.", cert: encodeCertificates(expired), key: pkcs8PEM, want: "expired at 2026-03-01T11:59:00Z"},
		"NotYet":       {reason: "And before its time.", cert: encodeCertificates(future), key: pkcs8PEM, want: "not valid before"},
		"Weak":         {reason: "Clients refuse short RSA keys.", cert: encodeCertificates(weak), key: pemOf("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(weakKey)), want: "1024 bits"},
		"WrongParents": {reason: "Parents that are none would be sent to every peer.", cert: encodeCertificates(b.issuing, stranger.root), key: pkcs8PEM, want: "did not sign"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := func(name string, data []byte) string {
				if data == nil {
					return ""
				}
				path := filepath.Join(t.TempDir(), name)
				if err := os.WriteFile(path, data, 0o600); err != nil {
					t.Fatal(err)
				}
				return path
			}
			certFile, keyFile := file("c.pem", tc.cert), file("k.pem", tc.key)
			a, err := LoadAuthority(certFile, keyFile, now())
			if tc.want == "" {
				if err != nil {
					t.Fatalf("%s\n%v", tc.reason, err)
				}
				d, o := Dir{Path: t.TempDir()}, options()
				o.Supplied = map[string]*Authority{"ca": a}
				mustEnsure(t, d, tree(), o)
				verifyTree(t, d, now())
				return
			}
			var unusable *UnusableError
			if !errors.As(err, &unusable) || !strings.Contains(err.Error(), tc.want) || unusable.WayOut == "" {
				t.Errorf("%s\ngot %v, want it to say %q", tc.reason, err, tc.want)
			}
			if strings.Contains(fmt.Sprint(err), "PRIVATE KEY-----") {
				t.Errorf("the error shows a key: %v", err)
			}
		})
	}
	t.Run("NotGiven", func(t *testing.T) {
		if a, err := LoadAuthority("", "", now()); a != nil || err != nil {
			t.Errorf("got %v, %v", a, err)
		}
	})
	t.Run("NoSuchFile", func(t *testing.T) {
		_, err := LoadAuthority(filepath.Join(t.TempDir(), "none"), filepath.Join(t.TempDir(), "none"), now())
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v", err)
		}
	})
}

func TestKeyPair(t *testing.T) {
	d, o := Dir{Path: t.TempDir()}, options()
	mustEnsure(t, d, nil, o)
	key, err := keyutil.PrivateKeyFromFile(d.KeyFile("sa"))
	if err != nil {
		t.Fatalf("kube-apiserver reads --service-account-signing-key-file this way: %v", err)
	}
	pubs, err := keyutil.PublicKeysFromFile(d.PublicKeyFile("sa"))
	if err != nil {
		t.Fatalf("kube-apiserver reads --service-account-key-file this way: %v", err)
	}
	if len(pubs) != 1 || !sameKey(pubs[0], key.(crypto.Signer).Public()) {
		t.Error("the public key is not the private key's")
	}

	old, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	oldPub, err := encodePublicKey(old.Public())
	if err != nil {
		t.Fatal(err)
	}
	current, err := os.ReadFile(d.PublicKeyFile("sa"))
	if err != nil {
		t.Fatal(err)
	}
	both := append(slices.Clone(oldPub), current...)
	if err := os.WriteFile(d.PublicKeyFile("sa"), both, 0o644); err != nil {
		t.Fatal(err)
	}
	if c := find(t, mustEnsure(t, d, nil, o), "sa"); c.Changed() {
		t.Errorf("keys that verify older tokens must stay: %s", c)
	}

	if err := os.WriteFile(d.PublicKeyFile("sa"), oldPub, 0o644); err != nil {
		t.Fatal(err)
	}
	var unusable *UnusableError
	if _, err := d.Ensure(t.Context(), nil, o); !errors.As(err, &unusable) {
		t.Errorf("a public key of another key is a mistake for the user to judge: %v", err)
	}
}

func TestList(t *testing.T) {
	d := Dir{Path: t.TempDir()}
	mustEnsure(t, d, tree(), options())
	if err := os.Truncate(d.CertFile("admin"), 20); err != nil {
		t.Fatal(err)
	}
	got, err := d.List()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, i := range got {
		lines = append(lines, fmt.Sprintf("%s ca=%v cn=%s by=%s %d %v %v problem=%v", i.Name, i.CA, i.CommonName, i.Issuer, i.DaysLeft(now()), i.DNSNames, i.IPs, i.Problem != ""))
	}
	want := []string{
		"admin ca=false cn= by= -106752 [] [] problem=true",
		"apiserver ca=false cn=karmada-apiserver by=karmada 364 [localhost *.karmada-system.svc] [127.0.0.1] problem=false",
		"ca ca=true cn=karmada by=karmada 3649 [] [] problem=false",
		"etcd/ca ca=true cn=etcd-ca by=etcd-ca 3649 [] [] problem=false",
		"etcd/peer ca=false cn=etcd-peer by=etcd-ca 364 [localhost] [127.0.0.1] problem=false",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("List (-want +got):\n%s", diff)
	}
	for _, i := range got {
		if i.Name == "ca" && (i.Fingerprint != Fingerprint(load(t, d, "ca")) || !strings.HasPrefix(i.Fingerprint, "sha256:") || len(i.Fingerprint) != 71) {
			t.Errorf("fingerprint: %q", i.Fingerprint)
		}
	}
	if got, err := (Dir{Path: filepath.Join(d.Path, "none")}).List(); got != nil || err != nil {
		t.Errorf("no directory, no certificates: got %v, %v", got, err)
	}
}

func TestDaysLeft(t *testing.T) {
	cases := map[string]struct {
		reason string
		left   time.Duration
		want   int
	}{
		"Whole":       {reason: "A whole day counts.", left: 24 * time.Hour, want: 1},
		"LessThanOne": {reason: "Hours are no day.", left: 23 * time.Hour, want: 0},
		"JustExpired": {reason: "Expired must not look like today.", left: -time.Second, want: -1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (Info{NotAfter: now().Add(tc.left)}).DaysLeft(now()); got != tc.want {
				t.Errorf("%s\ngot %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

// TestFingerprint compares with a pin computed by
// openssl x509 -pubkey | openssl pkey -pubin -outform der | sha256sum.
func TestFingerprint(t *testing.T) {
	data, err := os.ReadFile("testdata/pinned.crt")
	if err != nil {
		t.Fatal(err)
	}
	certs, err := ParseCertificates(data)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/pinned.sha256")
	if err != nil {
		t.Fatal(err)
	}
	if got := Fingerprint(certs[0]); got != "sha256:"+strings.TrimSpace(string(want)) {
		t.Errorf("got %s, want %s", got, want)
	}
}

// verifyTree proves that the tree works: every server answers every client of
// its authority, and no other.
func verifyTree(t *testing.T, d Dir, at time.Time) {
	t.Helper()
	handshake(t, d, "apiserver", "admin", poolOf(t, d, "ca"), poolOf(t, d, "ca"), at)
	handshake(t, d, "etcd/peer", "etcd/peer", poolOf(t, d, "etcd/ca"), poolOf(t, d, "etcd/ca"), at)
	if err := tryHandshake(d, "etcd/peer", "admin", poolOf(t, d, "etcd/ca"), poolOf(t, d, "etcd/ca"), at); err == nil {
		t.Error("etcd lets a client of the API server in")
	}
	if err := tryHandshake(d, "apiserver", "apiserver", poolOf(t, d, "ca"), poolOf(t, d, "ca"), at); err == nil {
		t.Error("a server's certificate is good for logging in")
	}
	key, err := keyutil.PrivateKeyFromFile(d.KeyFile("sa"))
	if err != nil {
		t.Fatal(err)
	}
	pubs, err := keyutil.PublicKeysFromFile(d.PublicKeyFile("sa"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(pubs, func(p any) bool { return sameKey(p, key.(crypto.Signer).Public()) }) {
		t.Error("sa.pub does not verify what sa.key signs")
	}
}

func handshake(t *testing.T, d Dir, server, client string, serverRoots, clientRoots *x509.CertPool, at time.Time) {
	t.Helper()
	if err := tryHandshake(d, server, client, serverRoots, clientRoots, at); err != nil {
		t.Errorf("handshake of %s with %s: %v", client, server, err)
	}
}

// tryHandshake does a mutual TLS handshake over a pipe.
func tryHandshake(d Dir, server, client string, serverRoots, clientRoots *x509.CertPool, at time.Time) error {
	serverPair, err := tls.LoadX509KeyPair(d.CertFile(server), d.KeyFile(server))
	if err != nil {
		return err
	}
	clientPair, err := tls.LoadX509KeyPair(d.CertFile(client), d.KeyFile(client))
	if err != nil {
		return err
	}
	clock := func() time.Time { return at }
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	result := make(chan error, 1)
	go func() {
		s := tls.Server(a, &tls.Config{
			Certificates: []tls.Certificate{serverPair}, ClientCAs: clientRoots, ClientAuth: tls.RequireAndVerifyClientCert,
			MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12, Time: clock,
		})
		err := s.Handshake()
		result <- err
		a.Close()
	}()
	c := tls.Client(b, &tls.Config{
		// As a function, or a client would not send a certificate the server has no use for.
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &clientPair, nil },
		RootCAs:              serverRoots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12, Time: clock,
	})
	errClient := c.Handshake()
	if errClient != nil {
		b.Close()
	}
	return errors.Join(errClient, <-result)
}

func poolOf(t *testing.T, d Dir, ca string) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(load(t, d, ca))
	return pool
}

func mustEnsure(t *testing.T, d Dir, specs []Spec, o Options) []Change {
	t.Helper()
	got, err := d.Ensure(t.Context(), specs, o)
	if err != nil {
		t.Fatalf("Ensure: %v", err)
	}
	return got
}

func find(t *testing.T, all []Change, name string) Change {
	t.Helper()
	for _, c := range all {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no change about %s in %v", name, all)
	return Change{}
}

func load(t *testing.T, d Dir, name string) *x509.Certificate {
	t.Helper()
	return loadAll(t, d.CertFile(name))[0]
}

func loadAll(t *testing.T, file string) []*x509.Certificate {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	certs, err := ParseCertificates(data)
	if err != nil {
		t.Fatal(err)
	}
	return certs
}

// snapshot is the content of every file below d.
func snapshot(t *testing.T, d Dir) map[string]string {
	t.Helper()
	all := map[string]string{}
	walk(t, d, func(rel string, info fs.FileInfo) {
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(filepath.Join(d.Path, rel))
			if err != nil {
				t.Fatal(err)
			}
			all[rel] = string(data)
		}
	})
	return all
}

func modes(t *testing.T, d Dir) map[string]fs.FileMode {
	t.Helper()
	all := map[string]fs.FileMode{}
	walk(t, d, func(rel string, info fs.FileInfo) { all[rel] = info.Mode().Perm() })
	return all
}

func walk(t *testing.T, d Dir, visit func(rel string, info fs.FileInfo)) {
	t.Helper()
	err := filepath.WalkDir(d.Path, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(d.Path, path)
		visit(rel, info)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
