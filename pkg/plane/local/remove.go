package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/karmadactl/karmadactl/pkg/certs"
	"github.com/karmadactl/karmadactl/pkg/plane"
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

// PreviewRemoval lists the files that Remove would remove.
func PreviewRemoval(p plane.Plane, purge bool) ([]string, error) {
	var there []string
	for _, path := range ownFiles(p, purge) {
		_, err := os.Lstat(path)
		if err == nil {
			there = append(there, filepath.Clean(path))
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("look at what would be removed: %w", err)
		}
	}
	return there, nil
}

// removeFiles removes the files of an installation. plane.yaml, which marks the directory as ours, goes last.
func removeFiles(p plane.Plane, purge bool) (Removal, error) {
	var r Removal
	for _, path := range ownFiles(p, purge) {
		gone, err := removePath(path)
		if err != nil {
			return r, fmt.Errorf("remove %s: %w", path, err)
		}
		if gone {
			r.Removed = append(r.Removed, path)
		}
	}
	for _, dir := range []string{p.Layout.PKI, p.Layout.Dir} {
		left, err := removeIfEmpty(dir)
		if err != nil {
			return r, err
		}
		if left == nil {
			r.Removed = append(r.Removed, dir)
		}
		r.Kept = append(r.Kept, left...)
	}
	r.Kept = slices.DeleteFunc(r.Kept, func(path string) bool { return path == p.Layout.PKI })
	return r, nil
}

// ownFiles lists what an installation makes, in the order in which it is removed.
func ownFiles(p plane.Plane, purge bool) []string {
	l := p.Layout
	paths := []string{l.RunDir(), l.LogDir(), l.AdminKubeconfig()}
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
	paths = append(paths, emptyOnly(l.KubeconfigDir()), emptyOnly(l.ConfigDir()))
	if purge {
		paths = append(paths, l.EtcdData(), l.ConfigFile())
	}
	return paths
}

// emptyOnly marks a directory that goes only when nothing is left in it.
func emptyOnly(dir string) string { return dir + string(filepath.Separator) }

func removePath(path string) (bool, error) {
	if dir := filepath.Clean(path); dir != path {
		left, err := removeIfEmpty(dir)
		return err == nil && left == nil, err
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return true, os.RemoveAll(path)
}

// removeIfEmpty removes dir unless something is in it; then it returns what.
func removeIfEmpty(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look into %s: %w", dir, err)
	}
	if len(entries) > 0 {
		var left []string
		for _, e := range entries {
			left = append(left, filepath.Join(dir, e.Name()))
		}
		return left, nil
	}
	if err := os.Remove(dir); err != nil {
		return nil, fmt.Errorf("remove the empty directory: %w", err)
	}
	return nil, nil
}
