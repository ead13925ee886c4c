package registration

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"k8s.io/cluster-bootstrap/token/jws"
)

const (
	// maxClusterInfo is how much of an answer is read: cluster-info has a few kilobytes.
	maxClusterInfo = 1 << 20
	// discoveryRequestTimeout bounds one request of discovery.
	discoveryRequestTimeout = 10 * time.Second
	// settleTime is how long discovery believes that the control plane is still coming up, or that the token is so new that
	// nobody has signed for it yet. The signer takes less than a second.
	settleTime = 10 * time.Second
)

// A Bootstrap is what somebody who knows nothing yet about a control plane is given to find and recognise it.
type Bootstrap struct {
	// Endpoint is where the control plane is: host:port, without a scheme, and a path below which the server is, if there
	// is one.
	Endpoint string
	// Token is the whole bootstrap token.
	Token string
	// CAHashes are pins of the CA, one of which has to be right. None are needed with SkipCAVerification.
	CAHashes []string
	// SkipCAVerification trusts whoever can sign with the token, which everybody can who has seen it.
	SkipCAVerification bool
	// Program is what users type, for what an error says to do next.
	Program string
}

var pin = regexp.MustCompile(`^sha256:[0-9a-fA-F]{64}$`)

// Validate reports everything that is wrong with what was given, in the words of the contract where it has any (spec:
// cli/commands.md 3.4).
func (b Bootstrap) Validate() error {
	var errs []error
	if _, err := b.server(); err != nil {
		errs = append(errs, err)
	}
	if b.Token == "" {
		errs = append(errs, &PullError{Reason: TokenMalformed, text: fmt.Sprintf("token is required: %s", b.newToken(""))})
	} else if _, _, err := ParseToken(b.Token); err != nil {
		errs = append(errs, &PullError{Reason: TokenMalformed, text: fmt.Sprintf("%v; %s", err, b.newToken("")), cause: err})
	}
	if len(b.CAHashes) == 0 && !b.SkipCAVerification {
		errs = append(errs, errors.New("need to verify CACertHashes, or set --discovery-token-unsafe-skip-ca-verification=true: give --discovery-token-ca-cert-hash, which the printed register command has"))
	}
	for _, hash := range b.CAHashes {
		if !pin.MatchString(hash) {
			errs = append(errs, fmt.Errorf("--discovery-token-ca-cert-hash %q: want sha256: and 64 hexadecimal digits", shorten(hash)))
		}
	}
	return JoinOnLine(errs...)
}

// JoinOnLine is errors.Join on one line.
func JoinOnLine(errs ...error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	var text []string
	for _, err := range errs {
		text = append(text, err.Error())
	}
	return &oneLine{text: strings.Join(text, "; "), errs: errs}
}

// oneLine is several errors on one line.
type oneLine struct {
	text string
	errs []error
}

func (e *oneLine) Error() string { return e.text }

func (e *oneLine) Unwrap() []error { return e.errs }

// newToken says how to get a token.
func (b Bootstrap) newToken(cluster string) string {
	command := b.Program + " token create"
	if cluster != "" {
		command += " --cluster=" + cluster
	}
	return fmt.Sprintf("make a new one where the control plane is: %s --print-register-command", command)
}

// server returns the URL of the endpoint.
func (b Bootstrap) server() (string, error) {
	bad := func(why string) (string, error) {
		return "", fmt.Errorf("%s: give the control plane as host:port, such as 10.0.0.1:5443", why)
	}
	switch {
	case b.Endpoint == "":
		return bad("the address of the control plane is missing")
	case strings.Contains(b.Endpoint, "://"):
		return bad(fmt.Sprintf("the address of the control plane, %q, has a scheme", shorten(withoutUser(b.Endpoint))))
	case strings.Contains(b.Endpoint, "@"):
		return bad("the address of the control plane has credentials in it, which are not used")
	}
	u, err := url.Parse("https://" + b.Endpoint)
	if err != nil || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" {
		return bad(fmt.Sprintf("%q is not an address", shorten(b.Endpoint)))
	}
	if u.Port() == "" {
		return bad(fmt.Sprintf("the address of the control plane, %q, has no port", shorten(b.Endpoint)))
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}

