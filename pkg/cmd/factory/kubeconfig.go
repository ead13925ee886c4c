package factory

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// A source is where the connection's settings come from.
type source struct {
	rules *clientcmd.ClientConfigLoadingRules
	// files are the ones that exist, in the order of their precedence.
	files []string
	// config is what they say, merged; inside a pod, and when there is
	// nothing at all, it is empty.
	config  clientcmdapi.Config
	context string
	// piped is what came through the one pipe, which can be read once; nil if it is a file.
	piped []byte
	end   end
	// none says that nothing was found, inCluster that the pod's own service
	// account is used.
	none      *Error
	inCluster bool
}

// name is what an error calls the source.
func (s *source) name() string {
	return strings.Join(s.files, string(filepath.ListSeparator))
}

// content is what a file says.
func (s *source) content(file string) ([]byte, error) {
	if s.piped != nil {
		return s.piped, nil
	}
	return os.ReadFile(file)
}

// source finds the settings, in the order of spec cli/commands.md 2.1 (A):
// --kubeconfig, KUBECONFIG, ~/.kube/config, then, as our addition, what init
// wrote, then the service account of the pod this runs in.
func (c *connection) source() (*source, error) {
	c.loadOnce.Do(func() { c.loaded, c.loadErr = c.load() })
	return c.loaded, c.loadErr
}

