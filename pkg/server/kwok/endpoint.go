package kwok

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

const (
	// streamIdleTimeout ends exec, attach and port-forward streams that nothing
	// has passed through, as a kubelet's does.
	streamIdleTimeout = 4 * time.Hour
	// attachLimit ends an attach without input, whose client may be long gone
	// without anybody telling.
	attachLimit = time.Hour
	// readHeaderTimeout bounds what an idle connection can hold on to.
	readHeaderTimeout = 10 * time.Second
)

// An endpoint answers as the kubelet of every simulated node.
type endpoint struct {
	options Options
	pod     podGetter
	metrics *metricsServer
}

// handler routes requests, each behind the client certificate it needs.
func (e *endpoint) handler() http.Handler {
	o := e.options
	kubelet := func(h http.HandlerFunc) http.Handler { return requireClient(o.ClientCAFile, o.ClientNames, h) }

	mux := http.NewServeMux()
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	}
	mux.Handle("GET /containerLogs/{namespace}/{pod}/{container}", kubelet(e.logs))
	for _, path := range []string{"/{namespace}/{pod}/{container}", "/{namespace}/{pod}/{uid}/{container}"} {
		mux.Handle("/exec"+path, kubelet(e.exec))
		mux.Handle("/attach"+path, kubelet(e.attach))
	}
	for _, path := range []string{"/{namespace}/{pod}", "/{namespace}/{pod}/{uid}"} {
		mux.Handle("/portForward"+path, kubelet(e.portForward))
	}
	mux.Handle("GET "+resourceMetricsPath("{node}"), kubelet(e.metrics.scrape))
	if o.RequestHeaderCAFile != "" {
		usage := requireClient(o.RequestHeaderCAFile, o.RequestHeaderNames, e.metrics.handler())
		for _, path := range []string{metricsGroupPath, metricsGroupPath + "/", openAPIPath} {
			mux.Handle("GET "+path, usage)
		}
	}
	return mux
}

// serverTLS reads the serving certificate for each connection anew. Client
// certificates are asked for and their possession is proven; whose they are is
// checked by requireClient, because authorities differ by path.
func serverTLS(certFile, keyFile string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		ClientAuth: tls.RequestClientCert,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			c, err := tls.LoadX509KeyPair(certFile, keyFile)
			if err != nil {
				return nil, fmt.Errorf("load serving certificate: %w", err)
			}
			return &c, nil
		},
	}
}

// requireClient lets requests through that come with a client certificate of
// the authority in caFile and, if names are given, with one of these names.
func requireClient(caFile string, names []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := verifyClient(r.TLS, caFile, names); err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func verifyClient(state *tls.ConnectionState, caFile string, names []string) error {
	if state == nil || len(state.PeerCertificates) == 0 {
		return errors.New("a client certificate is required")
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return fmt.Errorf("read client certificate authority: %w", err)
	}
	roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return fmt.Errorf("no certificate in %s", caFile)
	}
	for _, c := range state.PeerCertificates[1:] {
		intermediates.AddCert(c)
	}
	leaf := state.PeerCertificates[0]
	if _, err := leaf.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: intermediates, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil {
		return fmt.Errorf("client certificate: %w", err)
	}
	if len(names) > 0 && !slices.Contains(names, leaf.Subject.CommonName) {
		return fmt.Errorf("client certificate: name %q is not accepted here", leaf.Subject.CommonName)
	}
	return nil
}

// requestPod reads the pod a request is about, or answers that it cannot.
func (e *endpoint) requestPod(w http.ResponseWriter, r *http.Request) (*corev1.Pod, bool) {
	pod, err := e.pod(r.Context(), r.PathValue("namespace"), r.PathValue("pod"))
	switch uid := r.PathValue("uid"); {
	case apierrors.IsNotFound(err):
		http.Error(w, err.Error(), http.StatusNotFound)
	case err != nil:
		http.Error(w, fmt.Sprintf("read pod: %v", err), http.StatusInternalServerError)
	case uid != "" && uid != string(pod.UID):
		http.Error(w, fmt.Sprintf("pod %s has another UID than %s", pod.Name, uid), http.StatusNotFound)
	default:
		return pod, true
	}
	return nil, false
}

func (e *endpoint) source() logSource { return logSource{get: e.pod, interval: followInterval} }

