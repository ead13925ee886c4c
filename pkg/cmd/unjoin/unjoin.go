// Package unjoin implements karmadactl unjoin: a cluster that was joined leaves. The work is done by package registration;
// here flags become a request.
package unjoin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/cmd/host"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

const long = `
	Remove a cluster from Karmada control plane.

	What was propagated to the cluster is deleted there (--cascade=delete), or stays there as it is (--cascade=orphan). On
	a terminal the command asks; elsewhere it deletes, unless told otherwise.

	With --cluster-kubeconfig what join made in the cluster is removed, too: its ServiceAccounts, roles, and the namespace
	of these if join made it and nothing else is in it. If the cluster does not answer, the control plane forgets it all the
	same, and the command ends with an error that says what is left there. The command can be repeated.`

const example = `
	# Remove member1, and leave what was propagated to it where it is
	%[1]s unjoin member1 --cascade=orphan

	# Remove member1, and what join made in it
	%[1]s unjoin member1 --cascade=delete --cluster-kubeconfig=member1.config

	# Remove member1, which does not answer any more
	%[1]s unjoin member1 --cascade=delete --force`

// DefaultWait is how long the control plane has to remove the cluster (spec: cli/commands.md 3.2).
const DefaultWait = time.Minute

// NewCmd returns the unjoin command; program is what users type.
func NewCmd(f *factory.Factory, s genericiooptions.IOStreams, program string) (*cobra.Command, error) {
	flags := &Flags{Program: program}
	cmd := &cobra.Command{
		Use:                   "unjoin CLUSTER_NAME --cluster-kubeconfig=<KUBECONFIG>",
		Short:                 "Remove a cluster from Karmada control plane",
		Long:                  templates.LongDesc(long),
		Example:               templates.Examples(fmt.Sprintf(example, program)),
		SilenceUsage:          true,
		DisableFlagsInUseLine: true,
		Args:                  factory.OneClusterName,
		ValidArgsFunction:     f.CompleteOneCluster,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Within(cmd.Context())
			o, err := flags.ToOptions(f, s, args[0])
			if err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	f.AddConnectionFlags(cmd.Flags())
	flags.AddFlags(cmd.Flags())
	return cmd, f.RegisterCompletions(cmd)
}

// Flags hold what the user typed, and nothing else.
type Flags struct {
	Program string

	Kubeconfig, Context string
	Namespace           string
	Cascade             string
	DryRun, Force       bool
	Wait                time.Duration

	set *pflag.FlagSet
}

// AddFlags adds the flags (spec: cli/commands.md 3.2); --cascade is ours.
func (f *Flags) AddFlags(fs *pflag.FlagSet) {
	f.set = fs
	fs.StringVar(&f.Kubeconfig, "cluster-kubeconfig", "", "Path of the kubeconfig of the cluster. With it, what join made there is removed.")
	fs.StringVar(&f.Context, "cluster-context", "", "Name of the context in the kubeconfig of the cluster. Default is the cluster's name if there is a context of that name, else its current one.")
	fs.StringVar(&f.Namespace, "cluster-namespace", names.ClusterNamespace, "Namespace, on both sides, of the credentials of the cluster. Unless given, what the control plane knows wins.")
	fs.StringVar(&f.Cascade, "cascade", "", "What becomes of the objects that were propagated to the cluster: delete or orphan. Unless given, a terminal is asked; without one it is delete.")
	fs.BoolVar(&f.DryRun, "dry-run", false, "Look, and print what would be removed, without removing anything.")
	fs.BoolVar(&f.Force, "force", false, "Remove the cluster from the control plane after --wait whatever holds it back. What was propagated to it may stay there.")
	fs.DurationVar(&f.Wait, "wait", DefaultWait, "How long to wait until the cluster is gone.")
}

// ToOptions completes and validates: every mistake that can be seen without asking a server is reported here.
func (f *Flags) ToOptions(c *factory.Factory, s genericiooptions.IOStreams, name string) (*Options, error) {
	if err := f.validate(name); err != nil {
		return nil, err
	}
	plane, err := c.ToRESTConfig()
	if err != nil {
		return nil, err // says already what is wrong with which kubeconfig
	}
	api, err := registration.NewAPI(plane)
	if err != nil {
		return nil, err
	}
	o := &Options{
		Name: name, Namespace: f.Namespace, NamespaceGiven: f.set.Changed("cluster-namespace"),
		Cascade: f.Cascade, DryRun: f.DryRun, Force: f.Force, Wait: f.Wait,
		ControlPlane: api, Terminal: host.IsTerminal(s.In), Explain: c.Explain, IOStreams: s,
		Line: func(extra ...string) string { return f.line(name, extra) },
	}
	if f.Kubeconfig == "" {
		return o, nil
	}
	source := c.Member(factory.MemberOptions{
		Name: name, Kubeconfig: f.Kubeconfig, Context: f.Context, PreferContext: name,
		KubeconfigFlag: "--cluster-kubeconfig", ContextFlag: "--cluster-context",
	})
	cfg, err := source.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	member, err := registration.NewMember(cfg)
	if err != nil {
		return nil, fmt.Errorf("use %s: %w", source.Source(), err)
	}
	o.Member, o.Source = &member, source.Source()
	return o, nil
}

func (f *Flags) validate(name string) error {
	errs := []error{registration.ValidateClusterName(name)}
	if f.Wait <= 0 {
		errs = append(errs, fmt.Errorf("--wait=%s: it has to be more than 0, such as 60s", f.Wait))
	}
	if f.Cascade != "" && f.Cascade != names.CascadeDelete && f.Cascade != names.CascadeOrphan {
		errs = append(errs, fmt.Errorf("--cascade=%s: want %s or %s", f.Cascade, names.CascadeDelete, names.CascadeOrphan))
	}
	if problems := validation.IsDNS1123Label(f.Namespace); len(problems) > 0 {
		errs = append(errs, fmt.Errorf("--cluster-namespace=%s: %s", f.Namespace, strings.Join(problems, "; ")))
	}
	if f.Context != "" && f.Kubeconfig == "" {
		errs = append(errs, errors.New("--cluster-context needs --cluster-kubeconfig: it chooses a context of that file"))
	}
	return errors.Join(errs...)
}

// line is the command as it was typed, but for what extra says instead.
func (f *Flags) line(name string, extra []string) string {
	words := []string{f.Program, "unjoin", name}
	f.set.Visit(func(g *pflag.Flag) {
		for _, e := range extra {
			if flag, _, _ := strings.Cut(e, "="); flag == "--"+g.Name {
				return
			}
		}
		word := "--" + g.Name
		if g.Value.Type() != "bool" || g.Value.String() != "true" {
			word += "=" + g.Value.String()
		}
		words = append(words, quote(word))
	})
	return strings.Join(append(words, extra...), " ")
}

// quote makes one word of a shell out of text.
func quote(text string) string {
	if !strings.ContainsAny(text, " \t\n'\"\\$`;&|<>()*?[]#~!{}") {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Options are a complete and valid request to unjoin; only ToOptions makes them.
type Options struct {
	Name string
	// Namespace is where the credentials are; NamespaceGiven says that the user chose it.
	Namespace      string
	NamespaceGiven bool
	// Cascade is delete or orphan, "" if nothing was said.
	Cascade       string
	DryRun, Force bool
	Wait          time.Duration

	ControlPlane registration.API
	// Member is nil unless what join made there is to be removed; Source names the kubeconfig it came from.
	Member *registration.Member
	Source string

	// Terminal says that somebody can be asked.
	Terminal bool
	// Explain says why a server cannot be used.
	Explain func(error) error
	// Line is this command, with other flags.
	Line func(extra ...string) string
	genericiooptions.IOStreams
}

// say tells how things go. Nothing depends on whether it can be written.
func (o *Options) say(format string, args ...any) { _, _ = fmt.Fprintf(o.ErrOut, format+"\n", args...) }

// Run removes the cluster from the control plane, then what join made in it. That it is gone already is no error.
func (o *Options) Run(ctx context.Context) error {
	cluster, err := registration.FindCluster(ctx, o.ControlPlane.Client, o.Name)
	if err != nil {
		return fmt.Errorf("unjoin cluster %q: %w", o.Name, err)
	}
	if cluster != nil && cluster.Spec.SyncMode == clusterv1alpha1.Pull {
		return fmt.Errorf("cluster %s is registered in Pull mode, by an agent: remove it with \"unregister %s\"", o.Name, o.Name)
	}
	unreached, err := o.checkMember(ctx, cluster)
	if err != nil {
		return fmt.Errorf("unjoin cluster %q: %w", o.Name, err)
	}
	namespace := o.namespace(cluster)
	if unreached != nil {
		o.say("the member cannot be cleaned up now, cluster %s is removed from the control plane alone: %v", o.Name, o.Explain(unreached))
	}
	if err := o.leave(ctx, cluster); err != nil {
		return err // which says how to repeat this
	}
	if err := o.cleanUp(ctx, namespace, unreached != nil); err != nil {
		return fmt.Errorf("clean up after cluster %q: %w", o.Name, err)
	}
	if !o.DryRun && (unreached != nil || (o.Member == nil && cluster != nil && (o.Force || !isReady(cluster)))) {
		o.sayWhatIsLeft(namespace)
	}
	if unreached != nil {
		return fmt.Errorf("unjoin cluster %q: %w", o.Name, registration.AtMember(unreached))
	}
	return nil
}

// sayWhatIsLeft says that of a member that was not cleaned up, and how to remove it.
func (o *Options) sayWhatIsLeft(namespace string) {
	var again []string
	if namespace != names.ClusterNamespace && !o.NamespaceGiven {
		again = append(again, "--cluster-namespace="+namespace) // the control plane does not know it any more
	}
	if o.Member == nil {
		again = append(again, "--cluster-kubeconfig=FILE")
	}
	o.say("what join made in the member stays there: ServiceAccounts %s and %s in namespace %s, ClusterRole and ClusterRoleBinding %s; to remove it once the member answers: %s",
		names.ClusterServiceAccount(o.Name), names.ImpersonatorServiceAccount, namespace, names.ClusterRole(o.Name), o.Line(again...))
}

// isReady reports whether the control plane reaches the member.
func isReady(c *clusterv1alpha1.Cluster) bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ConditionReady)
}

// namespace is the one that was asked for, or else the one that the control plane knows.
func (o *Options) namespace(c *clusterv1alpha1.Cluster) string {
	if !o.NamespaceGiven && c != nil && c.Spec.SecretRef != nil && c.Spec.SecretRef.Namespace != "" {
		return c.Spec.SecretRef.Namespace
	}
	return o.Namespace
}

// checkMember makes sure, before anything is removed, that the kubeconfig leads to the cluster that is meant. That it does
// not answer is unreached.
func (o *Options) checkMember(ctx context.Context, c *clusterv1alpha1.Cluster) (unreached, err error) {
	if o.Member == nil {
		return nil, nil
	}
	id, err := registration.ClusterID(ctx, o.Member.Client)
	if err != nil {
		if ctx.Err() == nil && c != nil && mayPass(err) {
			return err, nil
		}
		o.say("nothing was removed; without --cluster-kubeconfig cluster %s is removed from the control plane alone", o.Name)
		return nil, registration.AtMember(err)
	}
	if err := registration.RefuseControlPlane(ctx, o.ControlPlane, o.Member.API, id); err != nil {
		return nil, err
	}
	if c != nil && c.Spec.ID != "" && c.Spec.ID != id {
		return nil, fmt.Errorf("%s leads to another cluster: it has the ID %s, and %s has %s; nothing was removed, pass the right one, or none", o.Source, id, o.Name, c.Spec.ID)
	}
	return nil, nil
}

// mayPass reports that nobody answers, or a server that cannot do its work. Anything else tells of a mistake.
func mayPass(err error) bool {
	var transport *url.Error
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &transport) {
		return !errors.As(err, &certificate) && !errors.Is(err, http.ErrSchemeMismatch) && !strings.HasPrefix(transport.Err.Error(), "getting credentials: ")
	}
	return apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsInternalError(err) || apierrors.IsTooManyRequests(err)
}

