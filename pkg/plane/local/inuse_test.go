package local

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLockHolder(t *testing.T) {
	cases := map[string]struct {
		reason string
		line   string
		pid    int
		ok     bool
	}{
		"Holder":    {"etcd's database is locked so.", "1: FLOCK  ADVISORY  WRITE 4711 fe:00:131 0 EOF", 4711, true},
		"Waiting":   {"Who waits does not have it.", "1: -> FLOCK  ADVISORY  WRITE 4711 fe:00:131 0 EOF", 0, false},
		"OtherFile": {"Another file is not the matter.", "1: FLOCK  ADVISORY  WRITE 4711 fe:00:132 0 EOF", 0, false},
		"OtherKind": {"Our own locks are of another kind.", "1: POSIX  ADVISORY  WRITE 4711 fe:00:131 0 EOF", 0, false},
		"Elsewhere": {"A process of another container has no number here.", "1: FLOCK  ADVISORY  WRITE 0 fe:00:131 0 EOF", 0, false},
		"Garbage":   {"A line that is not understood names nobody.", "1: FLOCK", 0, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if pid, ok := lockHolder(c.line, "fe:00:131"); pid != c.pid && ok || ok != c.ok {
				t.Errorf("got %d, %t, want %d, %t: %s", pid, ok, c.pid, c.ok, c.reason)
			}
		})
	}
}

// A lock file can be removed under a plane. Its data must not be taken for free then.
func TestFindProcessesSeesWhoHasTheDataOpen(t *testing.T) {
	l := newLayout(t)
	snap := filepath.Join(l.EtcdData(), "member", "snap")
	if err := os.MkdirAll(snap, 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := os.Create(filepath.Join(snap, "db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := FindProcesses(l); err != nil {
		t.Fatalf("data that nobody has open: %v", err)
	}
	if err := unix.Flock(int(db.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	_, err = FindProcesses(l)
	var inUse *DataInUseError
	if !errors.As(err, &inUse) || inUse.PID != os.Getpid() || inUse.Dir != l.Dir {
		t.Errorf("got %v, want that this process has the data open", err)
	}
}
