package proxy

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karmadactl/karmadactl/pkg/member"
)

const (
	// secretLifetime is how long a Secret is used before it is read again. One that
	// is refused is read again at once.
	secretLifetime = time.Minute
	// secretTimeout bounds one reading.
	secretTimeout = 10 * time.Second
)

// secrets keeps the Secrets of the members that are in use. They are read one by
// one when they are needed: a watch for each would cost two per cluster, and a
// watch for all would keep everybody's Secrets in memory and need the right to
// list them.
type secrets struct {
	read member.Secrets
	now  func() time.Time

	mu   sync.Mutex
	kept map[types.NamespacedName]*keptSecret
}

type keptSecret struct {
	turn   chan struct{} // held by whoever reads; others wait, but never for another Secret
	secret *corev1.Secret
	until  time.Time // of the secret; guarded by secrets.mu, as the secret is
}

func newSecrets(read member.Secrets, now func() time.Time) *secrets {
	return &secrets{read: read, now: now, kept: map[types.NamespacedName]*keptSecret{}}
}

// get returns a Secret that must not be changed. refused is one that did not
// work: it is only returned again when it is still what the control plane has.
func (s *secrets) get(ctx context.Context, key types.NamespacedName, refused *corev1.Secret) (*corev1.Secret, error) {
	k := s.entry(key)
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("read secret %s: %w", key, context.Cause(ctx))
	}
	if secret := s.fresh(k); secret != nil && secret != refused {
		return secret, nil
	}
	ctx, cancel := context.WithTimeout(ctx, secretTimeout)
	defer cancel()
	secret, err := s.read(ctx, key.Namespace, key.Name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		delete(s.kept, key)
		return nil, err
	}
	k.secret, k.until = secret, s.now().Add(secretLifetime)
	return secret, nil
}

func (s *secrets) fresh(k *keptSecret) *corev1.Secret {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now().Before(k.until) {
		return k.secret
	}
	return nil
}

// entry returns the place of a Secret, and makes room of those that nobody has
// asked for in a while.
func (s *secrets) entry(key types.NamespacedName) *keptSecret {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k, ok := s.kept[key]; ok {
		return k
	}
	for other, k := range s.kept {
		if !k.until.IsZero() && !s.now().Before(k.until) {
			delete(s.kept, other)
		}
	}
	k := &keptSecret{turn: make(chan struct{}, 1)}
	s.kept[key] = k
	return k
}
