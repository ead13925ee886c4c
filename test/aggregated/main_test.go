package aggregated

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karmadactl/karmadactl/pkg/apis"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/plane"
	"github.com/karmadactl/karmadactl/pkg/server/aggregatedapiserver"
)

// env is what the tests share: one control plane and one server.
type env struct {
	bin, dir   string
	kubeconfig string
	config     *rest.Config // of the administrator
	client     client.WithWatch
	port       int
	etcdPort   int
	certFile   string
	keyFile    string
	caBundle   []byte
}

// shared is set once by TestMain, before any test runs.
var shared *env

func TestMain(m *testing.M) {
	log.SetLogger(klog.Background())
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	e := &env{bin: os.Getenv("KARMADA_BIN")}
	if e.bin == "" {
		e.bin = filepath.Join("..", "..", "_output", "bin")
	}
	if e.bin, err = filepath.Abs(e.bin); err != nil {
		return 1, err
	}
	for _, name := range []string{"karmadactl", "karmada"} {
		if _, err := os.Stat(filepath.Join(e.bin, name)); err != nil {
			return 1, fmt.Errorf("%w: run `make build` first", err)
		}
	}
	if e.dir, err = os.MkdirTemp("", "karmada-aggregated-"); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(e.dir)) }()

	data := filepath.Join(e.dir, "plane")
	defer func() {
		_, problem := e.karmadactl("deinit", "--purge", "--yes", "--data-dir", data)
		err = errors.Join(err, problem)
	}()
	if _, err := e.karmadactl("init", "--data-dir", data, "--bind-address=127.0.0.1", "--port", strconv.Itoa(freeRange())); err != nil {
		return 1, err
	}
	if err := e.connect(data); err != nil {
		return 1, err
	}

	ctx, stop := context.WithCancel(context.Background())
	if err := e.holdControllers(ctx); err != nil {
		stop()
		return 1, err
	}
	done := make(chan error, 1)
	go func() {
		defer close(done)
		done <- aggregatedapiserver.Run(ctx, e.flags(e.port))
	}()
	defer func() {
		stop()
		err = errors.Join(err, <-done)
	}()
	if err := e.register(ctx, done); err != nil {
		return 1, err
	}
	shared = e
	return m.Run(), nil
}

