package registration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmadactl/karmadactl/pkg/names"
)

// DefaultTokenTimeout is how long a member has to fill in the token of a ServiceAccount, and to finish deleting a
// namespace that is needed (spec: cli/commands.md 3.1).
const DefaultTokenTimeout = 30 * time.Second

// An Access says what is to be made in a member so that it can be reached.
type Access struct {
	// Cluster is the name of the member.
	Cluster string
	// Namespace is where its ServiceAccounts are: --cluster-namespace.
	Namespace string
	// Credentials makes the ServiceAccount through which the control plane reaches the member, which may do everything.
	Credentials bool
	// Impersonator makes the ServiceAccount that requests of users are proxied with. What it may do is said later, by the
	// control plane.
	Impersonator bool
	// TokenTimeout is how long to wait for what the member's controllers do; 0 is DefaultTokenTimeout.
	TokenTimeout time.Duration
}

// Credentials are what a control plane reaches a member with. What was not asked for is empty.
type Credentials struct {
	// CABundle is by what the member's API server is recognised, in PEM form.
	CABundle []byte
	// Token is that of the ServiceAccount which may do everything.
	Token []byte
	// ImpersonatorToken is that of the ServiceAccount which may act as others.
	ImpersonatorToken []byte
}

// String leaves the secrets out, so that no message ever has them by accident.
func (Credentials) String() string { return "credentials of a member cluster" }

// GoString leaves the secrets out, too.
func (c Credentials) GoString() string { return c.String() }

// EnsureMemberAccess makes in the member that w writes to what a lacks or has wrong, and returns the credentials (spec:
// behaviour/01 1.7). An object that is right is not written. A dry run returns no credentials.
func EnsureMemberAccess(ctx context.Context, w *Writer, a Access) (Credentials, error) {
	if a.TokenTimeout <= 0 {
		a.TokenTimeout = DefaultTokenTimeout
	}
	if !a.Credentials && !a.Impersonator {
		return Credentials{}, nil
	}
	if err := ensureNamespace(ctx, w, a.Namespace, a.TokenTimeout); err != nil {
		return Credentials{}, err
	}
	// All is made before anything is waited for.
	var main, impersonator *corev1.ServiceAccount
	var err error
	if a.Impersonator {
		if impersonator, err = ensureServiceAccount(ctx, w, a.Namespace, names.ImpersonatorServiceAccount); err != nil {
			return Credentials{}, err
		}
	}
	if a.Credentials {
		if main, err = ensureServiceAccount(ctx, w, a.Namespace, names.ClusterServiceAccount(a.Cluster)); err != nil {
			return Credentials{}, err
		}
		if err := ensureAdmin(ctx, w, names.ClusterRole(a.Cluster), main); err != nil {
			return Credentials{}, err
		}
	}

	var c Credentials
	if impersonator != nil {
		s, err := tokenOf(ctx, w, impersonator, impersonator.Name, a.TokenTimeout)
		if err != nil {
			return Credentials{}, err
		}
		c.ImpersonatorToken = s.Data[corev1.ServiceAccountTokenKey]
	}
	if main != nil {
		s, err := tokenOf(ctx, w, main, main.Name, a.TokenTimeout)
		if err != nil {
			return Credentials{}, err
		}
		c.Token, c.CABundle = s.Data[corev1.ServiceAccountTokenKey], s.Data[corev1.ServiceAccountRootCAKey]
	}
	return c, nil
}

// ensureNamespace makes a namespace with the mark of the system; one that is there stays as it is. One that is being
// deleted is waited for: it may be what is left of the last registration.
func ensureNamespace(ctx context.Context, w *Writer, name string, patience time.Duration) error {
	var gone *corev1.Namespace
	err := poll(ctx, patience, func(ctx context.Context) (bool, error) {
		ns, err := ensure(ctx, w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(ns *corev1.Namespace) error {
			if isNew(ns) {
				markSystem(ns)
			}
			return nil
		})
		if err != nil {
			return false, err
		}
		gone = ns
		return ns.DeletionTimestamp.IsZero(), nil
	})
	if errors.Is(err, errPatience) {
		return fmt.Errorf("namespace %s is being deleted, and has not gone in %s: %s; repeat this when it has", name, patience, whyNamespaceStays(gone))
	}
	return err
}