func withoutUser(text string) string {
	scheme, rest, _ := strings.Cut(text, "://")
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		rest = rest[at+1:]
	}
	return scheme + "://" + rest
}

// shorten keeps a message one line, whatever was typed.
func shorten(text string) string {
	const most = 100
	if len(text) > most {
		text = text[:most] + "…"
	}
	return text
}

// A FoundControlPlane is where a control plane is and how to recognise it.
type FoundControlPlane struct {
	// Server is the URL of the endpoint that was given, which wins over the one that cluster-info has (spec:
	// cli/commands.md 3.4).
	Server string
	// CA are the certificates, in PEM form, that its own is signed with.
	CA []byte
}

// Discover finds the control plane by the protocol of kubeadm (spec: cli/commands.md 3.4, step 2): cluster-info is read
// from whoever answers, believed if it is signed with the token and its CA has a pin that was given, and read again from a
// server that this CA vouches for. The token itself is not sent. What may pass, such as a control plane that is starting, is
// tried again until ctx is done, and told to notice, which may be nil. Any other error is a *PullError at once.
func (b Bootstrap) Discover(ctx context.Context, notice func(error)) (FoundControlPlane, error) {
	server, err := b.server()
	if err != nil {
		return FoundControlPlane{}, err
	}
	id, secret, err := ParseToken(b.Token)
	if err != nil {
		return FoundControlPlane{}, err
	}
	d := &discoverer{Bootstrap: b, server: server, id: id, secret: secret, settled: time.Now().Add(settleTime)}
	var found FoundControlPlane
	err = retry(ctx, notice, func(ctx context.Context) (again bool, err error) {
		found, again, err = d.once(ctx)
		return again, err
	})
	return found, err
}

// retry does something until it works, fails in a way that trying again does not mend, or ctx is done. The error is then
// that of the last try.
func retry(ctx context.Context, notice func(error), do func(context.Context) (again bool, err error)) error {
	pause := wait.Backoff{Duration: 250 * time.Millisecond, Factor: 1.7, Jitter: 0.3, Steps: 20, Cap: 5 * time.Second}
	told := ""
	for {
		again, err := do(ctx)
		if err == nil || !again {
			return err
		}
		if notice != nil && ctx.Err() == nil && err.Error() != told {
			told = err.Error()
			notice(err)
		}
		timer := time.NewTimer(pause.Step())
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w (given up: %w)", err, context.Cause(ctx))
		case <-timer.C:
		}
	}
}

type discoverer struct {
	Bootstrap
	server, id, secret string
	// settled is when what is missing will not come any more.
	settled time.Time
}

func (d *discoverer) once(ctx context.Context) (found FoundControlPlane, again bool, err error) {
	// Whatever this answers is believed only after it was found to be signed.
	first, again, err := d.get(ctx, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		return FoundControlPlane{}, again, err
	}
	text, again, err := d.signed(first)
	if err != nil {
		return FoundControlPlane{}, again, err
	}
	ca, pool, err := d.authority(text)
	if err != nil {
		return FoundControlPlane{}, false, err
	}
	if d.SkipCAVerification && len(d.CAHashes) == 0 {
		return FoundControlPlane{Server: d.server, CA: ca}, false, nil
	}
	second, again, err := d.get(ctx, &tls.Config{RootCAs: pool})
	if err != nil {
		return FoundControlPlane{}, again, err
	}
	if second.Data[bootstrapapi.KubeConfigKey] != text {
		// It was changed between the two, or two servers answer.
		return FoundControlPlane{}, true, d.problem(CAMismatch, nil, "%s says one thing to whoever does not check its certificate and another to whoever does; check what is between this host and the control plane", d.server)
	}
	return FoundControlPlane{Server: d.server, CA: ca}, false, nil
}