// connect makes clients and a serving certificate.
func (e *env) connect(data string) (err error) {
	e.kubeconfig = filepath.Join(data, "karmada-apiserver.config")
	if e.config, err = clientcmd.BuildConfigFromFlags("", e.kubeconfig); err != nil {
		return err
	}
	e.config.QPS = -1
	scheme, err := apis.NewScheme()
	if err != nil {
		return err
	}
	if e.client, err = client.NewWithWatch(e.config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	installed, err := plane.Load(data)
	if err != nil {
		return err
	}
	e.etcdPort = installed.Ports[plane.PortEtcdClient]
	e.port = freePort()
	service := names.AggregatedAPIServer + "." + names.SystemNamespace + ".svc"
	cert, key, err := certutil.GenerateSelfSignedCertKey(service, []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost"})
	if err != nil {
		return err
	}
	e.caBundle = cert
	e.certFile, e.keyFile = filepath.Join(e.dir, "serving.crt"), filepath.Join(e.dir, "serving.key")
	return errors.Join(os.WriteFile(e.certFile, cert, 0o600), os.WriteFile(e.keyFile, key, 0o600))
}

// flags are those that a control plane on this host gives the server.
func (e *env) flags(port int, more ...string) []string {
	data := filepath.Dir(e.kubeconfig)
	pki := func(name string) string { return filepath.Join(data, "pki", name) }
	return append([]string{
		"--kubeconfig=" + e.kubeconfig,
		"--authentication-kubeconfig=" + e.kubeconfig,
		"--authorization-kubeconfig=" + e.kubeconfig,
		"--authentication-skip-lookup",
		"--client-ca-file=" + pki("ca.crt"),
		"--requestheader-client-ca-file=" + pki("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + e.certFile,
		"--tls-private-key-file=" + e.keyFile,
		"--etcd-servers=" + e.etcd(),
		"--etcd-cafile=" + pki("etcd-ca.crt"),
		"--etcd-certfile=" + pki("etcd-client.crt"),
		"--etcd-keyfile=" + pki("etcd-client.key"),
		"--enable-priority-and-fairness=false",
	}, more...)
}

// etcd returns the URL of the control plane's etcd.
func (e *env) etcd() string { return fmt.Sprintf("https://127.0.0.1:%d", e.etcdPort) }

// holdControllers lets the controllers of the control plane look on and keep
// their lease, but change nothing: these tests are about what the server makes of
// Clusters, and their Clusters are nowhere.
func (e *env) holdControllers(ctx context.Context) error {
	const name = "cluster-admin:karmada"
	group := rbacv1.Subject{Kind: "Group", APIGroup: rbacv1.GroupName, Name: "system:karmada"}
	everything := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := e.client.Delete(ctx, everything); err != nil {
		return fmt.Errorf("take the rights of controllers: %w", err)
	}
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"*"}},
		{APIGroups: []string{"authentication.k8s.io", "authorization.k8s.io"}, Resources: []string{"*"}, Verbs: []string{"create"}},
		{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}},
	}
	for _, o := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "look-on"}, Rules: rules},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "look-on"}, Subjects: []rbacv1.Subject{group},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "look-on"},
		},
	} {
		if err := e.client.Create(ctx, o); err != nil {
			return fmt.Errorf("let controllers look on: %w", err)
		}
	}
	return nil
}

// register makes the control plane's API server send requests to this process
// instead of the server that the control plane runs itself. Both serve the same,
// so it does not matter from when on they come.
func (e *env) register(ctx context.Context, done <-chan error) error {
	admin := rest.CopyConfig(e.config)
	admin.CAData, admin.CAFile = e.caBundle, ""
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		select {
		case err := <-done:
			return false, fmt.Errorf("the server has ended: %w", err)
		default:
		}
		_, last = do(ctx, admin, fmt.Sprintf("https://localhost:%d/readyz", e.port), "*/*")
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait until the server is ready, at last %w: %w", last, err)
	}
	registration := &unstructured.Unstructured{}
	registration.SetAPIVersion("apiregistration.k8s.io/v1")
	registration.SetKind("APIService")
	registration.SetName("v1alpha1.cluster.karmada.io")
	change := fmt.Sprintf(`{"spec":{"caBundle":%q,"service":{"port":%d}}}`, base64.StdEncoding.EncodeToString(e.caBundle), e.port)
	if err := e.client.Patch(ctx, registration, client.RawPatch(types.MergePatchType, []byte(change))); err != nil {
		return fmt.Errorf("send requests to the server of the tests: %w", err)
	}
	return nil
}

// karmadactl runs a command with a clean environment.
func (e *env) karmadactl(args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(e.bin, "karmadactl"), args...)
	cmd.Env = []string{"HOME=" + e.dir, "PATH=" + os.Getenv("PATH"), "KUBECONFIG=" + e.kubeconfig}
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("karmadactl %v: %w\n%s", args, err, exit.Stderr)
	}
	return string(out), err
}

func freePort() int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// freeRange returns the first of ports that nothing listens on. A control plane
// takes several in a row, which other processes do not get by chance below the
// range that systems hand out.
func freeRange() int {
	const span = 8
	for first := 12000 + os.Getpid()%1000*span; ; first += span {
		if allFree(first, span) {
			return first
		}
	}
}

func allFree(first, span int) bool {
	for port := first; port < first+span; port++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return false
		}
		_ = l.Close()
	}
	return true
}

// eventually waits until check has nothing to complain about.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waited for: %s; at last: %v", what, last)
	}
}
