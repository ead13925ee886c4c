package clusterstatus

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// most bounds what is read of an answer: a member may send anything.
const most = 64 << 20

// A remote asks one member over HTTP.
type remote struct {
	client *http.Client
	base   *url.URL
}

func newRemote(config *rest.Config, client *http.Client) (remote, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return remote{}, fmt.Errorf("address of the cluster: %w", err)
	}
	// Who is sent elsewhere has not been answered.
	plain := *client
	plain.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return remote{client: &plain, base: base}, nil
}

// An answer is what a member said, whatever it was.
type answer struct {
	code   int
	header http.Header
	body   []byte
}

// get asks for a path below the member's address. An answer with an error status
// is an answer, not an error.
func (r remote) get(ctx context.Context, path string, header http.Header) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.base.JoinPath(path).String(), nil)
	if err != nil {
		return answer{}, fmt.Errorf("ask for %s: %w", path, err)
	}
	for name, values := range header {
		request.Header[name] = values
	}
	response, err := r.client.Do(request)
	if err != nil {
		return answer{}, err // says method and address
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	if err != nil {
		return answer{}, fmt.Errorf("read the answer to %s: %w", path, err)
	}
	if len(body) > most {
		return answer{}, fmt.Errorf("read the answer to %s: it is longer than %d bytes", path, most)
	}
	return answer{code: response.StatusCode, header: response.Header, body: body}, nil
}

// probe sees whether a member is ready. The error says why it is not, for those
// who look for the reason: the condition has one of three fixed messages
// (spec: behaviour/02 2.2, steps 2 and 3).
func (r remote) probe(ctx context.Context) (metav1.Condition, error) {
	var last error
	for _, path := range []string{"readyz", "healthz"} {
		a, err := r.get(ctx, path, nil)
		switch {
		case err != nil:
			return clusterNotReachable(), err
		case a.code == http.StatusOK:
			return clusterReady(), nil
		}
		last = fmt.Errorf("/%s answers %d: %s", path, a.code, excerpt(a.body))
		if a.code != http.StatusNotFound {
			break // only a server that does not know the path is asked for the other
		}
	}
	return clusterNotReady(), last
}

// excerpt keeps the beginning of an answer for a log line.
func excerpt(body []byte) string {
	const enough = 200
	if len(body) > enough {
		return fmt.Sprintf("%.*q…", enough, body)
	}
	return fmt.Sprintf("%q", body)
}

// version asks a member for its version.
func (r remote) version(ctx context.Context) (string, error) {
	a, err := r.get(ctx, "version", nil)
	if err != nil {
		return "", err
	}
	if a.code != http.StatusOK {
		return "", fmt.Errorf("/version answers %d: %s", a.code, excerpt(a.body))
	}
	var info version.Info
	if err := json.Unmarshal(a.body, &info); err != nil {
		return "", fmt.Errorf("read the answer to /version: %w", err)
	}
	return info.GitVersion, nil
}
