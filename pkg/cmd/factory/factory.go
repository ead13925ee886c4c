// Package factory makes the clients that karmadactl's commands work with. It
// knows where a kubeconfig may come from, and it tells apart the ways in which
// reaching a control plane fails, so that no command has to.
package factory

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/homedir"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/karmadactl/karmadactl/pkg/util/version"
)

// Client-side limits. The API server defends itself with priority and
// fairness; these only keep a broken loop from flooding it. The discovery
// values are contract (spec: cli/commands.md 2.1).
const (
	qps   = 50
	burst = 300
)

// discoveryTTL is how long the discovery cache on disk is believed; a resource
// that is not in it is looked up again anyway.
const discoveryTTL = 6 * time.Hour

// Options are what a Factory needs to know about the process it works in.
type Options struct {
	// Program is what users type: "karmadactl" or "kubectl karmada".
	Program string
	// ErrOut gets the warnings that API servers send.
	ErrOut io.Writer
	// DefaultKubeconfig names the kubeconfig that init writes in its default
	// data directory. It is read when nothing else says where the control
	// plane is; nil means that there is none.
	DefaultKubeconfig func() string
}

// A Factory makes clients for the control plane that the command line, the
// environment and the user's files point to. It is a
// genericclioptions.RESTClientGetter, and kubectl's own factory.
type Factory struct {
	cmdutil.Factory
	conn *connection
	// members are the other ends that the command has asked for.
	members []*Member
}

var _ genericclioptions.RESTClientGetter = (*Factory)(nil)

// New returns a Factory. It reads nothing until it is asked for a client.
func New(o Options) *Factory {
	c := &connection{
		opts: o,
		end:  controlPlane(o.Program),
		home: clientcmd.RecommendedHomeFile,
		warnings: rest.NewWarningWriter(o.ErrOut, rest.WarningWriterOptions{
			Deduplicate: true,
			Color:       printers.AllowsColorOutput(o.ErrOut),
		}),
	}
	return &Factory{Factory: cmdutil.NewFactory(cmdutil.NewMatchVersionFlags(c)), conn: c}
}

// AddConnectionFlags adds --kubeconfig and --karmada-context to a command that
// talks to the control plane. All commands share the values: one runs.
func (f *Factory) AddConnectionFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.conn.kubeconfig, "kubeconfig", f.conn.kubeconfig, "Path to the kubeconfig file to use for CLI requests.")
	fs.StringVar(&f.conn.context, "karmada-context", f.conn.context, "The name of the kubeconfig context to use")
}

// AddNamespaceFlag adds -n, --namespace.
func (f *Factory) AddNamespaceFlag(fs *pflag.FlagSet) {
	fs.StringVarP(&f.conn.namespace, "namespace", "n", f.conn.namespace, "If present, the namespace scope for this CLI request.")
}

// AddKubeconfigFlag adds --kubeconfig alone, for the root command, whose
// commands accept it even where they have no use for it.
func (f *Factory) AddKubeconfigFlag(fs *pflag.FlagSet) {
	fs.StringVar(&f.conn.kubeconfig, "kubeconfig", f.conn.kubeconfig, "Path to the kubeconfig file to use for CLI requests.")
}

// Warn tells the user of something that is no error, once, as API servers do.
func (f *Factory) Warn(text string) { f.conn.warnings.HandleWarningHeader(299, "-", text) }

// connection is the RESTClientGetter below a Factory: one kubeconfig, one
// context, one server.
type connection struct {
	opts     Options
	end      end
	warnings rest.WarningHandler
	home     string // the user's own kubeconfig

	kubeconfig string
	context    string
	prefer     string // the context to take before the current one
	namespace  string
	timeout    time.Duration
	until      time.Time       // when a prompt stops waiting
	within     <-chan struct{} // ends waits for files
	reads      context.Context // ends all requests; nil if nothing does
	// pipePatience is another than the usual one, for tests.
	pipePatience time.Duration

	loadOnce sync.Once
	loaded   *source
	loadErr  error

	discoveryOnce sync.Once
	discovery     discovery.CachedDiscoveryInterface
	discoveryErr  error
	mapperOnce    sync.Once
	mapper        meta.RESTMapper
	mapperErr     error

	mu      sync.Mutex
	server  string // whose address is in the config
	last    failure
	earlier []failure
}

func (c *connection) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	return &loader{conn: c}
}

func (c *connection) ToRESTConfig() (*rest.Config, error) {
	return c.restConfig((*connection).watchFailures)
}

// restConfig returns the way to the server, on which watch sees what fails.
func (c *connection) restConfig(watch func(*connection, server) func(http.RoundTripper) http.RoundTripper) (*rest.Config, error) {
	cfg, err := c.ToRawKubeConfigLoader().ClientConfig()
	if err != nil {
		return nil, err
	}
	cfg.QPS, cfg.Burst = qps, burst
	cfg.UserAgent = fmt.Sprintf("karmadactl/%s (%s/%s)", version.Get().GitVersion, runtime.GOOS, runtime.GOARCH)
	cfg.WarningHandler = c.warnings
	server := describe(cfg)
	if c.timeout > 0 {
		cfg.Wrap(within(c.timeout))
	}
	if c.reads != nil {
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return wrapped{next: next, roundTripper: (&patience{ctx: c.reads, next: next}).RoundTrip}
		})
	}
	cfg.Wrap(watch(c, server))
	c.mu.Lock()
	c.server = server.url
	c.mu.Unlock()
	return cfg, nil
}

// ToDiscoveryClient returns the one discovery client of this process: what is
// learnt, also that nobody answers, is learnt once.
func (c *connection) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	c.discoveryOnce.Do(func() {
		c.discovery, c.discoveryErr = c.newDiscoveryClient()
	})
	return c.discovery, c.discoveryErr
}

func (c *connection) newDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	cfg, err := c.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return newDiscoveryClient(cfg)
}

// cacheDir is kubectl's, so that the two share what they learn. Empty means
// that there is no place for one.
func cacheDir() string {
	if dir := os.Getenv("KUBECACHEDIR"); dir != "" {
		return dir
	}
	if home := homedir.HomeDir(); home != "" {
		return filepath.Join(home, ".kube", "cache")
	}
	return ""
}

// cacheName turns a server's address into a file name, as kubectl does.
func cacheName(host string) string {
	host = regexp.MustCompile(`^https?://`).ReplaceAllString(host, "")
	return regexp.MustCompile(`[^(\w/.)]`).ReplaceAllString(host, "_")
}

// ToRESTMapper returns the one mapper of this process, which many may ask at once.
func (c *connection) ToRESTMapper() (meta.RESTMapper, error) {
	c.mapperOnce.Do(func() {
		client, err := c.ToDiscoveryClient()
		if err != nil {
			c.mapperErr = err
			return
		}
		c.mapper = newMapper(client, c.warnings)
	})
	return c.mapper, c.mapperErr
}
