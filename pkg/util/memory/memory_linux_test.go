package memory

import (
	"crypto/sha256"
	"testing"
)

func TestCode(t *testing.T) {
	const file = "/opt/my programs/karmada"
	cases := map[string]struct {
		reason string
		line   string
		want   [2]uintptr
		ok     bool
	}{
		"Code":      {"Code is never written.", "00400000-00c00000 r-xp 00000000 fe:00 42 " + file, [2]uintptr{0x400000, 0x800000}, true},
		"Relocated": {"The dynamic linker wrote there before it was made read-only.", "00c00000-01000000 r--p 00800000 fe:00 42 " + file, [2]uintptr{}, false},
		"Data":      {"Variables exist in memory only.", "01000000-01100000 rw-p 00c00000 fe:00 42 " + file, [2]uintptr{}, false},
		"Shared":    {"A shared mapping belongs to others too.", "01000000-01100000 r-xs 00000000 fe:00 42 " + file, [2]uintptr{}, false},
		"OtherFile": {"Libraries are not the program's own.", "01000000-01100000 r-xp 00000000 fe:00 42 /lib/libc.so", [2]uintptr{}, false},
		"Anonymous": {"The heap has no file.", "01000000-01100000 rw-p 00000000 00:00 0", [2]uintptr{}, false},
		"Garbage":   {"A line that is not understood is left alone.", "zz-01100000 r-xp 00000000 fe:00 42 " + file, [2]uintptr{}, false},
		"Backwards": {"An end before its start is not understood.", "01100000-01000000 r-xp 00000000 fe:00 42 " + file, [2]uintptr{}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			start, length, ok := code(c.line, file)
			if start != c.want[0] || length != c.want[1] || ok != c.ok {
				t.Errorf("code(%q) = %#x, %#x, %t, want %#x, %#x, %t: %s", c.line, start, length, ok, c.want[0], c.want[1], c.ok, c.reason)
			}
		})
	}
}

// TestTrim checks that the program goes on as if nothing had happened.
func TestTrim(t *testing.T) {
	before := sha256.Sum256([]byte("text"))
	Trim()
	if after := sha256.Sum256([]byte("text")); after != before {
		t.Errorf("the same hash is %x before and %x after", before, after)
	}
	if allocated() == 0 {
		t.Error("nothing was ever allocated")
	}
}