func (e *endpoint) logs(w http.ResponseWriter, r *http.Request) {
	pod, ok := e.requestPod(w, r)
	if !ok {
		return
	}
	o, err := logOptions(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := e.source().write(r.Context(), pod, r.PathValue("container"), o, flushWriter{w}); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// A flushWriter sends each piece at once, for those who follow.
type flushWriter struct{ http.ResponseWriter }

func (f flushWriter) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	if err == nil {
		err = http.NewResponseController(f.ResponseWriter).Flush()
	}
	return n, err
}

func (e *endpoint) exec(w http.ResponseWriter, r *http.Request) {
	pod, ok := e.requestPod(w, r)
	if !ok {
		return
	}
	streams, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeExec(w, r, streamer{pod: pod, source: e.source()}, pod.Name, string(pod.UID), r.PathValue("container"), r.URL.Query()["command"],
		streams, streamIdleTimeout, remotecommand.DefaultStreamCreationTimeout, remotecommand.SupportedStreamingProtocols)
}

func (e *endpoint) attach(w http.ResponseWriter, r *http.Request) {
	pod, ok := e.requestPod(w, r)
	if !ok {
		return
	}
	streams, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeAttach(w, r, streamer{pod: pod, source: e.source()}, pod.Name, string(pod.UID), r.PathValue("container"),
		streams, streamIdleTimeout, remotecommand.DefaultStreamCreationTimeout, remotecommand.SupportedStreamingProtocols)
}

func (e *endpoint) portForward(w http.ResponseWriter, r *http.Request) {
	pod, ok := e.requestPod(w, r)
	if !ok {
		return
	}
	o, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, streamer{pod: pod, source: e.source()}, pod.Name, string(pod.UID),
		o, streamIdleTimeout, remotecommand.DefaultStreamCreationTimeout, portforward.SupportedProtocols)
}

// A streamer serves the streams of one request about one pod.
type streamer struct {
	pod    *corev1.Pod
	source logSource
}

var (
	_ remotecommand.Executor    = streamer{}
	_ remotecommand.Attacher    = streamer{}
	_ portforward.PortForwarder = streamer{}
)

// ExecInContainer runs a simulated command.
func (s streamer) ExecInContainer(ctx context.Context, _, _, container string, argv []string, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	c, err := running(s.pod, container)
	if err != nil {
		return err
	}
	go drain(resize)
	return newShell(s.pod, c, in, out, errOut, tty).exec(ctx, argv)
}

// AttachContainer shows the container's log and then what it says until it
// ends. A container that reads its input has a simulated shell reading it.
func (s streamer) AttachContainer(ctx context.Context, _, _, container string, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	c, err := running(s.pod, container)
	if err != nil {
		return err
	}
	go drain(resize)
	if c.Stdin && in != nil {
		return newShell(s.pod, c, in, out, errOut, tty).exec(ctx, []string{"sh"})
	}
	ctx, cancel := context.WithTimeout(ctx, attachLimit)
	defer cancel()
	return s.source.write(ctx, s.pod, container, &corev1.PodLogOptions{Follow: true}, out)
}

// drain takes the window sizes that nothing here depends on.
func drain(resize <-chan remotecommand.TerminalSize) {
	for range resize {
	}
}

// newShell is here, not in shell.go, to turn streams that were not asked for,
// nil pointers in interfaces included, into none.
func newShell(pod *corev1.Pod, c *corev1.Container, in io.Reader, out, errOut io.WriteCloser, tty bool) *shell {
	s := &shell{pod: pod, container: c, in: in, out: io.Discard, tty: tty}
	if out != nil {
		s.out = out
	}
	if errOut != nil {
		s.err = errOut
	}
	return s
}

// PortForward answers HTTP requests in the name of the pod's port.
func (s streamer) PortForward(_ context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	requests := bufio.NewReader(stream)
	for {
		r, err := http.ReadRequest(requests)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("port %d of a simulated pod speaks HTTP only: %w", port, err)
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return err
		}
		body := fmt.Sprintf("simulated pod %s/%s on node %s, port %d: %s %s\n", s.pod.Namespace, s.pod.Name, s.pod.Spec.NodeName, port, r.Method, r.URL.Path)
		response := http.Response{
			StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Request: r, Close: r.Close,
			Header:        http.Header{"Content-Type": {"text/plain; charset=utf-8"}},
			ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body)),
		}
		if err := response.Write(stream); err != nil || r.Close {
			return err
		}
	}
}

// newPodGetter reads pods with the client, always the newest state.
func newPodGetter(c corev1client.PodsGetter) podGetter {
	return func(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
		return c.Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	}
}