func (d *discoverer) problem(r PullReason, cause error, format string, args ...any) *PullError {
	return &PullError{Reason: r, text: fmt.Sprintf(format, args...), cause: cause}
}

// get reads cluster-info.
func (d *discoverer) get(ctx context.Context, trust *tls.Config) (info *corev1.ConfigMap, again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, discoveryRequestTimeout)
	defer cancel()
	address := d.server + "/api/v1/namespaces/" + metav1.NamespacePublic + "/configmaps/" + bootstrapapi.ConfigMapClusterInfo
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, false, fmt.Errorf("ask %s for cluster-info: %w", d.server, err)
	}
	req.Header.Set("Accept", "application/json")
	trust.MinVersion = tls.VersionTLS12
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: trust, DisableKeepAlives: true, TLSHandshakeTimeout: discoveryRequestTimeout}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return nil, mayAnswerLater(err), d.explain(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxClusterInfo+1))
	switch {
	case err != nil:
		return nil, true, d.explain(err)
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode >= 500:
		return nil, true, d.problem(Unreachable, nil, "%s is not ready: it answers %s; check that the control plane runs", d.server, resp.Status)
	case resp.StatusCode == http.StatusNotFound:
		return nil, time.Now().Before(d.settled), d.problem(NotControlPlane, nil, "%s has no cluster-info: it is not a Karmada control plane, or not completely installed; check the address", d.server)
	case resp.StatusCode != http.StatusOK:
		return nil, false, d.problem(NotControlPlane, nil, "%s does not let cluster-info be read (%s): it is not a Karmada control plane, or was set up otherwise; check the address", d.server, resp.Status)
	}
	info = &corev1.ConfigMap{}
	if len(body) > maxClusterInfo || json.Unmarshal(body, info) != nil || info.Kind != "ConfigMap" || info.Name != bootstrapapi.ConfigMapClusterInfo {
		return nil, false, d.problem(NotControlPlane, nil, "what answers at %s is not a Kubernetes API server; check the address", d.server)
	}
	return info, false, nil
}

// signed returns the kubeconfig of cluster-info if the holder of the token signed it.
func (d *discoverer) signed(info *corev1.ConfigMap) (text string, again bool, err error) {
	text = info.Data[bootstrapapi.KubeConfigKey]
	if text == "" {
		return "", false, d.problem(NotControlPlane, nil, "the cluster-info of %s has no kubeconfig in it: it is not a Karmada control plane; check the address", d.server)
	}
	signature := info.Data[bootstrapapi.JWSSignatureKeyPrefix+d.id]
	if signature == "" {
		return "", time.Now().Before(d.settled), d.problem(TokenUnknown, nil,
			"the control plane at %s does not know token %s: it has expired, was used up or was deleted, is not for signing, or is another control plane's; %s", d.server, d.id, d.newToken(""))
	}
	if !jws.DetachedTokenIsValid(signature, text, d.id, d.secret) {
		return "", false, d.problem(TokenMismatch, nil,
			"the control plane at %s has another secret for token %s, or somebody in between has changed what it says: check that the token was copied whole, or %s", d.server, d.id, d.newToken(""))
	}
	return text, false, nil
}

