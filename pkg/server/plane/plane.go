// Package plane holds the two roles that run several components in one process: plane, the control plane, and member,
// a complete local member cluster.
package plane

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/karmadactl/karmadactl/pkg/features"
	"github.com/karmadactl/karmadactl/pkg/plane"
	"github.com/karmadactl/karmadactl/pkg/plane/local"
	"github.com/karmadactl/karmadactl/pkg/server/flags"
	"github.com/karmadactl/karmadactl/pkg/server/role"
)

// New returns the role that runs the control plane which karmadactl init has installed in a data directory.
func New(streams genericiooptions.IOStreams, runners map[string]local.Runner) *cobra.Command {
	return newCommand(streams, kind{
		name: "plane", plane: plane.KindControlPlane, describe: plane.ControlPlane, runners: runners,
		short: "Run the whole control plane in this process",
		long: "Run the control plane that karmadactl init has installed in a data directory: etcd, kube-apiserver, " +
			"kube-controller-manager and the components of Karmada, all in this process. When one of them fails the process ends, " +
			"and whoever started it has to start it again.",
	})
}

// NewMember returns the role that runs a local member cluster which karmadactl playground has prepared.
func NewMember(streams genericiooptions.IOStreams, runners map[string]local.Runner) *cobra.Command {
	return newCommand(streams, kind{
		name: "member", plane: plane.KindMember, describe: plane.Member, runners: runners,
		short: "Run a complete local member cluster in this process",
		long: "Run the local member cluster that karmadactl playground has prepared in a data directory: etcd, kube-apiserver, " +
			"kube-controller-manager, kube-scheduler and simulated nodes, all in this process.",
	})
}

type kind struct {
	name, short, long string
	plane             string
	describe          func(plane.Config, plane.Layout) plane.Plane
	runners           map[string]local.Runner
}

func newCommand(streams genericiooptions.IOStreams, k kind) *cobra.Command {
	var dataDir string
	var without []string
	logs := flags.NewLogs()
	sets := flags.NewSets()
	sets.FlagSet(flags.GenericSet).StringVar(&dataDir, "data-dir", "", "Data directory.")
	sets.FlagSet(flags.GenericSet).StringSliceVar(&without, "without", nil, "Components not to run in this process, by name: those that are run apart, as roles of their own.")
	logs.AddFlags(sets.FlagSet(flags.LogsSet))
	return role.NewCommand(role.Role{
		Name: k.name, Short: k.short, Long: k.long, Sets: sets,
		Run: func(ctx context.Context) error {
			gate, err := features.New()
			if err != nil {
				return err
			}
			if err := flags.Error(logs.Validate(gate)); err != nil {
				return err
			}
			p, err := k.load(dataDir)
			if err != nil {
				return err
			}
			if err := leaveOut(&p, without); err != nil {
				return err
			}
			if err := logs.Apply(gate); err != nil {
				return err
			}
			// The log is a pipe to the supervisor. Should that be killed, the plane still has to stop in order.
			signal.Ignore(syscall.SIGPIPE)
			started := tuneStart(ctx)
			return local.Serve(ctx, p, k.runners, func() {
				started()
				klog.FromContext(ctx).Info("Ready", "name", p.Config.Name, "server", p.Config.Server())
			})
		},
	}, streams)
}

// leaveOut takes components out of a plane that others do not wait for.
func leaveOut(p *plane.Plane, names []string) error {
	for _, name := range names {
		i := slices.IndexFunc(p.Components, func(c plane.Component) bool { return c.Name == name })
		if i < 0 {
			return fmt.Errorf("--without=%s: there is no such component", name)
		}
		p.Components = slices.Delete(slices.Clone(p.Components), i, i+1)
		for _, c := range p.Components {
			if slices.Contains(c.After, name) && !slices.Contains(names, c.Name) {
				return fmt.Errorf("--without=%s: %s starts after it, and would wait for ever", name, c.Name)
			}
		}
	}
	return nil
}

// load reads what is installed in dir.
func (k kind) load(dir string) (plane.Plane, error) {
	if dir == "" {
		return plane.Plane{}, errors.New("--data-dir is missing: name the directory that karmadactl has prepared")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return plane.Plane{}, fmt.Errorf("find the data directory: %w", err)
	}
	cfg, err := plane.Load(dir)
	if err != nil {
		return plane.Plane{}, fmt.Errorf("load %s: %w", dir, err)
	}
	if cfg.Kind != k.plane {
		return plane.Plane{}, &plane.ForeignDirectoryError{Dir: dir, Reason: fmt.Sprintf("it holds a %s, and this role runs a %s", cfg.Kind, k.plane)}
	}
	if err := cfg.Validate(); err != nil {
		return plane.Plane{}, fmt.Errorf("load %s: %w", dir, err)
	}
	return k.describe(cfg, plane.NewLayout(dir, cfg.PKI)), nil
}
