package factory

import "fmt"

// An end is how errors speak of what a kubeconfig leads to, and of the flags
// that choose it.
type end struct {
	// noun names it: "control plane", or "member cluster m". kind is the same
	// without a name.
	noun, kind string
	// kubeconfigFlag and contextFlag choose it.
	kubeconfigFlag, contextFlag string
	// orElse and orDefault are the ways out without a kubeconfig.
	orElse, orDefault string
	// newKubeconfig says where one comes from that trusts the right CA,
	// addAddress how a certificate gets another address, howToCheck how to see
	// whether the server runs.
	newKubeconfig, addAddress, howToCheck string
	// member is false for the control plane, which errors name by its address.
	member bool
}

func controlPlane(program string) end {
	return end{
		noun: "control plane", kind: "control plane",
		kubeconfigFlag: "--kubeconfig", contextFlag: "--karmada-context",
		orElse:        fmt.Sprintf(", or create a control plane on this host with %q", program+" init"),
		orDefault:     ", or unset it to use the default",
		newKubeconfig: "use the kubeconfig that init of this control plane wrote",
		addAddress:    ", or add this one with init's --cert-external-ip or --cert-external-dns",
		howToCheck:    fmt.Sprintf(" (on its own host: %q)", program+" status"),
	}
}

// server is what an error calls the server at that address.
func (e end) server(url string) string {
	if e.member {
		return fmt.Sprintf("the %s at %s", e.noun, url)
	}
	return url
}

// of says whose kubeconfig is meant where there are two.
func (e end) of() string {
	if e.member {
		return "of the " + e.noun + " "
	}
	return ""
}
