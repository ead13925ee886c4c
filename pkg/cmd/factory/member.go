package factory

import (
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"
)

// MemberOptions say which member cluster a command works on directly, rather
// than through the control plane.
type MemberOptions struct {
	// Name is what errors call the member; "" is none.
	Name string
	// Kubeconfig and Context are what the user typed, "" being nothing, behind
	// KubeconfigFlag and ContextFlag.
	Kubeconfig, Context         string
	KubeconfigFlag, ContextFlag string
	// PreferContext is taken, if the kubeconfig has it, when no context was
	// typed, in the place of the current one.
	PreferContext string
}

// A Member is the way to a member cluster by a kubeconfig of its own
// (spec: cli/commands.md 2.1 B).
type Member struct{ conn *connection }

// Member returns the way to a member. Without a kubeconfig it is looked for
// as users of kubectl expect, but never where init wrote that of the control
// plane. Explain speaks of the member when it cannot be reached.
func (f *Factory) Member(o MemberOptions) *Member {
	noun := "member cluster"
	if o.Name != "" {
		noun += " " + o.Name
	}
	opts := f.conn.opts
	opts.DefaultKubeconfig = nil
	m := &Member{conn: &connection{
		opts: opts,
		end: end{
			noun: noun, kind: "member cluster", member: true,
			kubeconfigFlag: o.KubeconfigFlag, contextFlag: o.ContextFlag,
			newKubeconfig: "get a new kubeconfig of the member cluster",
		},
		home: f.conn.home,
		warnings: rest.NewWarningWriter(opts.ErrOut, rest.WarningWriterOptions{
			Deduplicate: true,
			Color:       printers.AllowsColorOutput(opts.ErrOut),
		}),
		kubeconfig: o.Kubeconfig,
		context:    o.Context,
		prefer:     o.PreferContext,
		timeout:    f.conn.timeout,
		within:     f.conn.within,
	}}
	f.members = append(f.members, m)
	return m
}

// ToRESTConfig returns the way to the member's API server.
func (m *Member) ToRESTConfig() (*rest.Config, error) { return m.conn.ToRESTConfig() }

// Source names the kubeconfig and the context that were chosen.
func (m *Member) Source() string { return m.conn.from() }