// whyNamespaceStays repeats what the namespace controller says.
func whyNamespaceStays(ns *corev1.Namespace) string {
	var reasons []string
	for _, c := range ns.Status.Conditions {
		if c.Status == corev1.ConditionTrue && c.Message != "" {
			reasons = append(reasons, c.Message)
		}
	}
	if len(reasons) == 0 {
		return "it is being emptied"
	}
	return strings.Join(reasons, "; ")
}

func ensureServiceAccount(ctx context.Context, w *Writer, namespace, name string) (*corev1.ServiceAccount, error) {
	return ensure(ctx, w, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, func(sa *corev1.ServiceAccount) error {
		if isNew(sa) {
			markSystem(sa) // one that somebody else made stays theirs
		}
		return nil
	})
}

// ensureAdmin lets a ServiceAccount do everything, by a role and a binding of that name. Both are mended when they say
// anything else.
func ensureAdmin(ctx context.Context, w *Writer, name string, sa *corev1.ServiceAccount) error {
	_, err := ensure(ctx, w, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(r *rbacv1.ClusterRole) error {
		markSystem(r)
		r.AggregationRule = nil
		r.Rules = []rbacv1.PolicyRule{
			{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}},
			{NonResourceURLs: []string{"*"}, Verbs: []string{"get"}},
		}
		return nil
	})
	if err != nil {
		return err
	}

	want := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
	var wrong *rbacv1.ClusterRoleBinding
	for {
		_, err = ensure(ctx, w, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(b *rbacv1.ClusterRoleBinding) error {
			if !isNew(b) && b.RoleRef != want {
				wrong = b.DeepCopy()
				return errRoleRef
			}
			markSystem(b)
			b.RoleRef = want
			b.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: sa.Namespace, Name: sa.Name}}
			return nil
		})
		if !errors.Is(err, errRoleRef) {
			return err
		}
		// A role reference cannot be changed.
		if err := w.remove(ctx, wrong); err != nil || w.dryRun {
			return err
		}
	}
}

var errRoleRef = errors.New("the binding is for another role")

// tokenOf returns the Secret of that name with the token of a ServiceAccount, once the member has filled it in. One that
// belongs to an earlier ServiceAccount of that name is replaced.
func tokenOf(ctx context.Context, w *Writer, sa *corev1.ServiceAccount, name string, patience time.Duration) (*corev1.Secret, error) {
	var secret *corev1.Secret
	err := poll(ctx, patience, func(ctx context.Context) (bool, error) {
		var err error
		secret, err = ensure(ctx, w, tokenSecret(sa, name), func(s *corev1.Secret) error {
			if s.Type != corev1.SecretTypeServiceAccountToken {
				return fmt.Errorf("secret %s/%s is in the way: it is of type %s and not the token of a ServiceAccount; delete it or choose another namespace with --cluster-namespace", s.Namespace, s.Name, s.Type)
			}
			return nil
		})
		if err != nil || w.dryRun {
			return true, err
		}
		if !isTokenOf(secret, sa) {
			return false, w.remove(ctx, secret)
		}
		return len(secret.Data[corev1.ServiceAccountTokenKey]) > 0, nil
	})
	if errors.Is(err, errPatience) {
		return nil, fmt.Errorf("secret %s/%s has no token after %s: the member's kube-controller-manager, which fills it in, does not run or has its serviceaccount-token controller disabled", sa.Namespace, name, patience)
	}
	return secret, err
}

func tokenSecret(sa *corev1.ServiceAccount, name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   sa.Namespace,
			Name:        name,
			Labels:      map[string]string{names.SystemLabel: names.True},
			Annotations: map[string]string{corev1.ServiceAccountNameKey: sa.Name},
		},
		Type: corev1.SecretTypeServiceAccountToken,
	}
}

// isTokenOf reports whether a Secret is, or is going to be, the token of sa.
func isTokenOf(s *corev1.Secret, sa *corev1.ServiceAccount) bool {
	return s.DeletionTimestamp.IsZero() && s.Type == corev1.SecretTypeServiceAccountToken &&
		s.Annotations[corev1.ServiceAccountNameKey] == sa.Name &&
		sameUID(sa.UID, types.UID(s.Annotations[corev1.ServiceAccountUIDKey]))
}

