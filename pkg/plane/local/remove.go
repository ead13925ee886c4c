package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/karmadactl/karmadactl/pkg/certs"
	"github.com/karmadactl/karmadactl/pkg/plane"
	"github.com/karmadactl/karmadactl/pkg/util/atomicfile"
)

// A Removal is what Remove did, or would do.
type Removal struct {
	// Stopped says that the plane was running and has been stopped.
	Stopped bool `json:"stopped"`
	// Removed are the files and directories that are gone.
	Removed []string `json:"removed"`
	// Kept are those that stay: data and authorities unless they were to be purged, and what is not ours.
	Kept []string `json:"kept,omitempty"`
}

// Remove stops a plane and removes what its installation made. Without purge its data stays, with what it is worth
// nothing without: the authorities, the service account key and plane.yaml; a later installation takes them up again.
// What an installation did not make is never touched. Interrupted, it can be run again.
func Remove(ctx context.Context, p plane.Plane, purge bool) (Removal, error) {
	l := p.Layout
	lock, err := LockCommands(l)
	if err != nil {
		return Removal{}, err
	}
	stopped, err := Stop(ctx, l)
	if err != nil {
		return Removal{}, errors.Join(err, lock.Release())
	}
	// The lock file lies in a directory that is about to go.
	if err := lock.Release(); err != nil {
		return Removal{}, err
	}
	if !purge {
		p.Config.Withdrawn = true
		if _, err := p.Config.Save(l.Dir); err != nil {
			return Removal{Stopped: stopped}, err
		}
	}
	r, err := removeFiles(p, purge)
	r.Stopped = stopped
	return r, err
}

// PreviewRemoval lists the files and directories that Remove would remove.
func PreviewRemoval(p plane.Plane, purge bool) ([]string, error) {
	there := []string{}
	for _, path := range allOwn(p, purge) {
		goes, err := wouldGo(path, there)
		if err != nil {
			return nil, fmt.Errorf("look at what would be removed: %w", err)
		}
		if goes {
			there = append(there, filepath.Clean(path))
		}
	}
	return withoutCommandLock(p.Layout, there), nil
}

// withoutCommandLock leaves the lock of the removing command itself out of what is told: it made it.
func withoutCommandLock(l plane.Layout, paths []string) []string {
	return slices.DeleteFunc(paths, func(path string) bool { return path == l.CommandLock() })
}

