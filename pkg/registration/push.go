package registration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// A Push is a complete request to register a cluster that the control plane reaches by itself.
type Push struct {
	// Name is what the cluster is to be called.
	Name string
	// Namespace holds the ServiceAccounts in the member, and the Secrets in the control plane.
	Namespace string
	// NamespaceGiven says that this one is wanted; otherwise a cluster that is entered keeps the one that it has.
	NamespaceGiven   bool
	Provider, Region string
	Zones            []string
	Labels           map[string]string
	// DryRun reads, and changes nothing.
	DryRun bool
}

// A Plan is what a registration, or its end, does to each side: what it did, or what it would do.
type Plan struct {
	Member       []Change
	ControlPlane []Change
	// Cluster is the object as the control plane has it now; of a dry run, as it would be sent.
	Cluster *clusterv1alpha1.Cluster
}

// A Joiner registers clusters in push mode.
type Joiner struct {
	ControlPlane API
	Member       Member
	// Progress gets a line now and then when something takes its time.
	Progress func(line string)
	// Patience bounds each wait for what the two sides do by themselves; 0 is DefaultTokenTimeout.
	Patience time.Duration
}

// Join makes the member reachable and enters it in the control plane. It can be repeated: what is there already is checked
// and mended. When it fails before the member is entered, what it made is removed again (spec: cli/commands.md 3.1).
func (j *Joiner) Join(ctx context.Context, p Push) (Plan, error) {
	if j.Patience <= 0 {
		j.Patience = DefaultTokenTimeout
	}
	// The credentials of such a name would be within the rights of another cluster's agent.
	if err := ValidateAgentCluster(p.Name); err != nil {
		return Plan{}, err
	}
	existing, e, err := j.identify(ctx, p)
	if err != nil {
		return Plan{}, err
	}
	member, plane := NewWriter(j.Member.Client), NewWriter(j.ControlPlane.Client)
	if p.DryRun {
		member, plane = NewDryWriter(j.Member.Client), NewDryWriter(j.ControlPlane.Client)
	}
	c, err := j.enter(ctx, member, plane, e, existing)
	if err != nil {
		if existing == nil && !p.DryRun {
			err = j.undo(ctx, member, plane, e, err)
		}
		return Plan{}, err
	}
	return Plan{Member: member.Changes(), ControlPlane: plane.Changes(), Cluster: c}, nil
}

// identify finds out which cluster this is, and the Cluster that it has already.
func (j *Joiner) identify(ctx context.Context, p Push) (*clusterv1alpha1.Cluster, Entry, error) {
	known, err := j.clusters(ctx)
	if err != nil {
		return nil, Entry{}, err
	}
	id, err := ClusterID(ctx, j.Member.Client)
	if err != nil {
		return nil, Entry{}, AtMember(err)
	}
	if err := RefuseControlPlane(ctx, j.ControlPlane, j.Member.API, id); err != nil {
		return nil, Entry{}, err
	}
	known, err = j.awaitRemoval(ctx, known, p.Name)
	if err != nil {
		return nil, Entry{}, err
	}
	e := Entry{
		Identity:  Identity{Name: p.Name, ID: id, Mode: clusterv1alpha1.Push, Endpoint: j.Member.Endpoint.URL},
		Namespace: p.Namespace, Credentials: true, Impersonator: true,
		ProxyURL: j.Member.Endpoint.ProxyURL, Insecure: j.Member.Endpoint.Insecure,
		Provider: p.Provider, Region: p.Region, Zones: p.Zones, Labels: p.Labels,
	}
	existing, err := e.Find(known)
	if err != nil {
		return nil, e, err
	}
	e.Namespace, err = namespaceOf(p, existing)
	return existing, e, err
}