// trialSecret is where a new token of a ServiceAccount is tried out. No cluster's own Secret is called so: the name of a
// cluster has no dot.
func trialSecret(account string) string { return account + ".trial" }

// newToken has the member make one more token for a ServiceAccount, beside the one that it has, and hands it to try. It is
// taken away again afterwards.
func newToken(ctx context.Context, c client.Client, namespace, account string, patience time.Duration, try func(token []byte) error) (err error) {
	sa := &corev1.ServiceAccount{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: account}, sa); err != nil {
		return fmt.Errorf("read ServiceAccount %s/%s: %w", namespace, account, err)
	}
	if err := forgetToken(ctx, NewWriter(c), namespace, trialSecret(account)); err != nil {
		return err // an interrupted run left it
	}
	w := NewWriter(c)
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout) // also when the user has had enough
		defer cancel()
		err = errors.Join(err, w.Undo(ctx))
	}()
	s, err := tokenOf(ctx, w, sa, trialSecret(account), patience)
	if err != nil {
		return err
	}
	return try(s.Data[corev1.ServiceAccountTokenKey])
}

// forgetToken deletes the Secret with a token, so that a new one can be made.
func forgetToken(ctx context.Context, w *Writer, namespace, name string) error {
	s := &corev1.Secret{}
	err := w.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, s)
	switch {
	case isAbsent(err) || (err == nil && s.Type != corev1.SecretTypeServiceAccountToken):
		return nil
	case err != nil:
		return fmt.Errorf("read Secret %s/%s: %w", namespace, name, err)
	}
	return w.remove(ctx, s)
}

// RemoveMemberAccess takes away what EnsureMemberAccess made for a cluster, whichever form of it. It returns a line for
// everything that it found and left because it is not ours, or is still needed by somebody else. What is gone already is
// no error.
func RemoveMemberAccess(ctx context.Context, w *Writer, contents Contents, cluster, namespace string) (kept []string, err error) {
	r := &remover{Writer: w}
	role, account := names.ClusterRole(cluster), names.ClusterServiceAccount(cluster)
	r.removeSystem(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role}})
	r.removeSystem(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role}})
	r.removeAccount(ctx, namespace, account)

	others, err := otherAccounts(ctx, w.client, namespace, account)
	if err != nil {
		r.errs = append(r.errs, err)
		return r.kept, errors.Join(r.errs...)
	}
	if len(others) > 0 {
		r.keep("namespace %s and ServiceAccount %s stay: they also serve %s", namespace, names.ImpersonatorServiceAccount, strings.Join(others, ", "))
		return r.kept, errors.Join(r.errs...)
	}
	r.removeImpersonation(ctx, namespace)
	r.removeAccount(ctx, namespace, names.ImpersonatorServiceAccount)
	if len(r.errs) == 0 {
		r.removeNamespace(ctx, contents, namespace)
	}
	return r.kept, errors.Join(r.errs...)
}

// otherAccounts returns the ServiceAccounts in a namespace through which others reach this member.
func otherAccounts(ctx context.Context, c client.Reader, namespace, account string) ([]string, error) {
	var list corev1.ServiceAccountList
	if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list ServiceAccounts in namespace %s: %w", namespace, err)
	}
	var others []string
	for _, sa := range list.Items {
		if strings.HasPrefix(sa.Name, names.ClusterServiceAccount("")) && sa.Name != account &&
			sa.Name != names.ImpersonatorServiceAccount && sa.DeletionTimestamp.IsZero() {
			others = append(others, "ServiceAccount "+sa.Name)
		}
	}
	return others, nil
}

// A remover removes one thing after the other; one that fails does not keep the others.
type remover struct {
	*Writer
	kept []string
	errs []error
}

func (r *remover) keep(format string, args ...any) {
	r.kept = append(r.kept, fmt.Sprintf(format, args...))
}

// find reads obj. Gone, or going, is false.
func (r *remover) find(ctx context.Context, obj client.Object) bool {
	err := r.client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	switch {
	case isAbsent(err):
		return false
	case err != nil:
		r.errs = append(r.errs, fmt.Errorf("read %s: %w", r.Describe(obj), err))
		return false
	}
	return obj.GetDeletionTimestamp().IsZero()
}

