package atomicfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWriteFile(t *testing.T) {
	cases := map[string]struct {
		reason string
		before func(t *testing.T, path string)
		mode   fs.FileMode
	}{
		"New":         {reason: "A new file has the mode asked for.", mode: 0o600},
		"IgnoreUmask": {reason: "The umask must not narrow what was asked for: a certificate is for everybody to read.", mode: 0o666},
		"Replace": {
			reason: "An old file with a wider mode must not lend its mode to a new key.",
			before: func(t *testing.T, path string) { mustWrite(t, path, "old", 0o644) },
			mode:   0o600,
		},
		"ReplaceLink": {
			reason: "A link is replaced: writing through it could overwrite a file that is not ours.",
			before: func(t *testing.T, path string) {
				target := path + ".target"
				mustWrite(t, target, "theirs", 0o644)
				if err := os.Symlink(target, path); err != nil {
					t.Fatal(err)
				}
			},
			mode: 0o600,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			if tc.before != nil {
				tc.before(t, path)
			}
			if err := WriteFile(path, []byte("new"), tc.mode); err != nil {
				t.Fatalf("%s\nWriteFile: %v", tc.reason, err)
			}
			info, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := info.Mode(); got != tc.mode {
				t.Errorf("%s\nmode: got %v, want %v", tc.reason, got, tc.mode)
			}
			if got := mustRead(t, path); got != "new" {
				t.Errorf("%s\ncontent: got %q", tc.reason, got)
			}
			noTemps(t, filepath.Dir(path))
		})
	}
}

func TestWriteFileFails(t *testing.T) {
	cases := map[string]struct {
		reason string
		path   func(t *testing.T) string
	}{
		"NoDirectory": {
			reason: "The directory is the caller's to make, with the mode it wants.",
			path:   func(t *testing.T) string { return filepath.Join(t.TempDir(), "none", "file") },
		},
		"TargetIsDirectory": {
			reason: "A rename onto a directory fails, and must leave no temporary file.",
			path: func(t *testing.T) string {
				p := filepath.Join(t.TempDir(), "dir")
				if err := os.Mkdir(p, 0o700); err != nil {
					t.Fatal(err)
				}
				return p
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := tc.path(t)
			if err := WriteFile(path, []byte("x"), 0o600); err == nil {
				t.Errorf("%s\nWriteFile(%s): no error", tc.reason, path)
			}
			noTemps(t, filepath.Dir(path))
		})
	}
}

func TestWriteIfChanged(t *testing.T) {
	cases := map[string]struct {
		reason string
		before string
		mode   fs.FileMode
		want   bool
	}{
		"Missing":    {reason: "A file that is not there is written.", want: true},
		"Same":       {reason: "What is right is left alone.", before: "new", mode: 0o600, want: false},
		"Content":    {reason: "Other content is replaced.", before: "old", mode: 0o600, want: true},
		"WiderMode":  {reason: "A secret that others can read is not right.", before: "new", mode: 0o644, want: true},
		"EmptyFile":  {reason: "An empty file is not a missing one, and not right.", before: "", mode: 0o600, want: true},
		"NarrowMode": {reason: "The mode is exact in both directions.", before: "new", mode: 0o400, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			var before uint64
			if tc.mode != 0 {
				mustWrite(t, path, tc.before, tc.mode)
				before = inode(t, path)
			}
			got, err := WriteIfChanged(path, []byte("new"), 0o600)
			if err != nil {
				t.Fatalf("%s\nWriteIfChanged: %v", tc.reason, err)
			}
			if got != tc.want {
				t.Errorf("%s\nwrote: got %v, want %v", tc.reason, got, tc.want)
			}
			if got := mustRead(t, path); got != "new" {
				t.Errorf("%s\ncontent: got %q", tc.reason, got)
			}
			if !tc.want && inode(t, path) != before {
				t.Errorf("%s\nthe file was replaced", tc.reason)
			}
		})
	}

	t.Run("Directory", func(t *testing.T) {
		if _, err := WriteIfChanged(t.TempDir(), nil, 0o600); err == nil {
			t.Error("a directory in place of the file must be an error")
		}
	})
}

func TestClean(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".ca.key.tmp-123", ".a.tmp-", "ca.key", ".hidden", "x.tmp-1", ".tmp-1"} {
		mustWrite(t, filepath.Join(dir, name), "x", 0o600)
	}
	if err := os.Mkdir(filepath.Join(dir, ".dir.tmp-1"), 0o700); err != nil {
		t.Fatal(err)
	}
	got, err := Clean(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(dir, ".a.tmp-"), filepath.Join(dir, ".ca.key.tmp-123")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("only what WriteFile makes may go (-want +got):\n%s", diff)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 5 {
		t.Errorf("want the five others kept, got %v", entries)
	}
	if got, err := Clean(filepath.Join(dir, "none")); got != nil || err != nil {
		t.Errorf("a directory that is not there is clean: got %v, %v", got, err)
	}
}

func noTemps(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		if os.IsNotExist(err) {
			return
		}
		t.Fatal(err)
	}
	for _, e := range entries {
		if IsTemp(e.Name()) {
			t.Errorf("left behind: %s", e.Name())
		}
	}
}

func mustWrite(t *testing.T, path, data string, mode fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(data), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Ino
}
