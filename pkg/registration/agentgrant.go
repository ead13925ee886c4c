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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// What the ClusterRole of an agent says about how it came to be.
const (
	// grantTimeAnnotation has when the rights were given last, in RFC 3339 form. Rights without it were made by
	// somebody else, such as the client of the classic flow, and are left as they are unless they are given anew.
	grantTimeAnnotation = "bootstrap.karmada.io/granted-at"
	// grantTokenAnnotation has the id of the bootstrap token that asked for them. It goes when that token is used up.
	grantTokenAnnotation = "bootstrap.karmada.io/granted-to-token"
	// grantNamedAnnotation is "true" if that token was for the one cluster. Rights without it are taken for those of a
	// classic token.
	grantNamedAnnotation = "bootstrap.karmada.io/granted-to-named-token"
)

// A Grant says when an agent was given its rights, and for what.
type Grant struct {
	// At is when, to the second.
	At time.Time
	// TokenID is that of the bootstrap token whose holder asked; "" when there was none, or when it is used up.
	TokenID string
	// Named says that an administrator made the token for this one cluster. A classic token is for whichever its holder
	// likes. It says nothing when there was no token.
	Named bool
}

// IsClassic reports whether a classic token asked.
func (g Grant) IsClassic() bool { return g.TokenID != "" && !g.Named }

// who says to people who asked, and when.
func (g Grant) who() string {
	at := g.At.UTC().Format(time.RFC3339)
	if g.TokenID == "" {
		return "somebody, at " + at + ","
	}
	return fmt.Sprintf("the holder of bootstrap token %s, at %s,", g.TokenID, at)
}

// GrantOf reads a Grant from the ClusterRole of an agent, or from its metadata; false means that the rights were not
// made by GrantAgentRights.
func GrantOf(role metav1.Object) (Grant, bool) {
	at, err := time.Parse(time.RFC3339, role.GetAnnotations()[grantTimeAnnotation])
	return Grant{
		At: at, TokenID: role.GetAnnotations()[grantTokenAnnotation], Named: role.GetAnnotations()[grantNamedAnnotation] == names.True,
	}, err == nil
}

// note writes the grant on the ClusterRole of an agent.
func (g Grant) note(role metav1.Object) {
	annotations := maps.Clone(role.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[grantTimeAnnotation] = g.At.UTC().Format(time.RFC3339)
	delete(annotations, grantTokenAnnotation)
	delete(annotations, grantNamedAnnotation)
	if g.Named {
		annotations[grantNamedAnnotation] = names.True
	}
	if g.TokenID != "" {
		annotations[grantTokenAnnotation] = g.TokenID
	}
	role.SetAnnotations(annotations)
}

// OwnerOfAgentRights returns the Cluster, by its UID, that the rights of an agent go with; false if they are not tied to
// one yet. It reads the ClusterRole of the agent, or its metadata.
func OwnerOfAgentRights(role metav1.Object) (types.UID, bool) {
	for _, o := range role.GetOwnerReferences() {
		if ownsAsCluster(o) {
			return o.UID, true
		}
	}
	return "", false
}

func ownsAsCluster(o metav1.OwnerReference) bool {
	return o.Kind == clusterv1alpha1.KindCluster && o.APIVersion == clusterv1alpha1.GroupVersion.String()
}

// GrantAgentRights brings the rights of a cluster's agent to be as AgentRights says. The grant is noted before anything
// else is done, and that note is what two tokens that ask at once meet at. An owner, if there is one yet, takes the
// rights with it when it goes. The Writer's client must not read from a cache.
func GrantAgentRights(ctx context.Context, w *Writer, cluster string, owner *clusterv1alpha1.Cluster, g Grant) error {
	return ensureAgentRights(ctx, w, cluster, owner, g.note)
}

// MendAgentRights is GrantAgentRights for rights that were given already: who asked for them stays as it is noted.
func MendAgentRights(ctx context.Context, w *Writer, cluster string, owner *clusterv1alpha1.Cluster) error {
	return ensureAgentRights(ctx, w, cluster, owner, func(metav1.Object) {})
}

func ensureAgentRights(ctx context.Context, w *Writer, cluster string, owner *clusterv1alpha1.Cluster, note func(metav1.Object)) error {
	objects, err := AgentRights(cluster)
	if err != nil {
		return err
	}
	var errs []error
	for i, wanted := range objects {
		_, err := ensure(ctx, w, bare(wanted), func(found client.Object) error {
			if !found.GetDeletionTimestamp().IsZero() {
				return fmt.Errorf("%s is being removed: this goes on when it is gone", w.Describe(found))
			}
			if _, ok := wanted.(*corev1.Namespace); ok {
				if isNew(found) { // an existing one is left unchanged (spec: behaviour/02 2.1)
					markSystem(found)
				}
				return nil
			}
			if role, ok := found.(*rbacv1.ClusterRole); ok {
				note(role)
			}
			own(found, owner)
			return mend(found, wanted)
		})
		if errors.Is(err, errOtherRole) {
			err = replace(ctx, w, wanted, owner)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("give the agent of cluster %q its rights: %w", cluster, err))
		}
		if err != nil && i == 0 {
			break // without the note there is nothing to give
		}
	}
	return errors.Join(errs...)
}

// EnsureRBACGeneratorRights brings RBACGeneratorRights to be there.
func EnsureRBACGeneratorRights(ctx context.Context, w *Writer) error {
	for _, wanted := range RBACGeneratorRights() {
		if _, err := ensure(ctx, w, bare(wanted), func(found client.Object) error { return mend(found, wanted) }); err != nil {
			return fmt.Errorf("give %s its rights: %w", RBACGeneratorUser, err)
		}
	}
	return nil
}

