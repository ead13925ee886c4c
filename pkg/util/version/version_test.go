package version

import (
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReleaseTag(t *testing.T) {
	cases := map[string]struct {
		reason string
		in     string
		want   string
	}{
		"Release":     {reason: "A tag is its own release.", in: "v1.2.3", want: "v1.2.3"},
		"PreRelease":  {reason: "A pre-release is a release.", in: "v1.2.3-rc.1", want: "v1.2.3-rc.1"},
		"AfterTag":    {reason: "Commits after a tag use the images of the tag.", in: "v1.2.3-17-g8c4a3f1", want: "v1.2.3"},
		"AfterRC":     {reason: "Only the last two parts are git's.", in: "v1.2.3-rc.1-17-g8c4a3f1", want: "v1.2.3-rc.1"},
		"Unreleased":  {reason: "There is nothing to strip.", in: Unreleased, want: Unreleased},
		"NotACount":   {reason: "A pre-release that starts with g is no commit.", in: "v1.2.3-beta-gamma", want: "v1.2.3-beta-gamma"},
		"NoCount":     {reason: "git describe always has a count.", in: "v1.2.3-g8c4a3f1", want: "v1.2.3-g8c4a3f1"},
		"DirtySuffix": {reason: "Not the suffix that the contract names.", in: "v1.2.3-17-g8c4a3f1-dirty", want: "v1.2.3-17-g8c4a3f1-dirty"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (Info{GitVersion: tc.in}).ReleaseTag(); got != tc.want {
				t.Errorf("ReleaseTag() of %q = %q, want %q: %s", tc.in, got, tc.want, tc.reason)
			}
		})
	}
}

func TestFill(t *testing.T) {
	vcs := []debug.BuildSetting{
		{Key: "vcs.revision", Value: "8c4a3f19d2b0"},
		{Key: "vcs.time", Value: "2026-01-02T03:04:05Z"},
		{Key: "vcs.modified", Value: "true"},
	}
	cases := map[string]struct {
		reason string
		in     Info
		build  debug.BuildInfo
		want   Info
	}{
		"GoInstall": {
			reason: "go install module@v1.2.3 passes no linker flags, but knows the version.",
			build:  debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}},
			want:   Info{GitVersion: "v1.2.3"},
		},
		"Checkout": {
			reason: "A pseudo-version is no release.",
			build:  debug.BuildInfo{Main: debug.Module{Version: "v0.0.0-20260102030405-8c4a3f19d2b0"}, Settings: vcs},
			want:   Info{GitCommit: "8c4a3f19d2b0", BuildDate: "2026-01-02T03:04:05Z", GitTreeState: "dirty"},
		},
		"Devel": {
			reason: "A test binary has no version at all.",
			build:  debug.BuildInfo{Main: debug.Module{Version: "(devel)"}},
			want:   Info{},
		},
		"LinkerWins": {
			reason: "Who passes linker flags knows better than the Go tool.",
			in:     Info{GitVersion: "v9.9.9", GitCommit: "abc", GitTreeState: "clean", BuildDate: "now"},
			build:  debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: vcs},
			want:   Info{GitVersion: "v9.9.9", GitCommit: "abc", GitTreeState: "clean", BuildDate: "now"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.in
			got.fill(&tc.build)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("fill() (-want +got): %s\n%s", tc.reason, diff)
			}
		})
	}
}

func TestText(t *testing.T) {
	i := Info{
		GitVersion: "v1.2.3", GitCommit: "8c4a3f19d2b0", GitShortCommit: "8c4a3f1", GitTreeState: "clean",
		BuildDate: "2026-01-02T03:04:05Z", GoVersion: "go1.26", Compiler: "gc", Platform: "linux/amd64",
	}
	cases := map[string]struct {
		reason  string
		output  string
		want    string
		wantErr bool
	}{
		"Line": {
			reason: "The exact line is contract.",
			want: `karmadactl version: version.Info{GitVersion:"v1.2.3", GitCommit:"8c4a3f19d2b0", GitShortCommit:"8c4a3f1", ` +
				`GitTreeState:"clean", BuildDate:"2026-01-02T03:04:05Z", GoVersion:"go1.26", Compiler:"gc", Platform:"linux/amd64"}` + "\n",
		},
		"JSON": {
			reason: "Scripts read fields.",
			output: "json",
			want: `{
  "gitVersion": "v1.2.3",
  "gitCommit": "8c4a3f19d2b0",
  "gitShortCommit": "8c4a3f1",
  "gitTreeState": "clean",
  "buildDate": "2026-01-02T03:04:05Z",
  "goVersion": "go1.26",
  "compiler": "gc",
  "platform": "linux/amd64"
}
`,
		},
		"YAML": {
			reason: "The same fields.",
			output: "yaml",
			want: `buildDate: "2026-01-02T03:04:05Z"
compiler: gc
gitCommit: 8c4a3f19d2b0
gitShortCommit: 8c4a3f1
gitTreeState: clean
gitVersion: v1.2.3
goVersion: go1.26
platform: linux/amd64
`,
		},
		"Unknown": {reason: "A format that does not exist is an error.", output: "xml", wantErr: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := i.Text("karmadactl", tc.output)
			if (err != nil) != tc.wantErr {
				t.Fatalf("Text() error = %v, want one: %t: %s", err, tc.wantErr, tc.reason)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Text() (-want +got): %s\n%s", tc.reason, diff)
			}
		})
	}
}

func TestGetIsComplete(t *testing.T) {
	i := Get()
	for field, value := range map[string]string{"GitVersion": i.GitVersion, "BuildDate": i.BuildDate, "GoVersion": i.GoVersion, "Platform": i.Platform} {
		if value == "" {
			t.Errorf("Get().%s is empty: nobody should have to handle that", field)
		}
	}
	if !strings.HasPrefix(i.GitVersion, "v") {
		t.Errorf("Get().GitVersion = %q, want a version", i.GitVersion)
	}
}
