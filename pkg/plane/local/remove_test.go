package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karmadactl/karmadactl/pkg/plane"
	"github.com/karmadactl/karmadactl/pkg/util/preflight"
)

// install makes all that an installation makes, without running anything.
func install(t *testing.T, change ...func(*plane.Config)) plane.Plane {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	cfg := plane.NewConfig(plane.KindControlPlane, "karmada")
	cfg.BindAddress, cfg.AdvertiseAddress, cfg.Port = "127.0.0.1", "127.0.0.1", freePort(t)
	if err := cfg.ChoosePorts(preflight.PortInUse); err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(&cfg)
	}
	p := plane.ControlPlane(cfg, plane.NewLayout(dir, cfg.PKI))
	if err := Prepare(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if _, err := writeAdminKubeconfig(p); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(p.Layout.EtcdData(), "member", "snap", "db"), "data")
	write(t, p.Layout.LogFile(), "log")
	write(t, filepath.Join(p.Layout.LogDir(), "plane-2026-01-01T00-00-00.000.log"), "older log")
	write(t, p.Layout.PlaneState(), "{}")
	return p
}

// tree lists the files and empty directories below the given ones.
func tree(t *testing.T, dirs ...string) []string {
	t.Helper()
	paths := []string{}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil && d.IsDir() {
				entries, err := os.ReadDir(path)
				if err != nil || len(entries) > 0 {
					return err
				}
			}
			paths = append(paths, path)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

func TestRemove(t *testing.T) {
	// dataStays is what is left without purge: data, and what it is worth nothing without.
	dataStays := func(l plane.Layout) []string {
		return []string{
			filepath.Join(l.EtcdData(), "member", "snap", "db"), l.ConfigFile(),
			filepath.Join(l.PKI, "ca.crt"), filepath.Join(l.PKI, "ca.key"),
			filepath.Join(l.PKI, "etcd-ca.crt"), filepath.Join(l.PKI, "etcd-ca.key"),
			filepath.Join(l.PKI, "front-proxy-ca.crt"), filepath.Join(l.PKI, "front-proxy-ca.key"),
			filepath.Join(l.PKI, "sa.key"), filepath.Join(l.PKI, "sa.pub"),
		}
	}
	cases := map[string]struct {
		reason    string
		purge     bool
		elsewhere bool // the PKI directory is not in the data directory
		provided  []string
		users     []string // files of the user, below the data directory unless absolute; $PKI is the certificate directory
		want      func(l plane.Layout) []string
	}{
		"Data": {
			reason: "Data stays until somebody says that it may go.",
			want:   dataStays,
		},
		"Purge": {
			reason: "Nothing that init made is left, the directory included.",
			purge:  true,
			want:   func(plane.Layout) []string { return nil },
		},
		"UsersFiles": {
			reason: "What init did not make is not touched, wherever it lies.",
			purge:  true,
			users:  []string{"notes.txt", "config/mine.yaml", "kubeconfig/me.config", "pki/mine.crt"},
			want: func(l plane.Layout) []string {
				return []string{filepath.Join(l.Dir, "notes.txt"), filepath.Join(l.ConfigDir(), "mine.yaml"), filepath.Join(l.KubeconfigDir(), "me.config"), filepath.Join(l.PKI, "mine.crt")}
			},
		},
		"Provided": {
			reason:    "Certificates that were there before the first installation are the user's.",
			purge:     true,
			elsewhere: true,
			provided:  []string{"ca", "sa", "admin"},
			want: func(l plane.Layout) []string {
				var paths []string
				for _, name := range []string{"ca.crt", "ca.key", "sa.key", "sa.pub", "admin.crt", "admin.key"} {
					paths = append(paths, filepath.Join(l.PKI, name))
				}
				return paths
			},
		},
		"PKIElsewhere": {
			reason:    "A certificate directory of its own goes too when nothing else is in it.",
			purge:     true,
			elsewhere: true,
			want:      func(plane.Layout) []string { return nil },
		},
		"Interrupted": {
			reason: "What a killed command left half written is ours.",
			purge:  true,
			users:  []string{".plane.yaml.tmp-123", "pki/.ca.crt.tmp-4", "config/.authentication.yaml.tmp-5"},
			want:   func(plane.Layout) []string { return nil },
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := install(t, func(cfg *plane.Config) {
				cfg.Provided = c.provided
				if c.elsewhere {
					cfg.PKI = filepath.Join(t.TempDir(), "certificates")
				}
			})
			l := p.Layout
			for _, path := range c.users {
				write(t, filepath.Join(l.Dir, path), "mine")
			}
			preview, err := PreviewRemoval(p, c.purge)
			if err != nil {
				t.Fatal(err)
			}

			r, err := Remove(t.Context(), p, c.purge)
			if err != nil {
				t.Fatal(err)
			}
			if r.Stopped {
				t.Error("says that something was stopped, and nothing ran")
			}
			want := c.want(l)
			slices.Sort(want)
			left := tree(t, l.Dir, l.PKI)
			if diff := cmp.Diff(want, left, emptyIsNil()); diff != "" {
				t.Errorf("what is left differs (-want +got):\n%s\nreason: %s", diff, c.reason)
			}
			slices.Sort(preview)
			removed := slices.Sorted(slices.Values(r.Removed))
			if diff := cmp.Diff(preview, removed); diff != "" {
				t.Errorf("what was removed differs from what was foretold (-foretold +removed):\n%s", diff)
			}
			for _, path := range left {
				if !slices.ContainsFunc(r.Kept, func(kept string) bool { return path == kept || strings.HasPrefix(path, kept+"/") }) {
					t.Errorf("%s is left, and not said to be: kept are %v", path, r.Kept)
				}
			}

			again, err := Remove(t.Context(), p, c.purge)
			if err != nil {
				t.Fatalf("again: %v", err)
			}
			if diff := cmp.Diff(left, tree(t, l.Dir, l.PKI), emptyIsNil()); diff != "" {
				t.Errorf("removing again changed something (-first +second):\n%s", diff)
			}
			for _, path := range again.Removed {
				if path != l.RunDir() && path != l.Dir { // made for the lock of the command itself
					t.Errorf("says again that %s was removed", path)
				}
			}
		})
	}
}