// namespaceOf is where the credentials are to be. They do not move: those in the old place would stay there for good.
func namespaceOf(p Push, existing *clusterv1alpha1.Cluster) (string, error) {
	if existing == nil || existing.Spec.SecretRef == nil || existing.Spec.SecretRef.Namespace == "" || existing.Spec.SecretRef.Namespace == p.Namespace {
		return p.Namespace, nil
	}
	has := existing.Spec.SecretRef.Namespace
	if p.NamespaceGiven {
		return "", fmt.Errorf("cluster %s keeps its credentials in namespace %s, and not in %s: leave --cluster-namespace out, or unjoin it first", p.Name, has, p.Namespace)
	}
	return has, nil
}

// clusters lists what is registered. A control plane that has just been made may need a moment before it serves Clusters.
func (j *Joiner) clusters(ctx context.Context) ([]clusterv1alpha1.Cluster, error) {
	var list clusterv1alpha1.ClusterList
	var last error
	err := poll(ctx, j.Patience, func(ctx context.Context) (bool, error) {
		err := j.ControlPlane.Client.List(ctx, &list)
		if err == nil {
			return true, nil
		}
		err = fmt.Errorf("list the clusters of the control plane: %w", err)
		if !isStarting(err) {
			return false, err
		}
		if last == nil {
			if apierrors.IsNotFound(err) && !j.mayServeClusters(ctx) {
				return false, err
			}
			j.Progress("waiting for the control plane to serve clusters")
		}
		last = err
		return false, nil
	})
	if errors.Is(err, errPatience) {
		return nil, fmt.Errorf("%w; it has not served them for %s: look at its karmada-aggregated-apiserver, and repeat this when it is up", last, j.Patience)
	}
	return list.Items, err
}

// isStarting reports that a server answers, but not for Clusters yet.
func isStarting(err error) bool {
	return apierrors.IsServiceUnavailable(err) || apierrors.IsNotFound(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err)
}

// mayServeClusters reports whether the control plane is one, or cannot be asked.
func (j *Joiner) mayServeClusters(ctx context.Context) bool {
	groups, err := j.ControlPlane.Groups(ctx)
	return err != nil || IsControlPlane(groups)
}

// RefuseControlPlane returns an error when a member, whose ID is given, is the control plane itself or any other.
func RefuseControlPlane(ctx context.Context, plane, member API, id string) error {
	own, err := ClusterID(ctx, plane.Client)
	switch {
	case err != nil && !apierrors.IsForbidden(err) && !isAbsent(err): // then it cannot be told by this
		return fmt.Errorf("look at the control plane: %w", err)
	case err == nil && own == id:
		return errors.New("that is the control plane itself, and not a member: the kubeconfig of the member belongs behind --cluster-kubeconfig")
	}
	groups, err := member.Groups(ctx)
	if err != nil {
		return AtMember(err)
	}
	if IsControlPlane(groups) {
		return errors.New("that is a Karmada control plane, and not a member: the kubeconfig of the member belongs behind --cluster-kubeconfig")
	}
	return nil
}

// awaitRemoval waits while a Cluster of that name is being removed, so that the name can be taken again at once.
func (j *Joiner) awaitRemoval(ctx context.Context, known []clusterv1alpha1.Cluster, name string) ([]clusterv1alpha1.Cluster, error) {
	leaving := func() bool {
		for i := range known {
			if known[i].Name == name && !known[i].DeletionTimestamp.IsZero() {
				return true
			}
		}
		return false
	}
	if !leaving() {
		return known, nil
	}
	j.Progress(fmt.Sprintf("waiting for the cluster %s that is being removed", name))
	err := poll(ctx, j.Patience, func(ctx context.Context) (bool, error) {
		var list clusterv1alpha1.ClusterList
		if err := j.ControlPlane.Client.List(ctx, &list); err != nil {
			return false, fmt.Errorf("list the clusters of the control plane: %w", err)
		}
		known = list.Items
		return !leaving(), nil
	})
	if errors.Is(err, errPatience) {
		return nil, fmt.Errorf("a cluster %s is being removed, and has not gone in %s: repeat this when it has, or \"unjoin %s --force\"", name, j.Patience, name)
	}
	return known, err
}

