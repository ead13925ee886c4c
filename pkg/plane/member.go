package plane

import (
	"fmt"
	"strconv"

	"github.com/karmadactl/karmadactl/pkg/certs"
)

// kubeletClient is the name by which a member's API server shows itself to its nodes.
const kubeletClient = "kube-apiserver-kubelet-client"

// metricsServerName is the name by which a member's API server asks the simulated nodes for metrics.k8s.io.
const metricsServerName = "kwok-metrics.kube-system.svc"

// NewMemberConfig returns the configuration of the index-th local member of a playground, counting from 1. Address
// ranges of members do not overlap, neither with one another nor with the control plane's.
func NewMemberConfig(name string, index, nodes int) (Config, error) {
	if index < 1 || index > 100 {
		return Config{}, fmt.Errorf("member %d: a playground has room for members 1 to 100", index)
	}
	c := NewConfig(KindMember, name)
	c.BindAddress, c.AdvertiseAddress = loopback, loopback
	c.Port = 20000 + 10*index
	second := 8 + 2*index
	if second >= 96 {
		second += 16 // the control plane's Services have 10.96.0.0 to 10.111.255.255
	}
	c.PodCIDR = fmt.Sprintf("10.%d.0.0/16", second)
	c.ServiceCIDR = fmt.Sprintf("10.%d.0.0/16", second+1)
	c.Nodes = nodes
	return c, nil
}

// Member describes a complete Kubernetes cluster on loopback, with simulated nodes.
func Member(cfg Config, l Layout) Plane {
	p := Plane{
		Config:       cfg,
		Layout:       l,
		Certificates: append(commonCertificates(cfg), memberCertificates(cfg)...),
		KeyPairs:     []string{serviceAccountKey},
		Files:        []File{authenticationConfig(l)},
	}
	kcm := p.addKubeconfig(KubeControllerManager)
	scheduler := p.addKubeconfig(KubeScheduler)
	nodes := p.addKubeconfig(Nodes)

	secure := Endpoint{Name: "secure", Host: loopback, Port: cfg.Ports[PortKubeScheduler]}
	kubelet := Endpoint{Name: "kubelet", Host: loopback, Port: cfg.Ports[PortNodes]}
	p.Components = []Component{
		etcd(cfg, l),
		apiServer(cfg, l, []string{
			"--kubelet-client-certificate=" + l.pki("apiserver-kubelet-client.crt"),
			"--kubelet-client-key=" + l.pki("apiserver-kubelet-client.key"),
			"--kubelet-certificate-authority=" + l.pki("ca.crt"),
			"--kubelet-preferred-address-types=InternalIP",
		}),
		kubeControllerManager(cfg, l, kcm, []string{"--cluster-name=" + cfg.Name}),
		{
			Name: KubeScheduler,
			Role: KubeScheduler,
			Args: []string{
				"--kubeconfig=" + scheduler,
				"--authentication-kubeconfig=" + scheduler,
				"--authorization-kubeconfig=" + scheduler,
				"--bind-address=" + loopback,
				"--secure-port=" + strconv.Itoa(secure.Port),
				"--tls-cert-file=" + l.pki("kube-scheduler-server.crt"),
				"--tls-private-key-file=" + l.pki("kube-scheduler-server.key"),
				"--tls-min-version=VersionTLS12",
				"--client-ca-file=" + l.pki("ca.crt"),
				"--requestheader-client-ca-file=" + l.pki("front-proxy-ca.crt"),
				"--leader-elect=false",
				"--profiling=false",
			},
			Listen: []Endpoint{secure},
			After:  []string{KubeAPIServer},
			Health: HealthCheck{URL: "https://" + secure.Address() + "/readyz", CAFile: l.pki("ca.crt")},
		},
		{
			Name: Nodes,
			Role: Nodes,
			Args: []string{
				"--kubeconfig=" + nodes,
				"--nodes=" + strconv.Itoa(cfg.Nodes),
				"--name-prefix=" + cfg.Name,
				"--pod-cidr=" + cfg.PodCIDR,
				"--listen-address=" + kubelet.Address(),
				"--tls-cert-file=" + l.pki("nodes-server.crt"),
				"--tls-private-key-file=" + l.pki("nodes-server.key"),
				"--serving-ca-file=" + l.pki("ca.crt"),
				"--client-ca-file=" + l.pki("ca.crt"),
				"--client-names=" + kubeletClient,
				"--requestheader-client-ca-file=" + l.pki("front-proxy-ca.crt"),
				"--requestheader-allowed-names=front-proxy-client",
			},
			Listen: []Endpoint{kubelet},
			After:  []string{KubeAPIServer},
			Health: HealthCheck{URL: "https://" + kubelet.Address() + "/healthz", CAFile: l.pki("ca.crt")},
		},
	}
	return p
}

func memberCertificates(cfg Config) []certs.Spec {
	client := func(name, cn string, org ...string) certs.Spec {
		return certs.Spec{Name: name, CA: "ca", CommonName: cn, Organization: org, Usages: certs.ClientAuth, Validity: cfg.CertValidity.Duration}
	}
	return []certs.Spec{
		client("apiserver-kubelet-client", kubeletClient),
		client(KubeScheduler, "system:kube-scheduler"),
		serving("kube-scheduler-server", "kube-scheduler", cfg),
		client(Nodes, "system:nodes-simulator", "system:masters"),
		nodesServing(cfg),
	}
}

// nodesServing is also for metrics.k8s.io, which the simulated nodes serve through a Service.
func nodesServing(cfg Config) certs.Spec {
	s := serving("nodes-server", "nodes", cfg)
	s.DNSNames = append(s.DNSNames, metricsServerName)
	return s
}