func emptyIsNil() cmp.Option {
	return cmp.Transformer("emptyIsNil", func(s []string) []string {
		if len(s) == 0 {
			return nil
		}
		return slices.Clone(s)
	})
}

func TestRemoveThenLoad(t *testing.T) {
	p := install(t)
	if _, err := Remove(t.Context(), p, false); err != nil {
		t.Fatal(err)
	}
	cfg, err := plane.Load(p.Layout.Dir)
	if err != nil || !cfg.Withdrawn {
		t.Fatalf("got %+v, %v, want a configuration that says it is withdrawn: the next init takes it up", cfg, err)
	}
	if _, err := Remove(t.Context(), plane.ControlPlane(cfg, p.Layout), true); err != nil {
		t.Fatal(err)
	}
	if _, err := plane.Load(p.Layout.Dir); !errors.Is(err, plane.ErrNotInstalled) {
		t.Errorf("got %v, want that nothing is installed", err)
	}
	if exists(p.Layout.Dir) {
		t.Error("the directory is still there, and nothing is in it")
	}
}

// Whenever it is interrupted, the directory is either still ours, so that it can be removed again, or free.
func TestRemoveInterrupted(t *testing.T) {
	all := ownFiles(install(t), true)
	for n := range all {
		p := install(t)
		for _, path := range ownFiles(p, true)[:n] {
			if _, _, err := removePath(path); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := plane.Load(p.Layout.Dir); err != nil && !errors.Is(err, plane.ErrNotInstalled) {
			t.Fatalf("interrupted before %s: %v", filepath.Base(all[n]), err)
		}
		if _, err := Remove(t.Context(), p, true); err != nil {
			t.Fatalf("removing again after an interruption before %s: %v", filepath.Base(all[n]), err)
		}
		if left := tree(t, p.Layout.Dir); len(left) > 0 {
			t.Fatalf("interrupted before %s: %v is left", filepath.Base(all[n]), left)
		}
	}
}

func TestRemoveKeepsADirectoryThatCannotGo(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may remove any directory")
	}
	p := install(t)
	parent := filepath.Dir(p.Layout.Dir)
	if err := os.Chmod(parent, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(parent, 0o700) }) // so that it can be cleaned up
	r, err := Remove(t.Context(), p, true)
	if err != nil {
		t.Fatalf("got %v: whoever made the directory for us keeps it", err)
	}
	if diff := cmp.Diff([]string{p.Layout.Dir}, r.Kept); diff != "" {
		t.Errorf("kept differs (-want +got):\n%s", diff)
	}
}

func TestMissing(t *testing.T) {
	base := t.TempDir()
	join := func(names ...string) string { return filepath.Join(append([]string{base}, names...)...) }
	cases := map[string]struct {
		reason string
		dirs   []string
		want   []string
	}{
		"There":  {"What is there was not made.", []string{base}, nil},
		"Nested": {"Parents come after what is in them, so that they can be removed in this order.", []string{join("a", "b", "c")}, []string{join("a", "b", "c"), join("a", "b"), join("a")}},
		"Shared": {"A parent that two have is there once.", []string{join("a", "x"), join("a", "yy")}, []string{join("a", "yy"), join("a", "x"), join("a")}},
		"Same":   {"A directory named twice is there once.", []string{join("a"), join("a")}, []string{join("a")}},
		"Inside": {"The certificates usually lie in the data directory.", []string{join("d"), join("d", "pki")}, []string{join("d", "pki"), join("d")}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, missing(c.dirs...), emptyIsNil()); diff != "" {
				t.Errorf("differs (-want +got):\n%s\nreason: %s", diff, c.reason)
			}
		})
	}
}
