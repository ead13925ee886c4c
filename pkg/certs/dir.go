package certs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/karmadactl/karmadactl/pkg/util/atomicfile"
)

const (
	keyMode  fs.FileMode = 0o600
	certMode fs.FileMode = 0o644
	dirMode  fs.FileMode = 0o700
)

// Dir is a directory of keys and certificates.
type Dir struct{ Path string }

// CertFile is where the certificate called name is.
func (d Dir) CertFile(name string) string { return d.file(name, ".crt") }

// KeyFile is where the private key called name is.
func (d Dir) KeyFile(name string) string { return d.file(name, ".key") }

// PublicKeyFile is where the public half of the key pair called name is.
func (d Dir) PublicKeyFile(name string) string { return d.file(name, ".pub") }

// ChainFile is where the parents of the authority called name are, when it is
// not a root. Only this package reads it: leaves carry what peers need.
func (d Dir) ChainFile(name string) string { return d.file(name, "-chain.pem") }

func (d Dir) file(name, suffix string) string {
	return filepath.Join(d.Path, filepath.FromSlash(name)+suffix)
}

// Options say what else a tree has, and by what time it is judged.
type Options struct {
	// Now is the time to judge by; zero is the clock's.
	Now time.Time
	// RenewBefore remakes a leaf that has less than this left, but no leaf
	// with more than a third of its life left, and none that would gain nothing
	// because its authority ends too. Zero: only what has expired.
	RenewBefore time.Duration
	// Supplied are authorities the user brought (LoadAuthority), by Spec name.
	// A nil one counts as not supplied.
	Supplied map[string]*Authority
	// KeyPairs are names of bare key pairs, such as the one that signs service
	// account tokens. A <name>.pub may go on with older keys; they are kept.
	KeyPairs []string
}

// Action is what happens to one entry of a tree.
type Action string

// An entry is Kept as it is; Created, when it had no certificate; Renewed, when
// it had one that is not right; Completed, when a public half was missing for a
// key that stays; Imported, when it came from the user; Tightened, when nothing
// but the mode of its key changes.
const (
	Kept      Action = "kept"
	Created   Action = "created"
	Renewed   Action = "renewed"
	Completed Action = "completed"
	Imported  Action = "imported"
	Tightened Action = "tightened"
)

// Change is what Ensure does, or Plan would do, about one entry of a tree.
type Change struct {
	Name     string    `json:"name"`
	Action   Action    `json:"action"`
	Reason   string    `json:"reason,omitempty"`  // why it is not Kept
	Files    []string  `json:"files,omitempty"`   // written, removed or tightened, in this order
	NotAfter time.Time `json:"notAfter,omitzero"` // end of the certificate, zero for a key pair
}

// Changed reports whether anything is written.
func (c Change) Changed() bool { return c.Action != Kept }

// String is one line for people, such as "apiserver: renewed, it expired at …".
func (c Change) String() string {
	if c.Reason == "" {
		return fmt.Sprintf("%s: %s", c.Name, c.Action)
	}
	return fmt.Sprintf("%s: %s, %s", c.Name, c.Action, c.Reason)
}

// Plan returns what Ensure would do, in Ensure's order: authorities, leaves,
// key pairs. It changes nothing. The error joins everything that is in the way;
// what only the user can put right is an *UnusableError.
func (d Dir) Plan(specs []Spec, o Options) ([]Change, error) {
	steps, err := d.plan(specs, o)
	return changes(steps), err
}

// Ensure makes the directory hold what specs and o describe, and returns a
// Change for each entry, kept ones too. When something cannot be put right it
// writes nothing at all. Interrupted, by a kill or by ctx between two entries,
// it can be run again. Two at a time in one directory is for the caller to
// prevent.
func (d Dir) Ensure(ctx context.Context, specs []Spec, o Options) ([]Change, error) {
	steps, err := d.plan(specs, o)
	if err != nil {
		return nil, err
	}
	for _, folder := range d.folders(specs, o) {
		if _, err := atomicfile.Clean(folder); err != nil {
			return nil, fmt.Errorf("remove what an interrupted run left: %w", err)
		}
	}
	for i, s := range steps {
		err := ctx.Err()
		if err == nil {
			err = s.run()
		}
		if err != nil {
			return changes(steps[:i]), fmt.Errorf("certificate files of %q: %w", s.change.Name, err)
		}
	}
	return changes(steps), nil
}

// Files are all paths that Ensure may make for specs and o, in the order of the
// specs: what to remove to undo it. Some may not exist.
func (d Dir) Files(specs []Spec, o Options) []string {
	var files []string
	for _, s := range specs {
		files = append(files, d.CertFile(s.Name), d.KeyFile(s.Name))
		if s.IsCA() {
			files = append(files, d.ChainFile(s.Name))
		}
	}
	for _, name := range o.KeyPairs {
		files = append(files, d.KeyFile(name), d.PublicKeyFile(name))
	}
	return files
}

// folders are the directories that hold the tree's files.
func (d Dir) folders(specs []Spec, o Options) []string {
	var folders []string
	for _, f := range d.Files(specs, o) {
		folders = append(folders, filepath.Dir(f))
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// step is a decision about one entry with the writes that carry it out.
type step struct {
	change Change
	writes []write
}

// write puts data at path; without data it removes the file, or, when tighten
// is set, takes the key away from everyone but its owner.
type write struct {
	path    string
	data    []byte
	mode    fs.FileMode
	tighten bool
}

// add notes writes, and the files they touch.
func (s *step) add(writes ...write) {
	for _, w := range writes {
		s.writes = append(s.writes, w)
		s.change.Files = append(s.change.Files, w.path)
	}
}

func (s step) run() error {
	for _, w := range s.writes {
		if err := w.run(); err != nil {
			return err
		}
	}
	return nil
}

func (w write) run() error {
	switch {
	case w.tighten:
		if err := os.Chmod(w.path, w.mode); err != nil {
			return fmt.Errorf("tighten the mode of a private key: %w", err)
		}
		return nil
	case w.data == nil:
		if err := os.Remove(w.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(w.path), dirMode); err != nil {
		return err
	}
	return atomicfile.WriteFile(w.path, w.data, w.mode)
}

func changes(steps []step) []Change {
	var all []Change
	for _, s := range steps {
		all = append(all, s.change)
	}
	return all
}

// content is a file as it is found.
type content struct {
	path   string
	exists bool
	data   []byte
	mode   fs.FileMode
}

// read tells a file that is not there from one that cannot be read: only the
// first may be made.
func read(name string) (content, error) {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return content{path: name}, nil
	}
	if err != nil {
		return content{}, err
	}
	if !info.Mode().IsRegular() {
		return content{}, fmt.Errorf("%s is not a regular file; move it away", name)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return content{}, err
	}
	return content{path: name, exists: true, data: data, mode: info.Mode().Perm()}, nil
}

// tighten returns the write that makes a key its owner's alone, if it is not.
func tighten(key content) []write {
	if !key.exists || key.mode&^keyMode == 0 {
		return nil
	}
	return []write{{path: key.path, mode: key.mode & keyMode, tighten: true}}
}

// baseName is what an entry's files are called in messages.
func baseName(name, suffix string) string { return path.Base(name) + suffix }
