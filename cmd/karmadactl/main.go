// The karmadactl command controls a federation of Kubernetes clusters. Called
// as kubectl-karmada it is a plugin of kubectl.
package main

import (
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth/oidc" // kubeconfigs with an OIDC auth provider

	"github.com/karmadactl/karmadactl/pkg/cmd"
)

func main() {
	os.Exit(cmd.Main(os.Args, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}))
}
