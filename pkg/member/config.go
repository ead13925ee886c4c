package member

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

const (
	// requestTimeout bounds every request but watches and upgrades
	// (spec: behaviour/01 1.7).
	requestTimeout = 32 * time.Second
	// tokenLifetime is how long a token is used before its Secret is read again.
	tokenLifetime = 5 * time.Minute
)

// Limits bound the requests to one member. A QPS of zero or less is no limit.
type Limits struct {
	QPS   float32
	Burst int
}

// limit makes config's clients share one rate limit.
func (l Limits) limit(config *rest.Config) {
	config.QPS, config.Burst = -1, 0
	if l.QPS > 0 {
		config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(l.QPS, max(l.Burst, 1))
	}
}

// Config returns how the control plane reaches a push member
// (spec: behaviour/01 1.7). The token is read from the Secret: it is used for
// at most 5 minutes, and read again when the member refuses it, in which case
// the request is tried once more. Requests get an answer within 32 s or fail;
// watches and upgrades, once they have begun, last.
//
// Each client made of the result has connections of its own; a Pool shares them.
func Config(ctx context.Context, c *clusterv1alpha1.Cluster, secrets Secrets, limits Limits) (*rest.Config, error) {
	if c.Spec.SecretRef == nil {
		return nil, fmt.Errorf("cluster %s does not have a secret", c.Name)
	}
	ref, cluster := *c.Spec.SecretRef, c.Name
	secret, err := secrets(ctx, ref.Namespace, ref.Name)
	if err != nil {
		return nil, fmt.Errorf("read the credentials of cluster %s: %w", cluster, err)
	}
	e, err := NewEndpoint(ctx, c, func(context.Context, string, string) (*corev1.Secret, error) { return secret, nil })
	if err != nil {
		return nil, err
	}
	first, err := tokenOf(cluster, secret)
	if err != nil {
		return nil, err
	}
	token := newTokenSource(first, func(ctx context.Context) (string, error) {
		secret, err := secrets(ctx, ref.Namespace, ref.Name)
		if err != nil {
			return "", fmt.Errorf("read the credentials of cluster %s: %w", cluster, err)
		}
		return tokenOf(cluster, secret)
	})
	config := &rest.Config{
		Host:            e.URL.String(),
		TLSClientConfig: rest.TLSClientConfig{CAData: e.CA, Insecure: e.Insecure},
		Proxy:           e.proxy,
	}
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		if t, ok := rt.(*http.Transport); ok && e.Proxy != nil {
			t.ProxyConnectHeader = e.ProxyHeader
		}
		return &bearer{next: rt, token: token}
	})
	limits.limit(config)
	return config, nil
}

func tokenOf(cluster string, secret *corev1.Secret) (string, error) {
	token := strings.TrimSpace(string(secret.Data[tokenKey]))
	if token == "" {
		return "", fmt.Errorf("secret %s/%s of cluster %s has no key %s: join the cluster again",
			secret.Namespace, secret.Name, cluster, tokenKey)
	}
	return token, nil
}

// A tokenSource keeps a token for as long as it may be used.
type tokenSource struct {
	read func(context.Context) (string, error)
	now  func() time.Time

	mu    sync.Mutex
	token string
	until time.Time
}

func newTokenSource(first string, read func(context.Context) (string, error)) *tokenSource {
	s := &tokenSource{read: read, now: time.Now, token: first}
	s.until = s.now().Add(tokenLifetime)
	return s
}

// get returns a token other than refused, unless there is none.
func (s *tokenSource) get(ctx context.Context, refused string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token != "" && s.token != refused && s.now().Before(s.until) {
		return s.token, nil
	}
	token, err := s.read(ctx)
	if err != nil {
		return "", err
	}
	s.token, s.until = token, s.now().Add(tokenLifetime)
	return token, nil
}

// bearer authenticates requests by a token.
type bearer struct {
	next  http.RoundTripper
	token *tokenSource
}

func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Authorization") != "" {
		return b.next.RoundTrip(r)
	}
	token, err := b.token.get(r.Context(), "")
	if err != nil {
		return nil, errors.Join(err, closeBody(r))
	}
	response, err := b.next.RoundTrip(withToken(r, token))
	if err != nil || response.StatusCode != http.StatusUnauthorized {
		return response, err
	}
	another, err := b.token.get(r.Context(), token)
	if err != nil || another == token {
		return response, nil // the member's refusal says more than what we failed to do about it
	}
	again, err := repeated(r)
	if err != nil {
		return response, nil
	}
	_ = response.Body.Close()
	return b.next.RoundTrip(withToken(again, another))
}

// WrappedRoundTripper lets others see the transport below.
func (b *bearer) WrappedRoundTripper() http.RoundTripper { return b.next }

func withToken(r *http.Request, token string) *http.Request {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

// repeated returns a request to be sent a second time; an error when its body
// is gone.
func repeated(r *http.Request) (*http.Request, error) {
	again := r.Clone(r.Context())
	if r.Body == nil || r.Body == http.NoBody {
		return again, nil
	}
	if r.GetBody == nil {
		return nil, errors.New("the body can be read only once")
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	again.Body = body
	return again, nil
}

func closeBody(r *http.Request) error {
	if r.Body == nil {
		return nil
	}
	return r.Body.Close()
}
