package brief

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		limit  int
		want   string
	}{
		"Fits":      {"What there is room for stays.", "abcdef", 6, "abcdef"},
		"Long":      {"What is cut says so, within the limit.", "abcdefg", 6, "abc..."},
		"Character": {"No character is cut in two.", "aäöü", 6, "aä..."},
		"Inside":    {"Nor where the limit is in the middle of one.", "ääää", 6, "ä..."},
		"Empty":     {"Nothing needs no room.", "", 0, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Text(tc.text, tc.limit); got != tc.want {
				t.Errorf("got %q, want %q: %s", got, tc.want, tc.reason)
			}
		})
	}
	if got := Note(strings.Repeat("ä", MaxNote)); len(got) > MaxNote || !utf8.ValidString(got) {
		t.Errorf("a note of %d bytes, valid %t, want at most %d valid ones", len(got), utf8.ValidString(got), MaxNote)
	}
}