// enter makes all objects, in such an order that a registration which ends in between is taken up by the next.
func (j *Joiner) enter(ctx context.Context, member, plane *Writer, e Entry, existing *clusterv1alpha1.Cluster) (*clusterv1alpha1.Cluster, error) {
	creds, err := j.access(ctx, member, e, existing)
	if err != nil {
		return nil, AtMember(err)
	}
	if _, err := j.lockAgentOut(ctx, plane, e.Name); err != nil {
		return nil, err
	}
	if err := EnsureSecrets(ctx, plane, e, creds, existing); err != nil {
		return nil, err
	}
	c, err := EnsureCluster(ctx, plane, e)
	if err != nil || plane.dryRun {
		return c, err
	}
	// From here on nobody gets them any more. Until here a token could ask for them again.
	again, err := j.lockAgentOut(ctx, plane, e.Name)
	if err != nil {
		return nil, err
	}
	if again {
		return nil, fmt.Errorf("the cluster is registered, but while it was, somebody with a bootstrap token got the rights of an agent of that name and may have read its credentials: "+
			"delete that token, then \"unjoin %s\" and repeat this", e.Name)
	}
	if err := EnsureSecrets(ctx, plane, e, creds, c); err != nil {
		return nil, fmt.Errorf("the cluster is registered, but its credentials are not complete, repeat this: %w", err)
	}
	return c, nil
}

// lockAgentOut removes the rights of an agent of that name, which would let whoever asked for them read the credentials of
// the cluster, and reports whether there were any. A classic token may have asked before the name was taken.
func (j *Joiner) lockAgentOut(ctx context.Context, plane *Writer, cluster string) (bool, error) {
	w := &Writer{client: plane.client, dryRun: plane.dryRun}
	if err := RemoveAgentRights(ctx, w, cluster); err != nil {
		return false, fmt.Errorf("remove the rights of an agent of cluster %s, which could read the credentials: %w", cluster, err)
	}
	for _, c := range w.changes {
		plane.note(c.Action, c.Object)
	}
	if len(w.changes) == 0 {
		return false, nil
	}
	whose := "somebody"
	for _, c := range w.changes {
		if role, ok := c.Object.(*rbacv1.ClusterRole); ok {
			if g, ok := GrantOf(role); ok {
				whose = g.who()
			}
		}
	}
	removed := "removed"
	if plane.dryRun {
		removed = "to be removed"
	}
	j.Progress(fmt.Sprintf("%s has got the rights of an agent of cluster %s, which is to be in push mode and has none: they are %s", whose, cluster, removed))
	return true, nil
}

// access makes the member's objects, and makes sure that the control plane will be let in. A token that is refused is made
// anew only when that helps: the control plane may be using it.
func (j *Joiner) access(ctx context.Context, w *Writer, e Entry, existing *clusterv1alpha1.Cluster) (Credentials, error) {
	a := Access{Cluster: e.Name, Namespace: e.Namespace, Credentials: true, Impersonator: true, TokenTimeout: j.Patience}
	for again := false; ; again = true {
		c, err := EnsureMemberAccess(ctx, w, a)
		if err != nil {
			return c, err
		}
		c.CABundle = j.Member.Endpoint.caBundle(c.CABundle)
		if w.dryRun {
			return c, nil
		}
		tokens := map[string][]byte{names.ClusterServiceAccount(e.Name): c.Token, names.ImpersonatorServiceAccount: c.ImpersonatorToken}
		renewed := false
		for _, account := range slices.Sorted(maps.Keys(tokens)) {
			err := j.tryOut(ctx, c.CABundle, tokens[account])
			if err != nil && !again && errors.Is(err, ErrUnauthorized) {
				// The member has new keys, or has given up old tokens; or the address is not the member's own.
				renewed = true
				err = j.renew(ctx, w, a, account, c.CABundle, tokens[account], existing, err)
			}
			if err != nil {
				return c, err
			}
		}
		if !renewed {
			return c, nil
		}
	}
}

