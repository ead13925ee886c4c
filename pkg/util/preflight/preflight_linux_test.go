package preflight

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// want is what a check must say; empty: nothing.
func check(t *testing.T, reason string, err error, want ...string) {
	t.Helper()
	if len(want) == 0 {
		if err != nil {
			t.Errorf("%s\ngot %v, want no problem", reason, err)
		}
		return
	}
	var p *Problem
	if !errors.As(err, &p) {
		t.Fatalf("%s\ngot %v, want a Problem", reason, err)
	}
	if p.Thing == "" || p.Reason == "" || p.WayOut == "" {
		t.Errorf("%s\nit must have thing, reason and way out: %#v", reason, p)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s\ngot %q, want it to say %q", reason, err, w)
		}
	}
}

func TestPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	me := fmt.Sprintf("process %d (", os.Getpid())

	check(t, "The process that has the port is named.", PortFree("127.0.0.1", port), fmt.Sprintf("port %d on 127.0.0.1 is in use by ", port), me)
	check(t, "It is in the way of one on all addresses, too.", PortFree("0.0.0.0", port), me)
	check(t, "But not of one on another address.", PortFree("127.0.0.2", port))
	if !PortInUse("127.0.0.1", port) || PortInUse("127.0.0.2", port) {
		t.Error("PortInUse must say the same as PortFree")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	check(t, "A port is free at once.", PortFree("127.0.0.1", port))
	check(t, "The check itself must not keep it busy.", PortFree("127.0.0.1", port))
	if PortInUse("127.0.0.1", port) {
		t.Error("PortInUse says in use, and nobody does")
	}

	check(t, "0 is not a port people can tell others.", PortFree("127.0.0.1", 0), "between 1 and 65535")
	check(t, "Nor is this one.", PortFree("127.0.0.1", 65536), "between 1 and 65535")
	// 192.0.2.0/24 is for documentation and on no host.
	check(t, "Another host's address is no matter of ports.", PortFree("192.0.2.1", port), "address 192.0.2.1 is not one of this host's")
	if PortInUse("192.0.2.1", port) {
		t.Error("a port on another host's address is not in use")
	}
}

