package flags

import (
	"errors"
	"fmt"
	"math"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Kubeconfig says how to reach the control plane.
type Kubeconfig struct {
	// File to read; the process's own service account when it is empty.
	File string
}

// AddFlags registers --kubeconfig.
func (k *Kubeconfig) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&k.File, "kubeconfig", k.File, "Path to a kubeconfig file for the control plane. When it is not given, the service account of the pod is used. Files that the kubeconfig names are read again when they change; data embedded in it is not.")
}

// RESTConfig reads the file. Unlike kubectl it never falls back to the file in
// the user's home: that may be another control plane's.
func (k *Kubeconfig) RESTConfig() (*rest.Config, error) {
	if k.File == "" {
		config, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, errors.New("must be given, because this process does not run in a pod")
		}
		if err != nil {
			return nil, fmt.Errorf("use the service account of the pod: %w", err)
		}
		return config, nil
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: k.File}, &clientcmd.ConfigOverrides{},
	).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	return config, nil
}

// NoLimit, as queries per second, means that the client does not hold requests
// back.
const NoLimit = -1

// Limits hold back the requests of a client.
type Limits struct {
	// QPS is how many queries a second are allowed on average; 0 or less is no
	// limit.
	QPS float32
	// Burst is how many may be made at once. 0 is half as many again as QPS.
	Burst int

	prefix string // of the flags
	whose  string // in their usage
}

// KubeAPILimits returns the limits of requests to the control plane,
// --kube-api-qps and --kube-api-burst. By default there are none: the API
// server's priority and fairness knows better who has to wait.
func KubeAPILimits() Limits {
	return Limits{QPS: NoLimit, prefix: "kube-api", whose: "the control plane's API server"}
}

// ClusterAPILimits returns the limits of requests to each member cluster,
// --cluster-api-qps and --cluster-api-burst. They protect members.
func ClusterAPILimits() Limits {
	return Limits{QPS: 40, Burst: 60, prefix: "cluster-api", whose: "the API server of each member cluster"}
}

// AddFlags registers the two flags.
func (l *Limits) AddFlags(fs *pflag.FlagSet) {
	fs.Float32Var(&l.QPS, l.prefix+"-qps", l.QPS, "Queries per second, on average, to "+l.whose+". 0 or less means no limit on this side, so that the server's priority and fairness alone decides.")
	fs.IntVar(&l.Burst, l.prefix+"-burst", l.Burst, "Queries that may be made to "+l.whose+" at once when --"+l.prefix+"-qps limits them. 0 means one and a half times that.")
}

// Validate reports a limit that makes no sense.
func (l *Limits) Validate() field.ErrorList {
	var errs field.ErrorList
	if l.Burst < 0 {
		errs = append(errs, field.Invalid(Path(l.prefix+"-burst"), l.Burst, "must not be negative"))
	}
	if math.IsNaN(float64(l.QPS)) || math.IsInf(float64(l.QPS), 0) {
		errs = append(errs, field.Invalid(Path(l.prefix+"-qps"), fmt.Sprint(l.QPS), "must be a finite number"))
	}
	return errs
}

// Apply sets the limits of the clients that are made from a config.
func (l *Limits) Apply(config *rest.Config) {
	if l.QPS <= 0 {
		config.QPS, config.Burst = NoLimit, 0
		return
	}
	config.QPS, config.Burst = l.QPS, l.Burst
	if l.Burst == 0 {
		config.Burst = int(math.Ceil(float64(l.QPS) * 1.5))
	}
}