// renew deletes a token that is refused, once it is known that a new one is not; otherwise everything stays as it is.
func (j *Joiner) renew(ctx context.Context, w *Writer, a Access, account string, caBundle, token []byte, existing *clusterv1alpha1.Cluster, refused error) error {
	for _, c := range w.Changes() {
		if _, isSecret := c.Object.(*corev1.Secret); isSecret && c.Action == Create && c.Object.GetName() == account {
			return refused // it is new
		}
	}
	if existing != nil && existing.Spec.APIEndpoint != j.Member.Endpoint.URL {
		at := Endpoint{URL: existing.Spec.APIEndpoint, ProxyURL: existing.Spec.ProxyURL, Insecure: existing.Spec.InsecureSkipTLSVerification}
		if err := j.Member.Probe(ctx, at, caBundle, token); err == nil {
			return fmt.Errorf("%w; the control plane goes on reaching it at %s", refused, at.URL)
		}
	}
	err := newToken(ctx, j.Member.Client, a.Namespace, account, j.Patience, func(token []byte) error { return j.tryOut(ctx, caBundle, token) })
	if err != nil {
		return err
	}
	return forgetToken(ctx, w, a.Namespace, account)
}

// tokenPatience is how long an API server may need to know a token that its own controller has just made.
const tokenPatience = 3 * time.Second

// tryOut asks the member with a token.
func (j *Joiner) tryOut(ctx context.Context, caBundle, token []byte) error {
	var last error
	err := poll(ctx, min(tokenPatience, j.Patience), func(ctx context.Context) (bool, error) {
		last = j.Member.Probe(ctx, j.Member.Endpoint, caBundle, token)
		if errors.Is(last, ErrUnauthorized) {
			return false, nil
		}
		return true, last
	})
	if errors.Is(err, errPatience) {
		err = last
	}
	if err != nil {
		return fmt.Errorf("reach the API server as the control plane will: %w", j.Member.Endpoint.explain(err))
	}
	return nil
}

// undo removes what a failed registration made, unless the member is entered all the same.
func (j *Joiner) undo(ctx context.Context, member, plane *Writer, e Entry, failed error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout) // also when the user has had enough
	defer cancel()
	found, err := FindCluster(ctx, j.ControlPlane.Client, e.Name)
	if err != nil || (found != nil && found.Spec.ID == e.ID) {
		return failed // it is, or nobody knows: the next try takes it up
	}
	err = errors.Join(plane.Undo(ctx), AtMember(member.Undo(ctx)))
	if err == nil {
		err = AtMember(j.undoNamespace(ctx, member, e.Namespace))
	}
	if err != nil {
		return fmt.Errorf("%w; not all that was made for it could be removed again, the next try takes it up: %w", failed, err)
	}
	return failed
}

// undoNamespace removes the member's namespace if this attempt made it and nobody uses it.
func (j *Joiner) undoNamespace(ctx context.Context, w *Writer, name string) error {
	for _, c := range w.changes {
		if c.Action == Create && c.Object.GetName() == name && kindOf(w, c.Object) == "Namespace" {
			r := &remover{Writer: w}
			r.removeNamespace(ctx, j.Member.Contents, name)
			return errors.Join(r.errs...)
		}
	}
	return nil
}

// AtMember marks an error as one of the member's side, so that nobody takes it for the control plane's.
func AtMember(err error) error {
	if err == nil {
		return nil
	}
	return &MemberError{err}
}

// A MemberError is what went wrong on the member's side.
type MemberError struct{ cause error }

func (e *MemberError) Error() string { return "member cluster: " + e.cause.Error() }

// Unwrap returns what went wrong.
func (e *MemberError) Unwrap() error { return e.cause }