// wouldGo reports whether path is there, and for a directory that goes only when empty whether gone has all that is in
// it.
func wouldGo(path string, gone []string) (bool, error) {
	dir := filepath.Clean(path)
	if dir == path {
		_, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return err == nil, err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	stays := func(e fs.DirEntry) bool {
		return !slices.Contains(gone, filepath.Join(dir, e.Name())) && !atomicfile.IsTemp(e.Name())
	}
	return err == nil && !slices.ContainsFunc(entries, stays), err
}

// removeFiles removes the files of an installation, but not the directories keep. plane.yaml, which marks the directory
// as ours, goes after everything that lies in it.
func removeFiles(p plane.Plane, purge bool, keep ...string) (Removal, error) {
	l := p.Layout
	r := Removal{Removed: []string{}}
	for _, dir := range []string{l.Dir, l.PKI, l.KubeconfigDir(), l.ConfigDir(), l.RunDir()} {
		if _, err := atomicfile.Clean(dir); err != nil {
			return r, fmt.Errorf("remove what an interrupted command left: %w", err)
		}
	}
	for _, path := range allOwn(p, purge) {
		if slices.Contains(keep, filepath.Clean(path)) {
			continue
		}
		gone, left, err := removePath(path)
		if err != nil {
			return r, fmt.Errorf("remove %s: %w", path, err)
		}
		if gone {
			r.Removed = append(r.Removed, filepath.Clean(path))
		}
		r.Kept = append(r.Kept, left...)
	}
	r.Removed = withoutCommandLock(l, r.Removed)
	// A directory is not worth a word where what is in it has been named.
	named := func(dir string) bool {
		return slices.ContainsFunc(r.Kept, func(path string) bool { return filepath.Dir(path) == dir })
	}
	r.Kept = slices.DeleteFunc(slices.Clone(r.Kept), named)
	return r, nil
}

// allOwn is ownFiles with the data directory itself, unless the user had made that.
func allOwn(p plane.Plane, purge bool) []string {
	paths := ownFiles(p, purge)
	if slices.Contains(p.Config.Given, plane.GivenDataDir) {
		return paths
	}
	return append(paths, emptyOnly(p.Layout.Dir))
}

// ownFiles lists what an installation makes inside its data directory, and the certificates, in the order in which it
// is removed.
func ownFiles(p plane.Plane, purge bool) []string {
	l := p.Layout
	paths := append(ownLogs(l), l.AdminKubeconfig())
	for _, k := range p.Kubeconfigs {
		paths = append(paths, k.Path)
	}
	for _, f := range p.Files {
		paths = append(paths, f.Path)
	}
	specs := slices.DeleteFunc(slices.Clone(p.Certificates), func(s certs.Spec) bool {
		return slices.Contains(p.Config.Provided, s.Name) || (s.IsCA() && !purge)
	})
	var keys certs.Options
	if purge {
		keys.KeyPairs = slices.DeleteFunc(slices.Clone(p.KeyPairs), func(n string) bool { return slices.Contains(p.Config.Provided, n) })
	}
	paths = append(paths, certs.Dir{Path: l.PKI}.Files(specs, keys)...)
	if purge && p.Config.PKI != "" {
		paths = append(paths, l.PKIOwner())
	}
	paths = append(paths, emptyOnly(l.KubeconfigDir()), emptyOnly(l.ConfigDir()))
	if !slices.Contains(p.Config.Given, plane.GivenPKI) {
		paths = append(paths, emptyOnly(l.PKI))
	}
	if purge {
		paths = append(append(paths, ownData(l)...), l.ConfigFile())
	}
	return paths
}

// ownLogs lists what processes of the plane write beside its data: locks, states and logs, the rotated ones too.
func ownLogs(l plane.Layout) []string {
	return append(
		found(l.RunDir(), "*.pid", "plane.json", "supervisor.json"),
		append(found(l.LogDir(), "plane.log", "plane-*.log", "supervisor.log"), emptyOnly(l.RunDir()), emptyOnly(l.LogDir()))...,
	)
}

// ownData lists what etcd makes in its data directory.
func ownData(l plane.Layout) []string {
	member := filepath.Join(l.EtcdData(), "member")
	snap, wal := filepath.Join(member, "snap"), filepath.Join(member, "wal")
	paths := append(
		found(snap, "db", "db.tmp*", "*.snap", "*.snap.db", "*.snap.broken", "tmp*"),
		found(wal, "*.wal", "*.wal.broken", "*.tmp")...,
	)
	return append(paths, emptyOnly(snap), emptyOnly(wal), emptyOnly(member), emptyOnly(l.EtcdData()))
}

// found lists the files in dir that match one of the patterns.
func found(dir string, patterns ...string) []string {
	var paths []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // what cannot be read is reported by whoever removes dir
	}
	for _, e := range entries {
		matches := func(pattern string) bool {
			ok, err := filepath.Match(pattern, e.Name())
			return ok && err == nil
		}
		if !e.IsDir() && slices.ContainsFunc(patterns, matches) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

// emptyOnly marks a directory that goes only when nothing is left in it.
func emptyOnly(dir string) string { return dir + string(filepath.Separator) }

// removePath removes a path of ownFiles and reports whether it did. left is what keeps a directory.
func removePath(path string) (gone bool, left []string, err error) {
	if dir := filepath.Clean(path); dir != path {
		return removeIfEmpty(dir)
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil, nil
	}
	return true, nil, os.RemoveAll(path)
}

// removeIfEmpty removes dir unless something is in it, and reports whether it did. left is what is in it, or dir itself
// where that cannot go: a mount point, or a directory that somebody else made for us.
func removeIfEmpty(dir string) (gone bool, left []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil, nil
	}
	if err != nil {
		return false, nil, fmt.Errorf("look into %s: %w", dir, err)
	}
	for _, e := range entries {
		left = append(left, filepath.Join(dir, e.Name()))
	}
	if len(left) > 0 {
		return false, left, nil
	}
	err = os.Remove(dir)
	if errors.Is(err, syscall.EBUSY) || errors.Is(err, fs.ErrPermission) {
		return false, []string{dir}, nil
	}
	if err != nil {
		return false, nil, fmt.Errorf("remove the empty directory: %w", err)
	}
	return true, nil, nil
}
