package plane

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"

	"github.com/karmadactl/karmadactl/pkg/server/kwok"
)

// RunNodes runs the simulated nodes of a member with flags until ctx is done.
func RunNodes(ctx context.Context, args []string) error {
	var kubeconfig string
	o := kwok.Options{KubeletVersion: version.Get().GitVersion, Logger: klog.FromContext(ctx)}
	fs := pflag.NewFlagSet("nodes", pflag.ContinueOnError)
	fs.StringVar(&kubeconfig, "kubeconfig", "", "Kubeconfig of the member.")
	fs.IntVar(&o.Nodes, "nodes", 0, "How many nodes there shall be.")
	fs.StringVar(&o.NodeNamePrefix, "name-prefix", "", "What their names begin with.")
	fs.StringVar(&o.PodCIDR, "pod-cidr", "", "Where pods get addresses from.")
	fs.StringVar(&o.ListenAddress, "listen-address", "", "Address of the kubelet endpoint.")
	fs.StringVar(&o.CertFile, "tls-cert-file", "", "Serving certificate.")
	fs.StringVar(&o.KeyFile, "tls-private-key-file", "", "Its key.")
	fs.StringVar(&o.ServingCAFile, "serving-ca-file", "", "Authority of the serving certificate.")
	fs.StringVar(&o.ClientCAFile, "client-ca-file", "", "Authority of the API server's kubelet client certificate.")
	fs.StringSliceVar(&o.ClientNames, "client-names", nil, "Names accepted from it.")
	fs.StringVar(&o.RequestHeaderCAFile, "requestheader-client-ca-file", "", "Authority of the API server's front proxy client.")
	fs.StringSliceVar(&o.RequestHeaderNames, "requestheader-allowed-names", nil, "Names accepted from it.")
	if err := fs.Parse(args); err != nil {
		return fmt.Errorf("parse the flags of the simulated nodes: %w", err)
	}
	var err error
	if o.Config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return fmt.Errorf("read the kubeconfig of the simulated nodes: %w", err)
	}
	o.Config.QPS = -1
	return kwok.Run(ctx, o)
}
