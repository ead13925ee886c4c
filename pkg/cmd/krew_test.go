package cmd

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// krewManifest is krew's own form, as far as it is used here; anything else in the file is an error.
type krewManifest struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string `json:"version"`
		Homepage         string `json:"homepage"`
		ShortDescription string `json:"shortDescription"`
		Description      string `json:"description"`
		Caveats          string `json:"caveats"`
		Platforms        []struct {
			Selector struct {
				MatchLabels map[string]string `json:"matchLabels"`
			} `json:"selector"`
			URI    string `json:"uri"`
			Sha256 string `json:"sha256"`
			Bin    string `json:"bin"`
		} `json:"platforms"`
	} `json:"spec"`
}

// What krew refuses is found here, and not by who releases.
func TestKrewManifest(t *testing.T) {
	const version = "v1.2.3"
	dir := t.TempDir()
	sums := make(map[string]string)
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, arch := range []string{"amd64", "arm64"} {
			content := []byte(system + arch)
			name := fmt.Sprintf("kubectl-karmada-%s-%s.tar.gz", system, arch)
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(content)
			sums[system+"/"+arch] = hex.EncodeToString(sum[:])
		}
	}
	fill := exec.Command("../../tools/krew.sh", "fill", version, dir)
	if out, err := fill.CombinedOutput(); err != nil {
		t.Fatalf("make the manifest: %v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "karmada.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var m krewManifest
	if err := yaml.UnmarshalStrict(text, &m); err != nil {
		t.Fatalf("the manifest is not krew's: %v\n%s", err, text)
	}
	if strings.Contains(string(text), "@") {
		t.Errorf("something is not filled in:\n%s", text)
	}
	if m.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || m.Kind != "Plugin" {
		t.Errorf("it is a %s %s", m.APIVersion, m.Kind)
	}
	// The name is what stands after "kubectl"; krew takes letters, digits and dashes.
	if m.Metadata.Name != "karmada" || len(validation.IsDNS1123Label(m.Metadata.Name)) > 0 {
		t.Errorf("its name is %q", m.Metadata.Name)
	}
	if m.Spec.Version != version {
		t.Errorf("its version is %q, want %q", m.Spec.Version, version)
	}
	// krew's index wants a line that fits into its table.
	if s := m.Spec.ShortDescription; s == "" || len(s) > 50 || strings.HasSuffix(s, ".") || strings.Contains(s, "\n") {
		t.Errorf("its short description is %q", s)
	}
	if m.Spec.Description == "" || m.Spec.Caveats == "" || !strings.HasPrefix(m.Spec.Homepage, "https://") {
		t.Errorf("description, caveats and homepage are what people choose by; got %q, %q, %q", m.Spec.Description, m.Spec.Caveats, m.Spec.Homepage)
	}
	seen := make(map[string]bool)
	for _, p := range m.Spec.Platforms {
		labels := p.Selector.MatchLabels
		platform := labels["os"] + "/" + labels["arch"]
		if len(labels) != 2 || sums[platform] == "" || seen[platform] {
			t.Errorf("platform %v is unknown, or there twice", labels)
			continue
		}
		seen[platform] = true
		if p.Sha256 != sums[platform] || !regexp.MustCompile(`^[a-f0-9]{64}$`).MatchString(p.Sha256) {
			t.Errorf("%s: checksum %q, want that of its archive, %q", platform, p.Sha256, sums[platform])
		}
		if want := fmt.Sprintf("/%s/kubectl-karmada-%s-%s.tar.gz", version, labels["os"], labels["arch"]); !strings.HasPrefix(p.URI, "https://") || !strings.HasSuffix(p.URI, want) {
			t.Errorf("%s: address %q does not end with %q", platform, p.URI, want)
		}
		want := "kubectl-karmada"
		if labels["os"] == "windows" {
			want += ".exe"
		}
		if p.Bin != want {
			t.Errorf("%s: its program is %q, want %q", platform, p.Bin, want)
		}
	}
	if len(seen) != len(sums) {
		t.Errorf("it is for %v, want all of %v", seen, sums)
	}
}

func TestKrewTakesNoOtherVersion(t *testing.T) {
	for _, version := range []string{"1.2.3", "latest", ""} {
		if out, err := exec.Command("../../tools/krew.sh", "fill", version, t.TempDir()).CombinedOutput(); err == nil {
			t.Errorf("version %q is taken: %s", version, out)
		}
	}
}

// Archives have what a plugin needs, and the same source makes the same ones. A compiler that writes down what it is to
// build for stands in for Go: to build six times is not what is tried here.
func TestKrewArchives(t *testing.T) {
	for _, tool := range []string{"tar", "gzip", "sha256sum"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("releases are made where %s is: %v", tool, err)
		}
	}
	bin := t.TempDir()
	compiler := "#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done\necho \"$GOOS $GOARCH\" >\"$2\" && chmod +x \"$2\"\n"
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte(compiler), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	first, second := t.TempDir(), t.TempDir()
	for _, dir := range []string{first, second} {
		if out, err := exec.Command("../../tools/krew.sh", "build", "v1.2.3", dir).CombinedOutput(); err != nil {
			t.Fatalf("make the archives: %v\n%s", err, out)
		}
	}
	for platform, want := range map[string]string{
		"linux-arm64":   "LICENSE kubectl-karmada kubectl_complete-karmada",
		"darwin-amd64":  "LICENSE kubectl-karmada kubectl_complete-karmada",
		"windows-amd64": "LICENSE kubectl-karmada.exe",
	} {
		archive := filepath.Join(first, "kubectl-karmada-"+platform+".tar.gz")
		out, err := exec.Command("tar", "-tzf", archive).Output()
		if err != nil {
			t.Fatalf("list %s: %v", archive, err)
		}
		if got := strings.Join(strings.Fields(strings.ReplaceAll(string(out), "./", "")), " "); got != want {
			t.Errorf("the archive for %s has %q, want %q", platform, got, want)
		}
		program, err := exec.Command("tar", "-xzOf", archive, "./"+strings.Fields(want)[1]).Output()
		if err != nil || strings.TrimSpace(string(program)) != strings.ReplaceAll(platform, "-", " ") {
			t.Errorf("the program for %s is one for %q: %v", platform, program, err)
		}
	}
	one, err := os.ReadFile(filepath.Join(first, "karmada.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(filepath.Join(second, "karmada.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(one), string(other)); diff != "" {
		t.Errorf("made twice, the checksums differ:\n%s", diff)
	}
}
