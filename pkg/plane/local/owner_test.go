package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/karmadactl/karmadactl/pkg/plane"
)

// ready is a control plane whose files stand as after a first start, without any process.
func ready(t *testing.T, change func(*Request)) plane.Plane {
	t.Helper()
	loopback, port := "127.0.0.1", freePort(t)
	r := Request{DataDir: filepath.Join(t.TempDir(), "data"), BindAddress: &loopback, Port: &port}
	change(&r)
	i, err := Plan(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := Prepare(t.Context(), i.Plane); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(i.Plane.Layout.EtcdData(), 0o700); err != nil {
		t.Fatal(err)
	}
	return i.Plane
}

// Two control planes with one PKI directory would be each other's admins, and removing one would end the other.
func TestPKIBelongsToOne(t *testing.T) {
	pki := filepath.Join(t.TempDir(), "certificates")
	first := ready(t, func(r *Request) { r.PKI = &pki })
	if _, err := Plan(Request{DataDir: first.Layout.Dir}); err != nil {
		t.Errorf("the one that it belongs to: %v", err)
	}
	loopback, port := "127.0.0.1", freePort(t)
	_, err := Plan(Request{DataDir: filepath.Join(t.TempDir(), "second"), PKI: &pki, BindAddress: &loopback, Port: &port})
	if err == nil || !strings.Contains(err.Error(), first.Layout.Dir) {
		t.Errorf("got %v, want a refusal that names %s", err, first.Layout.Dir)
	}
	if _, err := removeFiles(first, true); err != nil {
		t.Fatal(err)
	}
	if exists(pki) {
		t.Errorf("removing the owner left %v", tree(t, pki))
	}
}

// Everything that the lost authority signed would be worthless, and nobody would have been told.
func TestLostAuthorityIsNotMadeAnew(t *testing.T) {
	cases := map[string]struct {
		reason string
		lost   []string
	}{
		"Servers":  {"Kubeconfigs and agents trust it.", []string{"ca.crt", "ca.key"}},
		"Etcd":     {"It is as much a loss.", []string{"etcd-ca.crt", "etcd-ca.key"}},
		"Accounts": {"Tokens of service accounts are signed with it.", []string{"sa.key", "sa.pub"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := ready(t, func(*Request) {})
			for _, file := range c.lost {
				if err := os.Remove(filepath.Join(p.Layout.PKI, file)); err != nil {
					t.Fatal(err)
				}
			}
			before := tree(t, p.Layout.PKI)
			_, planErr := Plan(Request{DataDir: p.Layout.Dir})
			startErr := Prepare(t.Context(), p)
			for _, err := range []error{planErr, startErr} {
				if err == nil || !strings.Contains(err.Error(), strings.TrimSuffix(c.lost[0], filepath.Ext(c.lost[0]))) || !strings.Contains(err.Error(), "backup") {
					t.Errorf("got %v, want a refusal that names what is lost and the way out: %s", err, c.reason)
				}
			}
			if after := tree(t, p.Layout.PKI); len(after) != len(before) {
				t.Errorf("files were made: %v", after)
			}
		})
	}
}

// What the user had there before is the user's.
func TestPlanKnowsWhatIsTheirs(t *testing.T) {
	t.Run("Directories", func(t *testing.T) {
		own := t.TempDir()
		if err := os.Chmod(own, 0o755); err != nil {
			t.Fatal(err)
		}
		p := ready(t, func(r *Request) { r.DataDir = own })
		if info, err := os.Stat(own); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("the data directory has mode %v, %v, want it closed to others", info.Mode(), err)
		}
		if _, err := removeFiles(p, true); err != nil {
			t.Fatal(err)
		}
		if !exists(own) {
			t.Error("the user's directory was removed")
		}
	})
	t.Run("Link", func(t *testing.T) {
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(t.TempDir(), link); err != nil {
			t.Fatal(err)
		}
		p := ready(t, func(r *Request) { r.DataDir = link })
		if _, err := removeFiles(p, true); err != nil {
			t.Fatal(err)
		}
		if !exists(link) {
			t.Error("the user's link was removed")
		}
	})
	t.Run("Certificate", func(t *testing.T) {
		pki := t.TempDir()
		file := filepath.Join(pki, "admin.crt")
		if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		loopback, port := "127.0.0.1", freePort(t)
		_, err := Plan(Request{DataDir: filepath.Join(t.TempDir(), "data"), PKI: &pki, BindAddress: &loopback, Port: &port})
		if err == nil || !strings.Contains(err.Error(), `"admin"`) {
			t.Errorf("got %v, want a refusal that names the certificate that is in the way", err)
		}
	})
}
