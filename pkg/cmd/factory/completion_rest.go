package factory

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// CompleteRest completes what the commands from root down do not complete by themselves: flags whose values are known from
// their name or their help, and for others nothing, as a shell would offer the files of the folder. What commands complete
// gets its end by LimitTime.
func (f *Factory) CompleteRest(root *cobra.Command) error {
	var errs []error
	root.NonInheritedFlags().VisitAll(func(flag *pflag.Flag) { errs = append(errs, f.completeFlag(root, flag)) })
	for _, cmd := range root.Commands() {
		errs = append(errs, f.CompleteRest(cmd))
	}
	switch {
	case root.ValidArgsFunction != nil:
		root.ValidArgsFunction = f.Bounded(root.ValidArgsFunction)
	case root.ValidArgs == nil:
		root.ValidArgsFunction = cobra.NoFileCompletions
	}
	return errors.Join(errs...)
}

func (f *Factory) completeFlag(cmd *cobra.Command, flag *pflag.Flag) error {
	if _, ok := cmd.GetFlagCompletionFunc(flag.Name); ok || flag.Value.Type() == "bool" {
		return nil
	}
	complete := f.valuesOf(cmd, flag)
	if complete == nil {
		return nil // the shell's own way, files
	}
	if err := cmd.RegisterFlagCompletionFunc(flag.Name, complete); err != nil {
		return fmt.Errorf("complete --%s of %s: %w", flag.Name, cmd.CommandPath(), err)
	}
	return nil
}

// valuesOf returns what completes the value of a flag, nil if that is a file.
func (f *Factory) valuesOf(cmd *cobra.Command, flag *pflag.Flag) cobra.CompletionFunc {
	switch flag.Name {
	case "kubeconfig", "cluster-kubeconfig", "karmada-config", "filename", "patch-file", "from-file", "from-env-file", "cert", "key",
		"ca-cert-file", "ca-key-file", "log-file", "template":
		return nil
	case "kustomize", "data-dir", "karmada-data", "pki-dir", "karmada-pki", "dir", "agent-dir", "log-dir":
		return cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	case "clusters":
		return f.CompleteClusters
	case "cluster":
		if cmd.Name() == "create" {
			return cobra.NoFileCompletions // of a token: the cluster is one that is to come
		}
		return f.CompleteClusters
	case "cluster-context":
		return f.completeContextsIn("cluster-kubeconfig")
	case "karmada-context": // of a command that has no connection flags
		return f.completeContextsIn("karmada-config")
	case "context":
		return f.completeContextsIn("kubeconfig")
	}
	return values(choices(flag)...)
}

// choices returns the values that a flag takes, as far as its name and help tell.
func choices(flag *pflag.Flag) []string {
	pick := func(from ...string) []string { return mentioned(flag.Usage, from) }
	switch flag.Name {
	case "agent":
		return []string{"process"}
	case "cascade":
		return pick("background", "orphan", "foreground", "delete")
	case "dry-run":
		return []string{"none", "server", "client"}
	case "output":
		return pick("json", "yaml", "kyaml", "name", "wide", "go-template", "go-template-file", "template", "templatefile", "jsonpath",
			"jsonpath-as-json", "jsonpath-file", "custom-columns", "custom-columns-file", "plaintext", "plaintext-openapiv2")
	case "sort-by":
		return pick("cpu", "memory", "name", "kind")
	case "type":
		return pick("json", "merge", "strategic")
	case "validate":
		return []string{"strict", "warn", "ignore"}
	}
	return nil
}

// mentioned returns those of words that a text has, in the text's order.
func mentioned(text string, words []string) []string {
	var found []string
	for _, word := range regexp.MustCompile(`[a-z0-9]+(-[a-z0-9]+)*`).FindAllString(text, -1) {
		if slices.Contains(words, word) && !slices.Contains(found, word) {
			found = append(found, word)
		}
	}
	return found
}

func values(all ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var offered []cobra.Completion
		for _, v := range all {
			if strings.HasPrefix(v, typed) {
				offered = append(offered, v)
			}
		}
		return offered, cobra.ShellCompDirectiveNoFileComp
	}
}