// RemoveAgentRights takes the roles and bindings of AgentRights away; the execution namespace stays, which holds Works.
// What is not there is no error, nor is an object of that name without the label of the system: it is not ours. A binding
// for the agent goes all the same, whoever made it, because it gives the rights.
func RemoveAgentRights(ctx context.Context, w *Writer, cluster string) error {
	objects, err := AgentRights(cluster)
	if err != nil {
		return err
	}
	var errs []error
	for _, o := range slices.Backward(objects) {
		if _, ok := o.(*corev1.Namespace); ok {
			continue
		}
		err := w.client.Get(ctx, client.ObjectKeyFromObject(o), o)
		switch {
		case isAbsent(err):
		case err != nil:
			errs = append(errs, fmt.Errorf("read %s: %w", w.Describe(o), err))
		case isSystem(o) || isFor(o, AgentUser(cluster)):
			errs = append(errs, w.remove(ctx, o))
		}
	}
	return errors.Join(errs...)
}

// isFor reports whether an object is a binding that gives a user something.
func isFor(o client.Object, user string) bool {
	var subjects []rbacv1.Subject
	switch o := o.(type) {
	case *rbacv1.ClusterRoleBinding:
		subjects = o.Subjects
	case *rbacv1.RoleBinding:
		subjects = o.Subjects
	}
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool { return s.Kind == rbacv1.UserKind && s.Name == user })
}

// errOtherRole says that a binding is for another role than it should be, which cannot be changed.
var errOtherRole = errors.New("the binding is for another role")

// replace makes a binding anew.
func replace(ctx context.Context, w *Writer, wanted client.Object, owner *clusterv1alpha1.Cluster) error {
	found := bare(wanted)
	if err := w.client.Get(ctx, client.ObjectKeyFromObject(wanted), found); err != nil {
		return fmt.Errorf("read %s: %w", w.Describe(wanted), err)
	}
	if err := w.remove(ctx, found); err != nil {
		return err
	}
	own(wanted, owner)
	return w.create(ctx, wanted)
}

// bare returns an object of the same kind and name, and nothing else in it.
func bare(o client.Object) client.Object {
	meta := metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName()}
	switch o.(type) {
	case *corev1.Namespace:
		return &corev1.Namespace{ObjectMeta: meta}
	case *rbacv1.ClusterRole:
		return &rbacv1.ClusterRole{ObjectMeta: meta}
	case *rbacv1.ClusterRoleBinding:
		return &rbacv1.ClusterRoleBinding{ObjectMeta: meta}
	case *rbacv1.Role:
		return &rbacv1.Role{ObjectMeta: meta}
	default:
		return &rbacv1.RoleBinding{ObjectMeta: meta}
	}
}

// own makes the Cluster the only one that an object goes with; without one, it goes with none.
func own(o client.Object, c *clusterv1alpha1.Cluster) {
	owners := slices.DeleteFunc(slices.Clone(o.GetOwnerReferences()), ownsAsCluster)
	if c != nil {
		owners = append(owners, metav1.OwnerReference{
			APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: clusterv1alpha1.KindCluster, Name: c.Name, UID: c.UID,
		})
	}
	o.SetOwnerReferences(owners)
}

// mend makes the rules of a role, or the subjects of a binding, those of wanted.
func mend(found, wanted client.Object) error {
	markSystem(found)
	switch wanted := wanted.(type) {
	case *rbacv1.ClusterRole:
		if role, ok := found.(*rbacv1.ClusterRole); ok {
			role.Rules, role.AggregationRule = wanted.Rules, nil
		}
	case *rbacv1.Role:
		if role, ok := found.(*rbacv1.Role); ok {
			role.Rules = wanted.Rules
		}
	case *rbacv1.ClusterRoleBinding:
		if binding, ok := found.(*rbacv1.ClusterRoleBinding); ok {
			if !isNew(binding) && binding.RoleRef != wanted.RoleRef {
				return errOtherRole
			}
			binding.RoleRef, binding.Subjects = wanted.RoleRef, wanted.Subjects
		}
	case *rbacv1.RoleBinding:
		if binding, ok := found.(*rbacv1.RoleBinding); ok {
			if !isNew(binding) && binding.RoleRef != wanted.RoleRef {
				return errOtherRole
			}
			binding.RoleRef, binding.Subjects = wanted.RoleRef, wanted.Subjects
		}
	}
	return nil
}

// EndGrant notes that the holder of a token has come to use the rights that the token asked for. A token for the cluster
// alone is used up by that, and removed; a classic one lives until it expires.
func EndGrant(ctx context.Context, w *Writer, cluster string) error {
	var role rbacv1.ClusterRole
	if err := w.client.Get(ctx, client.ObjectKey{Name: AgentRightsName(cluster)}, &role); err != nil {
		return fmt.Errorf("read %s: %w", AgentRightsName(cluster), err)
	}
	g, ok := GrantOf(&role)
	if !ok || g.TokenID == "" {
		return nil
	}
	if err := removeToken(ctx, w, g.TokenID, cluster); err != nil {
		return err
	}
	delete(role.Annotations, grantTokenAnnotation)
	return w.update(ctx, &role)
}

// removeToken removes a token, if it is for that cluster and no other.
func removeToken(ctx context.Context, w *Writer, id, cluster string) error {
	var secret corev1.Secret
	err := w.client.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: bootstraputil.BootstrapTokenSecretName(id)}, &secret)
	switch {
	case isAbsent(err):
		return nil
	case err != nil:
		return fmt.Errorf("read bootstrap token %q: %w", id, err)
	}
	if t, err := TokenFromSecret(&secret); err != nil || t.Cluster != cluster {
		return nil // what is no token gives nobody anything
	}
	return w.remove(ctx, &secret)
}