func TestListeningInodes(t *testing.T) {
	table := filepath.Join(t.TempDir(), "tcp")
	lines := `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1 0
   1: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12 1 0
   2: 0100007F:1F90 0100007F:A000 01 00000000:00000000 00:00000000 00000000     0        0 13 1 0
   3: 0200007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 14 1 0
   4: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 15 1 0
   5: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 16 1 0
   6: 0000000000000000FFFF00000100007F:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 17 1 0
   7: broken
`
	if err := os.WriteFile(table, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason, addr string
		want         []string
	}{
		"One":  {"The same address, and the one of all; IPv4 may be written as IPv6; connections do not count.", "127.0.0.1", []string{"11", "12", "17"}},
		"All":  {"Every listener on the port is in the way.", "0.0.0.0", []string{"11", "12", "14", "16", "17"}},
		"IPv6": {"Each word is turned round on its own.", "::1", []string{"12", "16"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := listeningInodes(table, netip.MustParseAddr(tc.addr), 8080)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSocketOwner(t *testing.T) {
	proc := t.TempDir()
	link := func(pid, fd, target string) {
		dir := filepath.Join(proc, pid, "fd")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(dir, fd)); err != nil {
			t.Fatal(err)
		}
	}
	link("7", "3", "/etc/passwd")
	link("42", "3", "socket:[11]")
	link("self", "3", "socket:[12]")
	if pid, ok := socketOwner(proc, []string{"10", "11"}); !ok || pid != 42 {
		t.Errorf("got %d, %v, want 42", pid, ok)
	}
	if pid, ok := socketOwner(proc, []string{"12"}); ok {
		t.Errorf("a socket nobody visible has: got %d", pid)
	}
}

func TestAddresses(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		want   []string
	}{
		"Loopback":    {"Every host has it.", HostAddress("127.0.0.1"), nil},
		"Unspecified": {"All addresses are this host's.", HostAddress("0.0.0.0"), nil},
		"Elsewhere":   {"One cannot listen elsewhere.", HostAddress("192.0.2.1"), []string{"192.0.2.1 is not one of this host's"}},
		"Name":        {"A name may have several addresses.", HostAddress("localhost"), []string{`"localhost" is not an IP address`}},
		"IPv6":        {"Both families are fine.", IPAddress("--cert-external-ip", "2001:db8::1"), nil},
		"ListOfIPs":   {"One at a time; the flag is named.", IPAddress("--cert-external-ip", "10.0.0.1,10.0.0.2"), []string{"--cert-external-ip", "not an IP address"}},
		"EmptyIP":     {"Nothing is no address.", IPAddress("x", ""), []string{"not an IP address"}},
		"DNS":         {"A name.", DNSName("x", "k.example.org"), nil},
		"DNSCase":     {"Names have no case.", DNSName("x", "K.Example.org"), nil},
		"Wildcard":    {"Certificates may have them.", DNSName("x", "*.example.org"), nil},
		"WildInside":  {"But in the first label only.", DNSName("x", "a.*.org"), []string{"not a DNS name"}},
		"IPAsDNS":     {"Clients look for addresses elsewhere in a certificate.", DNSName("--cert-external-dns", "10.0.0.1"), []string{"--cert-external-dns", "IP address"}},
		"Underscore":  {"Clients refuse these.", DNSName("x", "a_b.org"), []string{"not a DNS name"}},
		"URL":         {"A URL is no name.", DNSName("x", "https://a.org"), []string{"not a DNS name"}},
		"EmptyName":   {"Nothing is no name.", DNSName("x", ""), []string{"not a DNS name"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { check(t, tc.reason, tc.err, tc.want...) })
	}
}

func TestDirectories(t *testing.T) {
	base := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	at := func(names ...string) string { return filepath.Join(append([]string{base}, names...)...) }
	must(os.WriteFile(at("file"), nil, 0o600))
	must(os.Symlink("loop", at("loop")))
	must(os.Symlink("gone", at("dangling")))
	must(os.Mkdir(at("dir"), 0o700))
	must(os.Symlink("dir", at("link")))
	before := tree(t, base)

	cases := map[string]struct {
		reason, path string
		want         []string
	}{
		"Existing": {"A directory of our own.", at("dir"), nil},
		"New":      {"It can be made, with all that leads to it.", at("a", "b", "c"), nil},
		"Link":     {"A link to a directory is as good.", at("link", "new"), nil},
		"File":     {"A file is not replaced.", at("file"), []string{at("file") + " is a file"}},
		"InFile":   {"The file that is in the way is named.", at("file", "x", "y"), []string{"directory " + at("file", "x", "y"), at("file") + " is a file"}},
		"Loop":     {"A link to itself leads nowhere.", at("loop", "x"), []string{at("loop")}},
		"Dangling": {"Nor does one to nothing.", at("dangling", "x"), []string{at("dangling") + " is a link to something"}},
		// Not even root can make files in /proc, whatever its mode says.
		"ReadOnly":    {"A directory that cannot be written to, even by root.", "/proc", []string{"directory /proc cannot be written to"}},
		"InReadOnly":  {"Nor can one be made there; the place is named.", "/proc/none/data", []string{"/proc/none/data cannot be made: /proc cannot be written to"}},
		"NameTooLong": {"No filesystem has names like this.", at(strings.Repeat("x", 300)), []string{"name too long"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { check(t, tc.reason, WritableDir(tc.path), tc.want...) })
	}

	check(t, "One byte is there.", FreeSpace(at("a", "b"), 1))
	check(t, "So much is not; the directory need not exist.", FreeSpace(at("a", "b"), math.MaxUint64), "directory "+at("a", "b"), "MiB free", "are needed")
	check(t, "A bad path is a problem of its own.", FreeSpace(at("file"), 1), "is a file")
	check(t, "The other way to try leaves nothing, either.", tryWriteDir(at("dir")))

	if diff := cmp.Diff(before, tree(t, base)); diff != "" {
		t.Errorf("a check must leave no trace (-before +after):\n%s", diff)
	}

	both := All(WritableDir(at("file")), nil, FreeSpace(at("file"), 1), IPAddress("x", "y"))
	if n := strings.Count(both.Error(), "is a file"); n != 1 || !strings.Contains(both.Error(), "not an IP address") {
		t.Errorf("all problems at once, each once: %v", both)
	}
	if err := All(nil, nil); err != nil {
		t.Errorf("no problem is nil: %v", err)
	}
}

// tree is every path below base, with its mode.
func tree(t *testing.T, base string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(base, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		all = append(all, fmt.Sprint(path, info.Mode()))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestOpenFiles(t *testing.T) {
	errBoom := errors.New("boom")
	cases := map[string]struct {
		reason     string
		soft, hard uint64
		getErr     error
		setErr     error
		wantSet    uint64
		want       []string
	}{
		"Enough":     {reason: "What is enough is left alone.", soft: 4096, hard: 8192},
		"Raised":     {reason: "The soft limit is ours to raise.", soft: 1024, hard: 8192, wantSet: 8192},
		"Unlimited":  {reason: "No limit is more than any number.", soft: 1024, hard: math.MaxUint64, wantSet: math.MaxUint64},
		"HardTooLow": {reason: "The hard limit is the administrator's.", soft: 1024, hard: 2048, want: []string{"is 2048, and 4096 are needed", "ulimit -n"}},
		"Refused":    {reason: "Some systems refuse.", soft: 1024, hard: 8192, setErr: errBoom, wantSet: 8192, want: []string{"boom"}},
		"Unknown":    {reason: "Failing to find out is not the same as enough.", getErr: errBoom, want: []string{"boom"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var set uint64
			err := openFiles(4096,
				func() (uint64, uint64, error) { return tc.soft, tc.hard, tc.getErr },
				func(soft, hard uint64) error {
					if hard != tc.hard {
						t.Errorf("the hard limit must stay: %d", hard)
					}
					set = soft
					return tc.setErr
				})
			check(t, tc.reason, err, tc.want...)
			if set != tc.wantSet {
				t.Errorf("%s\nset to %d, want %d", tc.reason, set, tc.wantSet)
			}
		})
	}
	check(t, "This process has more than one file open.", OpenFiles(1))
	check(t, "Nobody has so many.", OpenFiles(math.MaxUint64-1), "are needed")
}
