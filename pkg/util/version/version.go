// Package version says what build of this project is running: the same
// answer for karmadactl, for every server role and for the tags of images.
package version

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"sigs.k8s.io/yaml"
)

// Unreleased is the GitVersion of a build that no release tag was given to
// (spec: cli/commands.md 9).
const Unreleased = "v0.0.0-master"

// epoch stands for a build date that nobody recorded.
const epoch = "1970-01-01T00:00:00Z"

// Set by the linker: -ldflags "-X github.com/karmadactl/karmadactl/pkg/util/version.gitVersion=v1.2.3 …".
// What is left empty is taken from the Go tool's own build information.
var (
	gitVersion   string
	gitCommit    string
	gitTreeState string
	buildDate    string
)

// Info describes one build (spec: cli/commands.md 9).
type Info struct {
	GitVersion     string `json:"gitVersion"`
	GitCommit      string `json:"gitCommit"`
	GitShortCommit string `json:"gitShortCommit"`
	GitTreeState   string `json:"gitTreeState"`
	BuildDate      string `json:"buildDate"`
	GoVersion      string `json:"goVersion"`
	Compiler       string `json:"compiler"`
	Platform       string `json:"platform"`
}

// Get returns the running build's Info.
func Get() Info {
	i := Info{
		GitVersion:   gitVersion,
		GitCommit:    gitCommit,
		GitTreeState: gitTreeState,
		BuildDate:    buildDate,
		GoVersion:    runtime.Version(),
		Compiler:     runtime.Compiler,
		Platform:     runtime.GOOS + "/" + runtime.GOARCH,
	}
	if b, ok := debug.ReadBuildInfo(); ok {
		i.fill(b)
	}
	if i.GitVersion == "" {
		i.GitVersion = Unreleased
	}
	if i.BuildDate == "" {
		i.BuildDate = epoch
	}
	i.GitShortCommit = short(i.GitCommit)
	return i
}

// fill takes from b what the linker left empty.
func (i *Info) fill(b *debug.BuildInfo) {
	settings := make(map[string]string, len(b.Settings))
	for _, s := range b.Settings {
		settings[s.Key] = s.Value
	}
	if i.GitVersion == "" && isRelease(b.Main.Version) {
		i.GitVersion = b.Main.Version
	}
	if i.GitCommit == "" {
		i.GitCommit = settings["vcs.revision"]
	}
	if i.BuildDate == "" {
		i.BuildDate = settings["vcs.time"]
	}
	if i.GitTreeState == "" && settings["vcs.modified"] != "" {
		i.GitTreeState = "clean"
		if settings["vcs.modified"] == "true" {
			i.GitTreeState = "dirty"
		}
	}
}

// isRelease tells a tag from what the Go tool makes up for a commit that has
// none: "(devel)", a pseudo-version, or either of them with "+dirty".
func isRelease(v string) bool {
	if !strings.HasPrefix(v, "v") || strings.Contains(v, "+") {
		return false
	}
	last := v[strings.LastIndex(v, "-")+1:]
	pseudo := len(last) == 12 && strings.Trim(last, "0123456789abcdef") == ""
	return !pseudo
}

func short(commit string) string {
	const length = 7 // git's own
	if len(commit) < length {
		return commit
	}
	return commit[:length]
}

// String is the form that scripts know: version.Info{GitVersion:"…", …}.
func (i Info) String() string {
	return fmt.Sprintf("version.Info{GitVersion:%q, GitCommit:%q, GitShortCommit:%q, GitTreeState:%q, BuildDate:%q, GoVersion:%q, Compiler:%q, Platform:%q}",
		i.GitVersion, i.GitCommit, i.GitShortCommit, i.GitTreeState, i.BuildDate, i.GoVersion, i.Compiler, i.Platform)
}

// ReleaseTag is the release this build belongs to, as images are tagged with
// it: GitVersion without the "-<n>-g<sha>" that git describe appends to
// commits after a tag (spec: cli/commands.md 9).
func (i Info) ReleaseTag() string {
	rest, sha, ok := cutLast(i.GitVersion, "-g")
	if !ok || sha == "" || strings.Trim(sha, "0123456789abcdef") != "" {
		return i.GitVersion
	}
	tag, n, ok := cutLast(rest, "-")
	if !ok || n == "" || strings.Trim(n, "0123456789") != "" {
		return i.GitVersion
	}
	return tag
}

func cutLast(s, sep string) (before, after string, ok bool) {
	at := strings.LastIndex(s, sep)
	if at < 0 {
		return s, "", false
	}
	return s[:at], s[at+len(sep):], true
}

// Text is what a version command of program prints, newline included. Output
// is "" for the one line of String, "json" or "yaml"; any other is an error.
func (i Info) Text(program, output string) (string, error) {
	switch output {
	case "":
		return fmt.Sprintf("%s version: %s\n", program, i), nil
	case "json":
		b, err := json.MarshalIndent(i, "", "  ")
		if err != nil {
			return "", fmt.Errorf("print version as json: %w", err)
		}
		return string(b) + "\n", nil
	case "yaml":
		b, err := yaml.Marshal(i)
		if err != nil {
			return "", fmt.Errorf("print version as yaml: %w", err)
		}
		return string(b), nil
	default:
		return "", fmt.Errorf("--output must be 'yaml' or 'json', not %q", output)
	}
}
