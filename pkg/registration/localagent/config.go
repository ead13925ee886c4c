package localagent

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/util/atomicfile"
)

// kind is that of a Config, as its file says it.
const kind = "KarmadaAgent"

const (
	fileMode fs.FileMode = 0o600
	dirMode  fs.FileMode = 0o700
)

// ErrNoAgent says that there is no agent in a directory.
var ErrNoAgent = errors.New("no agent is registered in that directory")

// A Config is what cannot be derived about an agent.
type Config struct {
	Kind string `json:"kind"`
	// Cluster is the name that the member is registered under, ClusterID what tells it from all others.
	Cluster   string `json:"cluster"`
	ClusterID string `json:"clusterID"`
	// Server is the URL of the control plane.
	Server string `json:"server"`
	// Namespace is where, on both sides, the credentials of the member are.
	Namespace string `json:"namespace"`
	// APIEndpoint is the URL of the member's API server, as the control plane is told it.
	APIEndpoint string `json:"apiEndpoint"`
	// ProxyURL is a proxy by which the control plane reaches the member.
	ProxyURL string            `json:"proxyURL,omitempty"`
	Provider string            `json:"provider,omitempty"`
	Region   string            `json:"region,omitempty"`
	Zones    []string          `json:"zones,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	// CertRotation renews the certificate in time.
	CertRotation bool `json:"certRotation"`
	// HealthPort and MetricsPort are on loopback: several agents can be on one host.
	HealthPort  int `json:"healthPort"`
	MetricsPort int `json:"metricsPort"`
	// External says that somebody else starts the agent, such as the host's service manager.
	External bool `json:"external,omitempty"`
}

// Args are the arguments of the karmada binary that make it this agent.
func (c Config) Args(l Layout) []string {
	controllers := "*"
	if c.CertRotation {
		controllers = "*,certRotation"
	}
	args := []string{
		names.Agent,
		"--karmada-kubeconfig=" + l.Kubeconfig(),
		"--kubeconfig=" + l.MemberKubeconfig(),
		"--cluster-name=" + c.Cluster,
		"--cluster-namespace=" + c.Namespace,
		"--cluster-api-endpoint=" + c.APIEndpoint,
		"--controllers=" + controllers,
		fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", c.HealthPort),
		fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", c.MetricsPort),
		// The supervisor's lock makes it the only one. Without a lease it need not end when the control plane is away for
		// a while, nor wait for its own when it was killed.
		"--leader-elect=false",
	}
	for _, optional := range []struct{ flag, value string }{
		{"proxy-server-address", c.ProxyURL},
		{"cluster-provider", c.Provider},
		{"cluster-region", c.Region},
		{"cluster-zones", strings.Join(c.Zones, ",")},
		{"cluster-labels", joinLabels(c.Labels)},
	} {
		if optional.value != "" {
			args = append(args, "--"+optional.flag+"="+optional.value)
		}
	}
	return args
}

func joinLabels(labels map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key+"="+labels[key])
	}
	return strings.Join(pairs, ",")
}

// Load reads the Config of a directory. That there is none is ErrNoAgent.
func Load(l Layout) (Config, error) {
	data, err := os.ReadFile(l.ConfigFile())
	if errors.Is(err, fs.ErrNotExist) {
		return Config{}, fmt.Errorf("%s: %w", l.Dir, ErrNoAgent)
	}
	if err != nil {
		return Config{}, fmt.Errorf("read the agent's settings: %w", err)
	}
	var c Config
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		return Config{}, fmt.Errorf("read the agent's settings in %s: %w", l.ConfigFile(), err)
	}
	if c.Kind != kind || c.Cluster == "" {
		return Config{}, fmt.Errorf("%s does not hold an agent's settings: it is no %s", l.ConfigFile(), kind)
	}
	return c, nil
}

func (c Config) write(l Layout) (bool, error) {
	c.Kind = kind
	data, err := yaml.Marshal(c)
	if err != nil {
		return false, fmt.Errorf("encode the agent's settings: %w", err)
	}
	return atomicfile.WriteIfChanged(l.ConfigFile(), data, fileMode)
}