// removeSystem deletes obj if it has the mark of the system.
func (r *remover) removeSystem(ctx context.Context, obj client.Object) {
	if !r.find(ctx, obj) {
		return
	}
	if !isSystem(obj) {
		r.keep("%s stays: it has no label %s=%s, so it is somebody else's", r.Describe(obj), names.SystemLabel, names.True)
		return
	}
	if err := r.remove(ctx, obj); err != nil {
		r.errs = append(r.errs, err)
	}
}

// removeAccount deletes a ServiceAccount and the Secret with its token.
func (r *remover) removeAccount(ctx context.Context, namespace, name string) {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	secret := &corev1.Secret{ObjectMeta: meta}
	// The contract's secrets have no mark: the type and the account they name tell.
	if r.find(ctx, secret) {
		if secret.Type == corev1.SecretTypeServiceAccountToken && secret.Annotations[corev1.ServiceAccountNameKey] == name {
			if err := r.remove(ctx, secret); err != nil {
				r.errs = append(r.errs, err)
			}
		} else {
			r.keep("%s stays: it is not the token of a ServiceAccount", r.Describe(secret))
		}
	}
	if err := forgetToken(ctx, r.Writer, namespace, trialSecret(name)); err != nil {
		r.errs = append(r.errs, err)
	}
	r.removeSystem(ctx, &corev1.ServiceAccount{ObjectMeta: meta})
}

// removeImpersonation deletes what the control plane let the impersonating ServiceAccount do, in case that it could not
// do so by itself (spec: behaviour/02 2.8).
func (r *remover) removeImpersonation(ctx context.Context, namespace string) {
	meta := metav1.ObjectMeta{Name: names.ImpersonatorServiceAccount}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta}
	if !r.find(ctx, binding) || binding.Labels[names.ManagedLabel] != names.True {
		return
	}
	for _, s := range binding.Subjects {
		if s.Kind != rbacv1.ServiceAccountKind || s.Namespace != namespace || s.Name != names.ImpersonatorServiceAccount {
			return // of another control plane, which has its ServiceAccounts elsewhere
		}
	}
	role := &rbacv1.ClusterRole{ObjectMeta: meta}
	if err := r.remove(ctx, binding); err != nil {
		r.errs = append(r.errs, err)
	}
	if r.find(ctx, role) && role.Labels[names.ManagedLabel] == names.True {
		if err := r.remove(ctx, role); err != nil {
			r.errs = append(r.errs, err)
		}
	}
}

// removeNamespace deletes a namespace that we made and in which nothing is left.
func (r *remover) removeNamespace(ctx context.Context, contents Contents, name string) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if !r.find(ctx, ns) {
		return
	}
	if !isSystem(ns) {
		r.keep("namespace %s stays: it has no label %s=%s, so it was there before", name, names.SystemLabel, names.True)
		return
	}
	left, err := contents(ctx, name)
	left = r.exceptRemoved(left, name)
	switch {
	case err != nil:
		r.keep("namespace %s stays: it cannot be told whether anything else is in it: %v", name, err)
	case len(left) > 0:
		r.keep("namespace %s stays: there is more in it: %s", name, summary(left))
	default:
		if err := r.remove(ctx, ns); err != nil {
			r.errs = append(r.errs, err)
		}
	}
}

// exceptRemoved drops what a dry run would have removed, and what has been and is still listed.
func (r *remover) exceptRemoved(left []string, namespace string) []string {
	gone := map[string]bool{}
	for _, c := range r.changes {
		if c.Action == Delete && c.Object.GetNamespace() == namespace {
			gone[kindOf(r.Writer, c.Object)+"/"+c.Object.GetName()] = true
		}
	}
	var rest []string
	for _, l := range left {
		if !gone[l] {
			rest = append(rest, l)
		}
	}
	return rest
}

// summary lists things on one line, however many there are.
func summary(things []string) string {
	const some = 5
	if len(things) <= some {
		return strings.Join(things, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(things[:some], ", "), len(things)-some)
}
