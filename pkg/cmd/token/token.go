// Package token implements karmadactl token: the bootstrap tokens that clusters register with.
package token

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

const long = `
	Manage bootstrap tokens.

	A bootstrap token is what a cluster that has no credentials yet registers with: with it the control plane is
	recognised, and asked for a certificate. It is a Secret of the control plane, in namespace kube-system.`

const example = `
	# Make a token for cluster member3, and print the command to run there
	%[1]s token create --cluster=member3 --print-register-command

	# Show the tokens
	%[1]s token list

	# Take one back
	%[1]s token delete abcdef`

// NewCmd returns the token command; program is what users type.
func NewCmd(f *factory.Factory, s genericiooptions.IOStreams, program string) (*cobra.Command, error) {
	cmd := &cobra.Command{
		Use:                   "token",
		Short:                 "Manage bootstrap tokens",
		Long:                  templates.LongDesc(long),
		Example:               templates.Examples(fmt.Sprintf(example, program)),
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q for %q: it knows create, list and delete", args[0], cmd.CommandPath())
			}
			return cmd.Help()
		},
	}
	subs := []*cobra.Command{newCreate(f, s, program), newList(f, s, program), newDelete(f, s, program)}
	var errs []error
	for _, sub := range subs {
		sub.SilenceUsage, sub.DisableFlagsInUseLine = true, true
		f.AddConnectionFlags(sub.Flags())
		errs = append(errs, f.RegisterCompletions(sub))
	}
	cmd.AddCommand(subs...)
	return cmd, errors.Join(errs...)
}

// tokens returns the tokens of the control plane that f points to.
func tokens(f *factory.Factory, opts ...registration.TokensOption) (*registration.Tokens, error) {
	client, err := f.KubernetesClientSet()
	if err != nil {
		return nil, err // says already what is wrong with which kubeconfig
	}
	return registration.NewTokens(client.CoreV1(), opts...), nil
}

// A view is what programs are told about a token.
type view struct {
	// Token is the whole of it. Only create has it: whoever lists needs to know which there are, not to hold them.
	Token       string   `json:"token,omitempty"`
	ID          string   `json:"id"`
	Description string   `json:"description,omitempty"`
	Cluster     string   `json:"cluster,omitempty"`
	Expires     string   `json:"expires,omitempty"` // RFC 3339; none means never
	Expired     bool     `json:"expired,omitempty"`
	Usages      []string `json:"usages"`
	Groups      []string `json:"groups"`
	// RegisterCommand is there if it was asked for.
	RegisterCommand string `json:"registerCommand,omitempty"`
}

func viewOf(t registration.Token, now time.Time) view {
	v := view{ID: t.ID, Description: t.Description, Cluster: t.Cluster, Expired: t.Expired(now), Usages: t.Usages, Groups: t.Groups}
	if !t.Expires.IsZero() {
		v.Expires = t.Expires.Format(time.RFC3339)
	}
	if v.Usages == nil {
		v.Usages = []string{}
	}
	if v.Groups == nil {
		v.Groups = []string{}
	}
	return v
}
