package registration

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
)

// maxIDs is how many ids are tried until one is free. There are two thousand million.
const maxIDs = 5

// Tokens are the bootstrap tokens of one control plane.
type Tokens struct {
	secrets corev1client.SecretInterface
	backoff wait.Backoff
	retried func(err error, in time.Duration)
}

// A TokensOption changes how Tokens work.
type TokensOption func(*Tokens)

// WithRetryNotice sets what is called before each pause after which Create tries again.
func WithRetryNotice(notice func(err error, in time.Duration)) TokensOption {
	return func(t *Tokens) { t.retried = notice }
}

// WithBackoff sets the pauses between the tries of Create.
func WithBackoff(b wait.Backoff) TokensOption {
	return func(t *Tokens) { t.backoff = b }
}

// NewTokens returns the tokens of the control plane that c is a client of.
func NewTokens(c corev1client.SecretsGetter, opts ...TokensOption) *Tokens {
	t := &Tokens{
		secrets: c.Secrets(metav1.NamespaceSystem),
		backoff: wait.Backoff{Duration: 5 * time.Second, Factor: 2, Steps: 5}, // spec: cli/commands.md 3.3
		retried: func(error, time.Duration) {},
	}
	for _, o := range opts {
		o(t)
	}
	return t
}

// Create makes the token that is requested. While the control plane cannot be reached, is busy or is starting, it tries
// again, five times in all; any other error ends it at once. The error is that of the last try. It never changes a
// token that somebody else made, and a try whose answer was lost is not made twice.
func (t *Tokens) Create(ctx context.Context, r TokenRequest) (Token, error) {
	if err := r.Validate(); err != nil {
		return Token{}, err
	}
	for range maxIDs {
		token, err := NewToken(r, time.Now())
		if err != nil {
			return Token{}, err
		}
		switch err := t.create(ctx, token); {
		case err == nil:
			return token, nil
		case !errors.Is(err, errTaken):
			return Token{}, err
		}
	}
	return Token{}, fmt.Errorf("create a bootstrap token: %d ids at random were all taken", maxIDs)
}

// errTaken says that another token has the id.
var errTaken = errors.New("the id is taken")

// create tries one token until it is there, or until that is hopeless.
func (t *Tokens) create(ctx context.Context, token Token) error {
	for b, tries := t.backoff, 1; ; tries++ {
		err := t.ensure(ctx, token)
		switch {
		case err == nil, errors.Is(err, errTaken):
			return err
		case !mayPass(err):
			return fmt.Errorf("create %s: %w", token, err)
		case b.Steps <= 1:
			return fmt.Errorf("create %s: given up after %d tries: %w", token, tries, err)
		}
		in := b.Step()
		t.retried(err, in)
		pause := time.NewTimer(in)
		select {
		case <-ctx.Done():
			pause.Stop()
			return fmt.Errorf("create %s: %w: the last try failed: %w", token, context.Cause(ctx), err)
		case <-pause.C:
		}
	}
}

// ensure makes the token's Secret, or finds that an earlier try did.
func (t *Tokens) ensure(ctx context.Context, token Token) error {
	_, err := t.secrets.Create(ctx, token.ToSecret(), metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	found, err := t.secrets.Get(ctx, bootstraputil.BootstrapTokenSecretName(token.ID), metav1.GetOptions{})
	if err != nil {
		return err
	}
	if string(found.Data[bootstrapapi.BootstrapTokenSecretKey]) == token.Secret {
		return nil
	}
	return errTaken
}

// mayPass reports whether the same request may succeed a little later.
func mayPass(err error) bool {
	return noNamespaceYet(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) ||
		utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err)
}

// noNamespaceYet reports that kube-system is missing: a control plane makes it in its first moments. Anything else that
// is not found will not be found later either.
func noNamespaceYet(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Kind == "namespaces"
}

// List returns the tokens of the control plane, by id. broken has an error for each Secret that is of the type of a
// token and is none.
func (t *Tokens) List(ctx context.Context) (tokens []Token, broken []error, err error) {
	list, err := t.secrets.List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("type", string(bootstrapapi.SecretTypeBootstrapToken)).String(),
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list bootstrap tokens: %w", err)
	}
	for i := range list.Items {
		token, err := TokenFromSecret(&list.Items[i])
		if err != nil {
			broken = append(broken, err)
			continue
		}
		tokens = append(tokens, token)
	}
	return tokens, broken, nil
}

// Delete removes the token with that id. That there is none is an error, in the words of the contract (spec:
// cli/commands.md 3.3).
func (t *Tokens) Delete(ctx context.Context, id string) error {
	name := bootstraputil.BootstrapTokenSecretName(id)
	if err := t.secrets.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("failed to delete secret %q, err: %w", name, err)
	}
	return nil
}