// authority returns the CA of a kubeconfig whose author is known to have the token, once a pin is found to be right.
func (d *discoverer) authority(text string) ([]byte, *x509.CertPool, error) {
	bad := func(err error) ([]byte, *x509.CertPool, error) {
		return nil, nil, d.problem(NotControlPlane, err, "the cluster-info of %s cannot be used: %v; its administrator has to mend it", d.server, err)
	}
	config, err := clientcmd.Load([]byte(text))
	if err != nil {
		return bad(err)
	}
	if len(config.Clusters) != 1 {
		return bad(fmt.Errorf("it names %d clusters, not one", len(config.Clusters)))
	}
	var data []byte
	for _, c := range config.Clusters {
		data = c.CertificateAuthorityData
	}
	authorities, err := cert.ParseCertsPEM(data)
	if err != nil {
		return bad(fmt.Errorf("read its certificate authority: %w", err))
	}
	pool := x509.NewCertPool()
	var has []string
	known := false
	for _, a := range authorities {
		pool.AddCert(a)
		hash := CAHash(a)
		has = append(has, hash)
		known = known || slices.ContainsFunc(d.CAHashes, func(p string) bool { return strings.EqualFold(p, hash) })
	}
	if len(d.CAHashes) > 0 && !known {
		return nil, nil, d.problem(CAHashMismatch, nil,
			"the CA of %s has hash %s, which is none of those that --discovery-token-ca-cert-hash allows: it is another control plane, or somebody in between; %s", d.server, strings.Join(has, ", "), d.newToken(""))
	}
	return bytes.TrimSpace(append([]byte(nil), data...)), pool, nil
}

// explain turns what the transport said into what the user can act on.
func (b Bootstrap) explain(server string, err error) *PullError {
	as := func(r PullReason, format string, args ...any) *PullError {
		return &PullError{Reason: r, text: fmt.Sprintf(format, args...), cause: err}
	}
	var (
		unknownCA x509.UnknownAuthorityError
		invalid   x509.CertificateInvalidError
		host      x509.HostnameError
		dns       *net.DNSError
		netErr    net.Error
		record    tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &unknownCA):
		next := "check the address"
		if b.Token != "" {
			next = b.newToken("")
		}
		return as(CAMismatch, "the certificate of %s is not signed by the CA of the control plane: somebody is in between, or it was installed anew; %s", server, next)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return as(ServerExpired, "the certificate of %s is not valid now; check the clock of this host, or renew the control plane's certificates", server)
	case errors.As(err, &invalid):
		return as(CAMismatch, "the certificate of %s cannot be used: %s; check the address", server, oneLineOf(invalid))
	case errors.As(err, &host):
		return as(HostMismatch, "the certificate of %s is not for that address (%s); use an address that it names, or add this one with init's --cert-external-ip or --cert-external-dns", server, oneLineOf(host))
	}
	why := oneLineOf(err)
	var inner *url.Error
	if errors.As(err, &inner) {
		why = oneLineOf(inner.Err)
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		why = "connection refused"
	case errors.As(err, &dns):
		why = fmt.Sprintf("its name %q cannot be resolved (%s)", dns.Name, dns.Err)
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return as(NotControlPlane, "what answers at %s does not speak TLS: it is not a control plane; check the address", server)
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF):
		why = "it closed the connection"
	case errors.As(err, &netErr) && netErr.Timeout(), errors.Is(err, context.DeadlineExceeded):
		why = "no answer in time"
	}
	return as(Unreachable, "cannot reach the control plane at %s: %s; check that it runs and that the address is right", server, why)
}

// ExplainControlPlane turns an error of a request to a control plane at that URL into a *PullError, which a user can act on,
// if no control plane answered; any other is returned as it is.
func ExplainControlPlane(server, program string, err error) error {
	var status apierrors.APIStatus
	var transport *url.Error
	if errors.As(err, &status) || !errors.As(err, &transport) {
		return err
	}
	return Bootstrap{Program: program}.explain(server, err)
}

func (d *discoverer) explain(err error) *PullError { return d.Bootstrap.explain(d.server, err) }

// mayAnswerLater reports whether the way to a server may be there a little later. What its certificate or its protocol is
// does not change by waiting.
func mayAnswerLater(err error) bool {
	var (
		unknownCA x509.UnknownAuthorityError
		invalid   x509.CertificateInvalidError
		host      x509.HostnameError
		record    tls.RecordHeaderError
	)
	for _, target := range []any{&unknownCA, &invalid, &host, &record} {
		if errors.As(err, target) {
			return false
		}
	}
	return !errors.Is(err, http.ErrSchemeMismatch)
}

func oneLineOf(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
