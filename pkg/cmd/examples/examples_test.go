package examples

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

func TestCalls(t *testing.T) {
	cases := map[string]struct {
		reason, line, program string
		want                  [][]string
	}{
		"Plain":       {reason: "The arguments are what is typed.", line: "karmadactl get pods -n a", want: [][]string{{"get", "pods", "-n", "a"}}},
		"Quotes":      {reason: "A shell takes quotes off.", line: `karmadactl patch x -p '{"a": "b c"}' --y="1 2"`, want: [][]string{{"patch", "x", "-p", `{"a": "b c"}`, "--y=1 2"}}},
		"Pipe":        {reason: "Both ends are called.", line: "karmadactl token list | xargs karmadactl token delete", want: [][]string{{"token", "list"}, {"token", "delete"}}},
		"Behind":      {reason: "What comes before is not ours.", line: "cat pod.json | karmadactl create -f -", want: [][]string{{"create", "-f", "-"}}},
		"Variable":    {reason: "It is no argument.", line: `KUBE_EDITOR="nano" karmadactl edit svc/registry`, want: [][]string{{"edit", "svc/registry"}}},
		"Substitute":  {reason: "bash runs what is inside.", line: "source <(karmadactl completion bash)", want: [][]string{{"completion", "bash"}}},
		"Placeholder": {reason: "It stands for a word.", line: "karmadactl register --token <TOKEN>", want: [][]string{{"register", "--token", "<TOKEN>"}}},
		"Comment":     {reason: "It is for people.", line: "karmadactl cordon member1   # and uncordon", want: [][]string{{"cordon", "member1"}}},
		"Plugin":      {reason: "Its name has two words.", line: "kubectl karmada get pods", program: "kubectl karmada", want: [][]string{{"get", "pods"}}},
		"Other":       {reason: "Other programs are not ours.", line: "make test", want: nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.program == "" {
				tc.program = "karmadactl"
			}
			if diff := cmp.Diff(tc.want, Calls(tc.line, tc.program)); diff != "" {
				t.Errorf("calls in %q (-want +got): %s\n%s", tc.line, tc.reason, diff)
			}
		})
	}
}

func TestInHelp(t *testing.T) {
	root := &cobra.Command{Use: "karmadactl"}
	root.AddCommand(&cobra.Command{Use: "go", Example: "  # One\n  # more\n  karmadactl go \\\n  --far\n  \n  # Two that belong together\n  karmadactl go 1\n  karmadactl go 2"})
	want := []Example{
		{Of: "karmadactl go", Lines: []string{"karmadactl go --far"}},
		{Of: "karmadactl go", Lines: []string{"karmadactl go 1", "karmadactl go 2"}},
	}
	if diff := cmp.Diff(want, InHelp(root)); diff != "" {
		t.Errorf("examples (-want +got):\n%s", diff)
	}
}

func TestInMarkdown(t *testing.T) {
	text := "Say `karmadactl x`:\n\n    karmadactl get a \\\n        --b\n    make up\n    cd c\n"
	want := []Example{{Of: "README.md", Lines: []string{"karmadactl get a --b"}}}
	if diff := cmp.Diff(want, InMarkdown("README.md", text, "karmadactl")); diff != "" {
		t.Errorf("examples (-want +got):\n%s", diff)
	}
}