func (c *connection) load() (*source, error) {
	if c.kubeconfig != "" {
		if _, err := os.Stat(c.kubeconfig); err != nil {
			return nil, c.unreadable(c.kubeconfig, err)
		}
		return c.read([]string{c.kubeconfig}, &clientcmd.ClientConfigLoadingRules{ExplicitPath: c.kubeconfig})
	}

	looked := []string{c.end.kubeconfigFlag + " (not given)"}
	named := filepath.SplitList(os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	if named = slices.DeleteFunc(named, isEmpty); len(named) > 0 {
		if files := existing(named); len(files) > 0 {
			return c.read(files, &clientcmd.ClientConfigLoadingRules{Precedence: named})
		}
		looked = append(looked, fmt.Sprintf("KUBECONFIG (%s: no such file)", strings.Join(named, string(filepath.ListSeparator))))
	} else {
		looked = append(looked, "KUBECONFIG (not set)")
		for _, path := range c.wellKnown() {
			if files := existing([]string{path}); len(files) > 0 {
				return c.read(files, &clientcmd.ClientConfigLoadingRules{Precedence: files})
			}
			looked = append(looked, path+" (no such file)")
		}
	}
	if inPod() {
		return &source{rules: &clientcmd.ClientConfigLoadingRules{}, inCluster: true, end: c.end}, nil
	}
	looked = append(looked, "the service account of a pod (this is none)")

	return &source{rules: &clientcmd.ClientConfigLoadingRules{}, end: c.end, none: &Error{
		Reason: NoKubeconfig,
		text:   fmt.Sprintf("no kubeconfig %sfound, looked at %s; pass %s FILE%s", c.end.of(), strings.Join(looked, ", "), c.end.kubeconfigFlag, c.end.orElse),
	}}, nil
}

// wellKnown are the files that are read without being named.
func (c *connection) wellKnown() []string {
	paths := []string{c.home}
	if c.opts.DefaultKubeconfig != nil {
		if path := c.opts.DefaultKubeconfig(); path != "" {
			paths = append(paths, path)
		}
	}
	return paths
}

// read loads what rules name and checks that a context can be chosen.
func (c *connection) read(files []string, rules *clientcmd.ClientConfigLoadingRules) (*source, error) {
	s := &source{rules: rules, files: files, end: c.end}
	if err := c.checkSizes(files); err != nil {
		return nil, err
	}
	piped, err := c.readPipes(files)
	if err != nil {
		return nil, err
	}
	s.piped = piped
	load := rules.Load
	if piped != nil {
		load = func() (*clientcmdapi.Config, error) { return clientcmd.Load(piped) }
	}
	config, err := load()
	if err != nil {
		return nil, c.diagnose(s, err)
	}
	s.config = *config

	known := slices.Sorted(maps.Keys(config.Contexts))
	if len(known) == 0 && len(config.Clusters) == 0 {
		return nil, c.diagnose(s, errors.New("no cluster and no context in it"))
	}
	if len(known) == 0 {
		return nil, c.truncated(s, "it names clusters, but no context")
	}
	s.context = config.CurrentContext
	if _, ok := config.Contexts[c.prefer]; ok && c.prefer != "" {
		s.context = c.prefer
	}
	if c.context != "" {
		s.context = c.context
	}
	if chosen, ok := config.Contexts[s.context]; ok {
		// client-go would go on as nobody.
		if _, ok := config.AuthInfos[chosen.AuthInfo]; !ok && chosen.AuthInfo != "" {
			if len(config.AuthInfos) == 0 { // they come last in what kubectl writes
				return nil, c.truncated(s, fmt.Sprintf("context %q is for user %q, and there are no users at all", s.context, chosen.AuthInfo))
			}
			return nil, s.unusable(fmt.Errorf("it names user %q, which is not there", chosen.AuthInfo))
		}
		return s, nil
	}

	has := "has: " + strings.Join(known, ", ")
	text := fmt.Sprintf("context %q does not exist in kubeconfig %s, which %s; choose one with %s", s.context, s.name(), has, c.end.contextFlag)
	if s.context == "" {
		text = fmt.Sprintf("kubeconfig %s has no current context, it %s; choose one with %s", s.name(), has, c.end.contextFlag)
	}
	return nil, &Error{Reason: ContextMissing, text: text}
}

// diagnose says which file of s is bad and how. The loader's own words, err,
// are kept for what is none of the known ways.
func (c *connection) diagnose(s *source, err error) *Error {
	next := "; restore it, or pass another with " + c.end.kubeconfigFlag
	for _, file := range s.files {
		content, readErr := s.content(file)
		if readErr != nil {
			return c.unreadable(file, readErr)
		}
		if len(strings.TrimSpace(string(content))) == 0 {
			return &Error{Reason: KubeconfigInvalid, cause: err, text: fmt.Sprintf("kubeconfig %s is empty%s", file, next)}
		}
		config, loadErr := clientcmd.Load(content)
		switch {
		case loadErr != nil && isBinary(content):
			return &Error{Reason: KubeconfigInvalid, cause: err, text: fmt.Sprintf("kubeconfig %s is a binary file%s", file, next)}
		case runtime.IsNotRegisteredError(loadErr):
			return &Error{Reason: KubeconfigInvalid, cause: err,
				text: fmt.Sprintf("kubeconfig %s is not a kubeconfig: it holds an object of another kind%s", file, next)}
		case loadErr != nil:
			return &Error{Reason: KubeconfigInvalid, cause: err,
				text: fmt.Sprintf("kubeconfig %s is damaged or not a kubeconfig: %s%s", file, oneLine(loadErr), next)}
		case len(config.Contexts) == 0 && len(config.Clusters) == 0:
			return &Error{Reason: KubeconfigInvalid, cause: err,
				text: fmt.Sprintf("kubeconfig %s is not a kubeconfig: it names no cluster and no context%s", file, next)}
		}
	}
	return &Error{Reason: KubeconfigInvalid, cause: err, text: fmt.Sprintf("kubeconfig %s cannot be used: %s%s", s.name(), oneLine(err), next)}
}

// truncated is about a file that is whole YAML, and half a kubeconfig.
func (c *connection) truncated(s *source, why string) *Error {
	return &Error{Reason: KubeconfigInvalid, text: fmt.Sprintf("kubeconfig %s looks damaged or cut off: %s; restore it, or pass another with %s", s.name(), why, c.end.kubeconfigFlag)}
}

func (c *connection) unreadable(file string, err error) *Error {
	why, next := oneLine(err), "pass a file that you may read with "+c.end.kubeconfigFlag
	switch {
	case errors.Is(err, fs.ErrNotExist):
		why, next = "no such file", "pass one that exists with "+c.end.kubeconfigFlag+c.end.orDefault
	case errors.Is(err, fs.ErrPermission):
		why, next = "permission denied", "run as its owner, or pass another with "+c.end.kubeconfigFlag
	}
	return &Error{Reason: KubeconfigUnreadable, cause: err, text: fmt.Sprintf("kubeconfig %s cannot be read: %s; %s", file, why, next)}
}

// maxSize is more than any kubeconfig needs, and what is read without harm.
const maxSize = 8 << 20

// checkSizes refuses what is no file, or too much of one, before it is read.
func (c *connection) checkSizes(files []string) error {
	for _, file := range files {
		info, err := os.Stat(file)
		switch {
		case err != nil:
			return c.unreadable(file, err)
		case info.IsDir():
			return &Error{Reason: KubeconfigInvalid, text: fmt.Sprintf("kubeconfig %s is a directory; pass a file with %s", file, c.end.kubeconfigFlag)}
		case info.Mode()&fs.ModeDevice != 0:
			return &Error{Reason: KubeconfigInvalid, text: fmt.Sprintf("kubeconfig %s is a device; pass a file with %s", file, c.end.kubeconfigFlag)}
		case info.Size() > maxSize:
			return c.tooBig(file, fmt.Sprintf("%d MiB", info.Size()>>20))
		}
	}
	return nil
}

func (c *connection) tooBig(file, size string) *Error {
	return &Error{Reason: KubeconfigInvalid, text: fmt.Sprintf("kubeconfig %s is not a kubeconfig: it has %s, and none has more than %d; pass another with %s",
		file, size, maxSize>>20, c.end.kubeconfigFlag)}
}

// isBinary reports whether a file holds something else than text.
func isBinary(content []byte) bool {
	return bytes.IndexByte(content, 0) >= 0 || !utf8.Valid(content)
}

func isEmpty(s string) bool { return s == "" }

// existing drops what is not there. What is there but may not be looked at
// stays: it must be complained about, not passed over.
func existing(paths []string) []string {
	var found []string
	for _, p := range paths {
		if _, err := os.Stat(p); !errors.Is(err, fs.ErrNotExist) {
			found = append(found, p)
		}
	}
	return found
}

// inPod tells whether client-go would find a service account.
func inPod() bool {
	if os.Getenv("KUBERNETES_SERVICE_HOST") == "" || os.Getenv("KUBERNETES_SERVICE_PORT") == "" {
		return false
	}
	_, err := os.Stat("/var/run/secrets/kubernetes.io/serviceaccount/token")
	return err == nil
}

func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}

