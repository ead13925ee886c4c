package agentprocess

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func TestParent(t *testing.T) {
	home := func() (string, error) { return "/home/u", nil }
	homeless := func() (string, error) { return "", errors.New("none") }
	cases := map[string]struct {
		reason string
		root   bool
		state  string
		home   func() (string, error)
		want   string
	}{
		"Root":     {"The contract's place for configuration.", true, "/state", home, "/etc/karmada/agents"},
		"State":    {"The user's choice; not in the directory that init has for a control plane.", false, "/state", home, "/state/karmada-agents"},
		"Relative": {"It is not valid there.", false, "state", home, "/home/u/.local/state/karmada-agents"},
		"Home":     {"The default.", false, "", home, "/home/u/.local/state/karmada-agents"},
		"Homeless": {"Then it has to be named.", false, "", homeless, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := parent(tc.root, tc.state, tc.home); got != tc.want {
				t.Errorf("got %q, want %q: %s", got, tc.want, tc.reason)
			}
		})
	}
}

func TestLayout(t *testing.T) {
	l, err := Layout("some/dir", "m")
	if err != nil || !filepath.IsAbs(l.Dir) || !strings.HasSuffix(l.Dir, "/some/dir") {
		t.Errorf("a process in another directory must find it: %s, %v", l.Dir, err)
	}
	if l, err = Layout("", "m"); err != nil || filepath.Base(l.Dir) != "m" {
		t.Errorf("each cluster has a directory of its own: %s, %v", l.Dir, err)
	}
}
