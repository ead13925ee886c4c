// Package atomicfile writes files that are either the old or the new whole,
// never a part, whatever happens in between: data goes to a temporary file
// beside the target, reaches the disk, and is renamed into place.
//
// A process that is killed may leave a temporary file behind. Its name tells
// what it is (IsTemp), nobody reads it, and Clean removes it.
package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// tempInfix stands between the target's name and the random part:
// ".<name>.tmp-<random>".
const tempInfix = ".tmp-"

// WriteFile makes path hold data with exactly the permission bits of mode,
// whatever the umask. A reader sees the old content or the new one. After
// WriteFile returns nil, the new content survives a power cut. A symbolic link
// at path is replaced, not followed. The directory must exist.
func WriteFile(path string, data []byte, mode fs.FileMode) (err error) {
	dir, name := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	tmp, err := os.CreateTemp(dir, "."+name+tempInfix+"*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	renamed := false
	defer func() {
		if !renamed {
			err = errors.Join(err, ignoreNotExist(os.Remove(tmp.Name())))
		}
	}()

	if err := fill(tmp, data, mode); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	renamed = true
	if err := syncDir(dir); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// WriteIfChanged is WriteFile for a file that may already be right: it leaves
// a regular file with the same content and mode untouched, and says whether it
// wrote. A file that cannot be read is an error, not a reason to replace it.
func WriteIfChanged(path string, data []byte, mode fs.FileMode) (bool, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, WriteFile(path, data, mode)
	case err != nil:
		return false, fmt.Errorf("compare %s: %w", path, err)
	case info.IsDir():
		return false, fmt.Errorf("compare %s: it is a directory, not a file", path)
	}
	if info.Mode().IsRegular() && info.Mode().Perm() == mode.Perm() {
		old, err := os.ReadFile(path)
		if err != nil {
			return false, fmt.Errorf("compare %s: %w", path, err)
		}
		if bytes.Equal(old, data) {
			return false, nil
		}
	}
	return true, WriteFile(path, data, mode)
}

// IsTemp reports whether name, with or without its directory, is one that an
// interrupted WriteFile leaves behind.
func IsTemp(name string) bool {
	base := filepath.Base(name)
	return strings.HasPrefix(base, ".") && strings.LastIndex(base, tempInfix) > 1
}

// Clean removes from dir, not from folders below it, what interrupted writes
// left behind, and returns the paths removed. Call it only while no other
// process writes there. A directory that does not exist is clean.
func Clean(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("clean %s: %w", dir, err)
	}
	var removed []string
	for _, e := range entries {
		if !e.Type().IsRegular() || !IsTemp(e.Name()) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if err := os.Remove(path); ignoreNotExist(err) != nil {
			return removed, fmt.Errorf("clean %s: %w", dir, err)
		}
		removed = append(removed, path)
	}
	return removed, nil
}

// fill writes data to f, sets its mode, brings it to the disk and closes it.
func fill(f *os.File, data []byte, mode fs.FileMode) error {
	_, err := f.Write(data)
	if err == nil {
		err = f.Chmod(mode.Perm())
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncDir brings a rename in dir to the disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