// loader is the clientcmd.ClientConfig of a connection.
type loader struct{ conn *connection }

var _ clientcmd.ClientConfig = (*loader)(nil)

func (l *loader) RawConfig() (clientcmdapi.Config, error) {
	s, err := l.conn.source()
	if err != nil {
		return clientcmdapi.Config{}, err
	}
	return s.config, nil
}

func (l *loader) ConfigAccess() clientcmd.ConfigAccess {
	s, err := l.conn.source()
	if err != nil {
		return clientcmd.NewDefaultPathOptions()
	}
	return s.rules
}

// Namespace returns -n, or the context's namespace, or "default", and whether
// the user asked for it.
func (l *loader) Namespace() (string, bool, error) {
	s, err := l.conn.source()
	if err != nil {
		return "", false, err
	}
	if s.none != nil {
		if l.conn.namespace != "" {
			return l.conn.namespace, true, nil
		}
		return metav1.NamespaceDefault, false, nil
	}
	namespace, given, err := l.of(s).Namespace()
	return namespace, given, s.unusable(err)
}

// ClientConfig returns the way to the server. When there is no kubeconfig at
// all it returns one that fails on its first request, so that what needs no
// server (--dry-run=client, --local) works without.
func (l *loader) ClientConfig() (*rest.Config, error) {
	s, err := l.conn.source()
	if err != nil {
		return nil, err
	}
	if s.none != nil {
		return &rest.Config{
			Host:      "https://no-kubeconfig.invalid",
			Transport: roundTripper(func(*http.Request) (*http.Response, error) { return nil, s.none }),
		}, nil
	}
	cfg, err := l.of(s).ClientConfig()
	if err == nil {
		err = l.conn.checkFiles(s, cfg)
	}
	if err != nil {
		return nil, s.unusable(err)
	}
	return cfg, nil
}

// unusable says of which context client-go complains.
func (s *source) unusable(err error) error {
	if err == nil {
		return nil
	}
	if s.inCluster {
		return fmt.Errorf("use the service account of this pod: %w", err)
	}
	return &Error{Reason: KubeconfigInvalid, cause: err, text: fmt.Sprintf(
		"context %q of kubeconfig %s cannot be used: %s; correct it, or choose another with %s", s.context, s.name(), oneLine(err), s.end.contextFlag)}
}

// of is client-go's own view of s, with the flags laid over it.
func (l *loader) of(s *source) clientcmd.ClientConfig {
	overrides := &clientcmd.ConfigOverrides{}
	overrides.Context.Namespace = l.conn.namespace
	if s.inCluster {
		return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(s.rules, overrides)
	}
	return clientcmd.NewNonInteractiveClientConfig(s.config, s.context, overrides, s.rules)
}

// checkFiles finds certificates and keys that the kubeconfig names but that
// cannot be read, which would surface as a failed connection otherwise.
func (c *connection) checkFiles(s *source, cfg *rest.Config) error {
	for what, file := range map[string]string{
		"certificate-authority": cfg.CAFile,
		"client-certificate":    cfg.CertFile,
		"client-key":            cfg.KeyFile,
		"tokenFile":             cfg.BearerTokenFile,
	} {
		if file == "" {
			continue
		}
		f, err := os.Open(file)
		if err != nil {
			return fmt.Errorf("read %s: %w", what, err)
		}
		if err := f.Close(); err != nil {
			return fmt.Errorf("close %s of context %q: %w", what, s.context, err)
		}
	}
	return nil
}
