package registration

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

var (
	classicRequest = TokenRequest{TTL: time.Hour, Usages: TokenUsages(), Groups: []string{DefaultTokenGroup}}
	atOnce         = WithBackoff(wait.Backoff{Duration: time.Nanosecond, Factor: 2, Steps: 5})
	secretsGR      = schema.GroupResource{Resource: "secrets"}
)

func secretsOf(t *testing.T, c *fake.Clientset) []corev1.Secret {
	t.Helper()
	list, err := c.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func TestCreate(t *testing.T) {
	busy := apierrors.NewTooManyRequests("busy", 1)
	cases := map[string]struct {
		reason string
		fails  []error // of the tries, one after the other
		tries  int
		err    error
		text   string
	}{
		"AtOnce":      {reason: "The usual case.", tries: 1},
		"Starting":    {reason: "Right after init the API may not be there yet.", fails: []error{syscall.ECONNREFUSED, syscall.ECONNRESET, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "kube-system")}, tries: 4},
		"Busy":        {reason: "It passes.", fails: []error{busy, apierrors.NewInternalError(errors.New("etcd")), apierrors.NewServerTimeout(secretsGR, "create", 1)}, tries: 4},
		"Forbidden":   {reason: "It will be forbidden in a minute, too.", fails: []error{apierrors.NewForbidden(secretsGR, "x", errors.New("no"))}, tries: 1, text: "forbidden"},
		"NoSuchAPI":   {reason: "A server that knows no secrets learns of none.", fails: []error{apierrors.NewNotFound(secretsGR, "")}, tries: 1, text: "not found"},
		"Certificate": {reason: "A foreign CA stays foreign.", fails: []error{errors.New("x509: unknown authority")}, tries: 1, text: "x509"},
		"ForEver":     {reason: "After five tries the reason is told, not that time ran out.", fails: []error{busy, busy, busy, busy, busy}, tries: 5, err: busy, text: "given up after 5 tries: busy"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			tries, notices := 0, 0
			client.PrependReactor("create", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
				tries++
				if tries <= len(c.fails) {
					return true, nil, c.fails[tries-1]
				}
				return false, nil, nil
			})
			token, err := NewTokens(client.CoreV1(), atOnce, WithRetryNotice(func(error, time.Duration) { notices++ })).Create(t.Context(), classicRequest)
			if c.text == "" && err != nil || c.text != "" && (err == nil || !strings.Contains(err.Error(), c.text)) {
				t.Errorf("got error %v, want %q: %s", err, c.text, c.reason)
			}
			if c.err != nil && !errors.Is(err, c.err) {
				t.Errorf("the error hides its cause: %v", err)
			}
			if tries != c.tries || notices != c.tries-1 {
				t.Errorf("%d tries and %d notices, want %d tries: %s", tries, notices, c.tries, c.reason)
			}
			if err != nil {
				return
			}
			left := secretsOf(t, client)
			if len(left) != 1 {
				t.Fatalf("there are %d secrets, want one", len(left))
			}
			if got, err := TokenFromSecret(&left[0]); err != nil || cmp.Diff(token, got) != "" {
				t.Errorf("the secret is not the token: %v\n%s", err, cmp.Diff(token, got))
			}
		})
	}
}

func TestCreateOfALostAnswer(t *testing.T) {
	client := fake.NewClientset()
	tries := 0
	client.PrependReactor("create", "secrets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if tries++; tries > 1 {
			return false, nil, nil
		}
		// The server did it, but the connection went before it could say so.
		if err := client.Tracker().Create(a.GetResource(), a.(clienttesting.CreateAction).GetObject(), a.GetNamespace()); err != nil {
			t.Error(err)
		}
		return true, nil, syscall.ECONNRESET
	})
	token, err := NewTokens(client.CoreV1(), atOnce).Create(t.Context(), classicRequest)
	if err != nil {
		t.Fatal(err)
	}
	if left := secretsOf(t, client); len(left) != 1 || left[0].Name != "bootstrap-token-"+token.ID {
		t.Errorf("got %d secrets, want the one of %s: a second try must not make a second token", len(left), token)
	}
}