// leave takes the cluster out of the control plane.
func (o *Options) leave(ctx context.Context, c *clusterv1alpha1.Cluster) error {
	if c == nil {
		o.say("cluster %s is not registered: there is nothing to remove from the control plane", o.Name)
		return nil
	}
	propagated, err := registration.Propagated(ctx, o.ControlPlane.Client, o.Name)
	if err != nil {
		return fmt.Errorf("unjoin cluster %q: %w", o.Name, err)
	}
	if o.DryRun {
		return o.preview(c, propagated)
	}
	orphan, err := o.orphans(ctx, c, propagated)
	if err != nil {
		return err
	}
	err = registration.RemoveCluster(ctx, o.ControlPlane.Client, registration.Removal{
		Name: o.Name, UID: string(c.UID), Orphan: orphan, Wait: o.Wait, Force: o.Force,
		Progress: func(line string) { o.say("%s", line) },
	})
	var stuck *registration.StuckError
	if errors.As(err, &stuck) && !o.Force {
		return fmt.Errorf("%w; to go on waiting: %s; to give the cluster up, with what may stay there: %s", err, o.Line(), o.Line("--force"))
	}
	if err != nil {
		return fmt.Errorf("unjoin cluster %q: %w", o.Name, err)
	}
	return nil
}

// cleanUp removes what neither the control plane nor its garbage collector does; from a member that was not reached, nothing.
func (o *Options) cleanUp(ctx context.Context, namespace string, unreached bool) error {
	plane := registration.NewWriter(o.ControlPlane.Client)
	if o.DryRun {
		plane = registration.NewDryWriter(o.ControlPlane.Client)
	}
	if err := registration.RemoveSecrets(ctx, plane, o.Name, namespace); err != nil {
		return err
	}
	if err := o.report("control plane", plane); err != nil {
		return err
	}
	if o.Member == nil || unreached {
		return nil
	}
	member := registration.NewWriter(o.Member.Client)
	if o.DryRun {
		member = registration.NewDryWriter(o.Member.Client)
	}
	kept, err := registration.RemoveMemberAccess(ctx, member, o.Member.Contents, o.Name, namespace)
	for _, k := range kept {
		o.say("member cluster: %s", k)
	}
	if err != nil {
		return registration.AtMember(err)
	}
	return o.report("member cluster", member)
}

// report prints what a dry run would remove; what is removed is not worth a line.
func (o *Options) report(side string, w *registration.Writer) error {
	if !o.DryRun {
		return nil
	}
	for _, c := range w.Changes() {
		if c.Action != registration.Delete {
			continue
		}
		if _, err := fmt.Fprintf(o.Out, "%s: delete %s\n", side, w.Describe(c.Object)); err != nil {
			return err
		}
	}
	return nil
}