func TestCreateLeavesOthersAlone(t *testing.T) {
	client := fake.NewClientset()
	taken := 2
	client.PrependReactor("create", "secrets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if taken == 0 {
			return false, nil, nil
		}
		taken--
		// Somebody has just made a token with that id.
		theirs := a.(clienttesting.CreateAction).GetObject().DeepCopyObject().(*corev1.Secret)
		theirs.Data["token-secret"] = []byte(someSecret)
		if err := client.Tracker().Create(a.GetResource(), theirs, a.GetNamespace()); err != nil {
			t.Error(err)
		}
		return false, nil, nil
	})
	token, err := NewTokens(client.CoreV1(), atOnce).Create(t.Context(), classicRequest)
	if err != nil {
		t.Fatal(err)
	}
	theirs := 0
	for _, s := range secretsOf(t, client) {
		if string(s.Data["token-secret"]) == someSecret {
			theirs++
		} else if s.Name != "bootstrap-token-"+token.ID {
			t.Errorf("secret %s is nobody's", s.Name)
		}
	}
	if theirs != 2 {
		t.Errorf("%d of two tokens of others are as they were", theirs)
	}
}

func TestCreateEndsWithItsContext(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("create", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, syscall.ECONNREFUSED
	})
	ctx, cancel := context.WithCancel(t.Context())
	pauses := NewTokens(client.CoreV1(), WithRetryNotice(func(_ error, in time.Duration) {
		if in != 5*time.Second {
			t.Errorf("the first pause is %s, want 5s", in)
		}
		cancel()
	}))
	_, err := pauses.Create(ctx, classicRequest)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v, want that it was interrupted, and why it was not done yet", err)
	}
}

func TestCreateRefusesBeforeItAsks(t *testing.T) {
	client := fake.NewClientset()
	if _, err := NewTokens(client.CoreV1()).Create(t.Context(), TokenRequest{TTL: -1, Usages: TokenUsages()}); err == nil {
		t.Error("an expired token was made")
	}
	if asked := client.Actions(); len(asked) > 0 {
		t.Errorf("the server was asked: %v", asked)
	}
}

func TestListAndDelete(t *testing.T) {
	client := fake.NewClientset(
		Token{ID: "aaaaaa", Secret: someSecret, Usages: []string{"signing"}}.ToSecret(),
		Token{ID: "bbbbbb", Secret: "tooshort"}.ToSecret(),
		Token{ID: "cccccc", Secret: someSecret, Expires: noon}.ToSecret(),
	)
	var selector string
	client.PrependReactor("list", "secrets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		selector = a.(clienttesting.ListAction).GetListRestrictions().Fields.String()
		return false, nil, nil
	})
	tokens := NewTokens(client.CoreV1())
	list, broken, err := tokens.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []Token{{ID: "aaaaaa", Secret: someSecret, Usages: []string{"signing"}}, {ID: "cccccc", Secret: someSecret, Expires: noon}}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}
	if len(broken) != 1 || !strings.Contains(broken[0].Error(), "bootstrap-token-bbbbbb") {
		t.Errorf("got %v, want that bbbbbb is broken", broken)
	}
	if selector != "type=bootstrap.kubernetes.io/token" {
		t.Errorf("secrets that are no tokens were asked for: %q", selector)
	}

	if err := tokens.Delete(t.Context(), "aaaaaa"); err != nil {
		t.Error(err)
	}
	const gone = `failed to delete secret "bootstrap-token-aaaaaa", err: secrets "bootstrap-token-aaaaaa" not found`
	if err := tokens.Delete(t.Context(), "aaaaaa"); err == nil || err.Error() != gone || !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want %q", err, gone)
	}
	if left := secretsOf(t, client); len(left) != 2 {
		t.Errorf("%d secrets are left, want two", len(left))
	}
}
