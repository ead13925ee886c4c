package plane

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	"github.com/karmadactl/karmadactl/pkg/certs"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// Names of components.
const (
	Etcd                       = "etcd"
	KubeAPIServer              = "kube-apiserver"
	KubeControllerManager      = "kube-controller-manager"
	KubeScheduler              = "kube-scheduler"
	KarmadaAggregatedAPIServer = names.AggregatedAPIServer
	KarmadaControllerManager   = names.ControllerManager
	KarmadaScheduler           = names.Scheduler
	KarmadaWebhook             = names.Webhook
	Nodes                      = "nodes"
)

// controlPlaneControllers are the loops of kube-controller-manager that a control plane without nodes needs (spec:
// cli/init.md 7.4): namespaces, garbage collection, tokens, bootstrap tokens and certificate requests.
const controlPlaneControllers = "namespace,garbagecollector,serviceaccount-token,ttl-after-finished,bootstrapsigner,tokencleaner,csrcleaner,csrsigning,clusterrole-aggregation"

// The user that karmada's own components are bound to, by group.
const componentGroup = "system:karmada"

// ControlPlane describes the Karmada control plane on one host.
func ControlPlane(cfg Config, l Layout) Plane {
	p := Plane{
		Config:       cfg,
		Layout:       l,
		Certificates: append(commonCertificates(cfg), controlPlaneCertificates(cfg)...),
		KeyPairs:     []string{serviceAccountKey},
		Files:        []File{authenticationConfig(l)},
	}
	kcm := p.addKubeconfig(KubeControllerManager)
	aggregated := p.addKubeconfig(KarmadaAggregatedAPIServer)
	ours := p.addKubeconfig(KarmadaControllerManager)

	api := apiServer(cfg, l, []string{
		"--disable-admission-plugins=StorageObjectInUseProtection,ServiceAccount",
	})
	// From its first moment it has to ask the webhook, which starts without it: so no user's request ever finds it missing.
	api.After = append(api.After, KarmadaWebhook)
	kcmComponent := kubeControllerManager(cfg, l, kcm, []string{
		"--controllers=" + controlPlaneControllers,
		"--cluster-name=" + names.APIServer,
	})
	health := Endpoint{Name: "health", Host: loopback, Port: cfg.Ports[PortKarmadaControllerManagerHealth]}
	metrics := Endpoint{Name: "metrics", Host: loopback, Port: cfg.Ports[PortKarmadaControllerManagerMetrics]}
	p.Components = []Component{
		etcd(cfg, l),
		webhook(cfg, l, ours),
		api,
		kcmComponent,
		aggregatedAPIServer(cfg, l, aggregated),
		{
			Name: KarmadaControllerManager,
			Role: KarmadaControllerManager,
			Args: []string{
				"--kubeconfig=" + ours,
				"--health-probe-bind-address=" + health.Address(),
				"--metrics-bind-address=" + metrics.Address(),
				"--leader-elect=false",
			},
			Listen: []Endpoint{health, metrics},
			After:  []string{KubeAPIServer},
			// It is ready when the API types are there, which are installed once every component is well.
			Health: HealthCheck{URL: "http://" + health.Address() + "/healthz"},
		},
		scheduler(cfg, ours),
	}
	return p
}

func etcd(cfg Config, l Layout) Component {
	client := Endpoint{Name: "client", Host: loopback, Port: cfg.Ports[PortEtcdClient]}
	peer := Endpoint{Name: "peer", Host: loopback, Port: cfg.Ports[PortEtcdPeer]}
	return Component{
		Name: Etcd,
		Role: Etcd,
		Args: []string{
			"--name=" + etcdMember,
			"--data-dir=" + l.EtcdData(),
			"--listen-client-urls=https://" + client.Address(),
			"--advertise-client-urls=https://" + client.Address(),
			"--listen-peer-urls=https://" + peer.Address(),
			"--initial-advertise-peer-urls=https://" + peer.Address(),
			"--initial-cluster=" + etcdMember + "=https://" + peer.Address(),
			"--cert-file=" + l.pki("etcd-server.crt"),
			"--key-file=" + l.pki("etcd-server.key"),
			"--client-cert-auth=true",
			"--trusted-ca-file=" + l.pki("etcd-ca.crt"),
			"--peer-cert-file=" + l.pki("etcd-peer.crt"),
			"--peer-key-file=" + l.pki("etcd-peer.key"),
			"--peer-client-cert-auth=true",
			"--peer-trusted-ca-file=" + l.pki("etcd-ca.crt"),
			"--tls-min-version=TLS1.2",
			"--auto-compaction-mode=periodic",
			"--auto-compaction-retention=30m",
			"--quota-backend-bytes=8589934592",
			"--snapshot-count=10000",
			// One member waits for nobody but its own clock before it leads.
			"--heartbeat-interval=50",
			"--election-timeout=500",
			"--log-level=warn",
		},
		Listen: []Endpoint{client, peer},
		Health: HealthCheck{
			URL:      "https://" + client.Address() + "/readyz",
			CAFile:   l.pki("etcd-ca.crt"),
			CertFile: l.pki("etcd-health-client.crt"),
			KeyFile:  l.pki("etcd-health-client.key"),
		},
	}
}

// apiServer describes kube-apiserver with the flags that control planes and members share.
func apiServer(cfg Config, l Layout, extra []string) Component {
	secure := Endpoint{Name: "secure", Host: cfg.BindAddress, Port: cfg.Port}
	return Component{
		Name: KubeAPIServer,
		Role: KubeAPIServer,
		Args: append([]string{
			"--bind-address=" + cfg.BindAddress,
			"--secure-port=" + strconv.Itoa(cfg.Port),
			"--advertise-address=" + cfg.AdvertiseAddress,
			// The address of the API server is in nobody's Endpoints: a host without a default route has none to
			// offer, and a loopback one is refused there.
			"--endpoint-reconciler-type=none",
			"--allow-privileged=true",
			"--authorization-mode=Node,RBAC",
			"--authentication-config=" + l.config("authentication.yaml"),
			"--client-ca-file=" + l.pki("ca.crt"),
			"--enable-bootstrap-token-auth=true",
			"--etcd-servers=https://" + net.JoinHostPort(loopback, strconv.Itoa(cfg.Ports[PortEtcdClient])),
			"--etcd-cafile=" + l.pki("etcd-ca.crt"),
			"--etcd-certfile=" + l.pki("etcd-client.crt"),
			"--etcd-keyfile=" + l.pki("etcd-client.key"),
			"--service-account-issuer=https://kubernetes.default.svc." + clusterDomain,
			"--service-account-key-file=" + l.pki(serviceAccountKey+".pub"),
			"--service-account-signing-key-file=" + l.pki(serviceAccountKey+".key"),
			"--service-cluster-ip-range=" + cfg.ServiceCIDR,
			"--proxy-client-cert-file=" + l.pki("front-proxy-client.crt"),
			"--proxy-client-key-file=" + l.pki("front-proxy-client.key"),
			"--requestheader-allowed-names=front-proxy-client",
			"--requestheader-client-ca-file=" + l.pki("front-proxy-ca.crt"),
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--requestheader-group-headers=X-Remote-Group",
			"--requestheader-username-headers=X-Remote-User",
			"--tls-cert-file=" + l.pki("apiserver.crt"),
			"--tls-private-key-file=" + l.pki("apiserver.key"),
			"--tls-min-version=VersionTLS13",
			"--profiling=false",
			// Watches are told to end when it stops. Otherwise those of other processes, such as agents, keep it
			// from stopping until it gives up on them.
			"--shutdown-watch-termination-grace-period=5s",
		}, extra...),
		Listen: []Endpoint{secure},
		After:  []string{Etcd},
		Health: HealthCheck{URL: cfg.LocalServer() + "/readyz", CAFile: l.pki("ca.crt")},
	}
}

// aggregatedAPIServer describes the server of cluster.karmada.io. Only kube-apiserver reaches it, by an APIService that
// leads to this port.
func aggregatedAPIServer(cfg Config, l Layout, kubeconfig string) Component {
	secure := Endpoint{Name: "secure", Host: loopback, Port: cfg.Ports[PortKarmadaAggregatedAPIServer]}
	return Component{
		Name: KarmadaAggregatedAPIServer,
		Role: KarmadaAggregatedAPIServer,
		Args: []string{
			"--kubeconfig=" + kubeconfig,
			"--authentication-kubeconfig=" + kubeconfig,
			"--authorization-kubeconfig=" + kubeconfig,
			// What it would look up is in the flags below.
			"--authentication-skip-lookup=true",
			"--client-ca-file=" + l.pki("ca.crt"),
			"--requestheader-client-ca-file=" + l.pki("front-proxy-ca.crt"),
			"--requestheader-allowed-names=front-proxy-client",
			"--bind-address=" + loopback,
			"--secure-port=" + strconv.Itoa(secure.Port),
			"--tls-cert-file=" + l.pki(aggregatedServing+".crt"),
			"--tls-private-key-file=" + l.pki(aggregatedServing+".key"),
			"--tls-min-version=VersionTLS13",
			"--etcd-servers=https://" + net.JoinHostPort(loopback, strconv.Itoa(cfg.Ports[PortEtcdClient])),
			"--etcd-cafile=" + l.pki("etcd-ca.crt"),
			"--etcd-certfile=" + l.pki(aggregatedEtcdClient+".crt"),
			"--etcd-keyfile=" + l.pki(aggregatedEtcdClient+".key"),
			// kube-apiserver has let the request in already.
			"--enable-priority-and-fairness=false",
			"--profiling=false",
		},
		Listen: []Endpoint{secure},
		After:  []string{KubeAPIServer},
		Health: HealthCheck{URL: "https://" + secure.Address() + "/readyz", CAFile: l.pki("ca.crt")},
	}
}

// scheduler describes karmada-scheduler. In one process with karmada-controller-manager it shares that one's manager,
// with its cache and its metrics, so it has the same kubeconfig, and a health probe only.
func scheduler(cfg Config, kubeconfig string) Component {
	health := Endpoint{Name: "health", Host: loopback, Port: cfg.Ports[PortKarmadaSchedulerHealth]}
	return Component{
		Name: KarmadaScheduler,
		Role: KarmadaScheduler,
		Args: []string{
			"--kubeconfig=" + kubeconfig,
			"--health-probe-bind-address=" + health.Address(),
			"--metrics-bind-address=0",
			"--leader-elect=false",
		},
		Listen: []Endpoint{health},
		// It waits for that one's manager in any case.
		After: []string{KarmadaControllerManager},
		// As for karmada-controller-manager: the API types come later.
		Health: HealthCheck{URL: "http://" + health.Address() + "/healthz"},
	}
}

// webhook describes the server that kube-apiserver asks when users write objects of Karmada. It asks back only what a
// request makes it ask, so it starts first. It is part of a process whose metrics are served already, and where it listens
// it answers for its health.
func webhook(cfg Config, l Layout, kubeconfig string) Component {
	secure := Endpoint{Name: "secure", Host: loopback, Port: cfg.Ports[PortKarmadaWebhook]}
	return Component{
		Name: KarmadaWebhook,
		Role: KarmadaWebhook,
		Args: []string{
			"--kubeconfig=" + kubeconfig,
			"--bind-address=" + loopback,
			"--secure-port=" + strconv.Itoa(secure.Port),
			"--cert-dir=" + l.PKI,
			"--tls-cert-file-name=" + webhookServing + ".crt",
			"--tls-private-key-file-name=" + webhookServing + ".key",
			"--tls-min-version=1.3",
			"--health-probe-bind-address=0",
			"--metrics-bind-address=0",
		},
		Listen: []Endpoint{secure},
		Health: HealthCheck{URL: "https://" + secure.Address() + "/readyz/", CAFile: l.pki("ca.crt")},
	}
}

// WebhookServer is the URL at which the API server of a control plane reaches its webhook.
func (p Plane) WebhookServer() string {
	return "https://" + net.JoinHostPort(loopback, strconv.Itoa(p.Config.Ports[PortKarmadaWebhook]))
}

func kubeControllerManager(cfg Config, l Layout, kubeconfig string, extra []string) Component {
	secure := Endpoint{Name: "secure", Host: loopback, Port: cfg.Ports[PortKubeControllerManager]}
	return Component{
		Name: KubeControllerManager,
		Role: KubeControllerManager,
		Args: append([]string{
			"--kubeconfig=" + kubeconfig,
			"--authentication-kubeconfig=" + kubeconfig,
			"--authorization-kubeconfig=" + kubeconfig,
			"--bind-address=" + loopback,
			"--secure-port=" + strconv.Itoa(secure.Port),
			"--tls-cert-file=" + l.pki("kube-controller-manager-server.crt"),
			"--tls-private-key-file=" + l.pki("kube-controller-manager-server.key"),
			"--tls-min-version=VersionTLS12",
			"--client-ca-file=" + l.pki("ca.crt"),
			"--requestheader-client-ca-file=" + l.pki("front-proxy-ca.crt"),
			"--cluster-signing-cert-file=" + l.pki("ca.crt"),
			"--cluster-signing-key-file=" + l.pki("ca.key"),
			"--root-ca-file=" + l.pki("ca.crt"),
			"--service-account-private-key-file=" + l.pki(serviceAccountKey+".key"),
			"--service-cluster-ip-range=" + cfg.ServiceCIDR,
			"--use-service-account-credentials=true",
			"--leader-elect=false",
			"--profiling=false",
		}, extra...),
		Listen: []Endpoint{secure},
		After:  []string{KubeAPIServer},
		Health: HealthCheck{URL: "https://" + secure.Address() + "/healthz", CAFile: l.pki("ca.crt")},
	}
}

// commonCertificates are the ones of etcd, kube-apiserver and kube-controller-manager: one leaf a purpose, nothing
// shared.
func commonCertificates(cfg Config) []certs.Spec {
	leaf := func(name, ca, cn string, org ...string) certs.Spec {
		return certs.Spec{Name: name, CA: ca, CommonName: cn, Organization: org, Validity: cfg.CertValidity.Duration, Usages: certs.ClientAuth}
	}
	api := leaf("apiserver", "ca", "karmada-apiserver")
	api.Usages, api.DNSNames, api.IPs = certs.ServerAuth, cfg.serverNames(), cfg.serverIPs()
	return []certs.Spec{
		{Name: "ca", CommonName: "karmada"},
		{Name: "front-proxy-ca", CommonName: "front-proxy-ca"},
		{Name: "etcd-ca", CommonName: "etcd-ca"},
		api,
		leaf("front-proxy-client", "front-proxy-ca", "front-proxy-client"),
		signedBy("etcd-ca", serving("etcd-server", "karmada-etcd-server", cfg)),
		signedBy("etcd-ca", peer(serving("etcd-peer", "karmada-etcd-peer", cfg))),
		leaf("etcd-client", "etcd-ca", "karmada-etcd-client"),
		leaf("etcd-health-client", "etcd-ca", "karmada-etcd-health-client"),
		leaf(AdminCertificate, "ca", "system:admin", "system:masters"),
		leaf(KubeControllerManager, "ca", "system:kube-controller-manager"),
		serving("kube-controller-manager-server", "kube-controller-manager", cfg),
	}
}

// serving is the certificate of a server that listens on loopback only.
func serving(name, cn string, cfg Config) certs.Spec {
	return certs.Spec{
		Name: name, CA: "ca", CommonName: cn, Usages: certs.ServerAuth, Validity: cfg.CertValidity.Duration,
		DNSNames: []string{"localhost"}, IPs: []net.IP{net.ParseIP(loopback)},
	}
}

func signedBy(ca string, s certs.Spec) certs.Spec {
	s.CA = ca
	return s
}

// peer lets a serving certificate be shown as a client's too: etcd members do both with one.
func peer(s certs.Spec) certs.Spec {
	s.Usages |= certs.ClientAuth
	return s
}

func controlPlaneCertificates(cfg Config) []certs.Spec {
	client := func(name, ca, cn string, org ...string) certs.Spec {
		return certs.Spec{Name: name, CA: ca, CommonName: cn, Organization: org, Usages: certs.ClientAuth, Validity: cfg.CertValidity.Duration}
	}
	api := serving(aggregatedServing, KarmadaAggregatedAPIServer, cfg)
	api.DNSNames = append(api.DNSNames, KarmadaAggregatedAPIServer+"."+names.SystemNamespace+".svc")
	hooks := serving(webhookServing, KarmadaWebhook, cfg)
	hooks.DNSNames = append(hooks.DNSNames, KarmadaWebhook+"."+names.SystemNamespace+".svc")
	return []certs.Spec{
		client(KarmadaControllerManager, "ca", "system:karmada:controller-manager", componentGroup),
		client(KarmadaAggregatedAPIServer, "ca", "system:karmada:aggregated-apiserver", componentGroup),
		client(aggregatedEtcdClient, "etcd-ca", "karmada-aggregated-apiserver-etcd-client"),
		api,
		hooks,
	}
}

// Names of certificates.
const (
	aggregatedServing    = KarmadaAggregatedAPIServer + "-server"
	aggregatedEtcdClient = KarmadaAggregatedAPIServer + "-etcd-client"
	webhookServing       = KarmadaWebhook + "-server"
)

// AdminCertificate is the name of the certificate of system:admin in group system:masters.
const AdminCertificate = "admin"

// AdminFiles returns the paths of the CA certificate, and of the admin's certificate and key.
func (l Layout) AdminFiles() (ca, cert, key string) {
	return l.pki("ca.crt"), l.pki(AdminCertificate + ".crt"), l.pki(AdminCertificate + ".key")
}

// addKubeconfig notes the kubeconfig of a component whose client certificate has its name, and returns its path.
func (p *Plane) addKubeconfig(component string) string {
	k := Kubeconfig{
		Path:     p.Layout.kubeconfig(component),
		Server:   p.Config.LocalServer(),
		Cluster:  names.APIServer,
		User:     component,
		CAFile:   p.Layout.pki("ca.crt"),
		CertFile: p.Layout.pki(component + ".crt"),
		KeyFile:  p.Layout.pki(component + ".key"),
	}
	p.Kubeconfigs = append(p.Kubeconfigs, k)
	return k.Path
}

// authenticationConfig lets anonymous users ask for health and for cluster-info, which `register` reads before it
// has credentials, and for nothing else.
func authenticationConfig(l Layout) File {
	paths := []string{
		"/livez", "/readyz", "/healthz",
		fmt.Sprintf("/api/v1/namespaces/%s/configmaps/%s", metav1.NamespacePublic, bootstrapapi.ConfigMapClusterInfo),
	}
	var b strings.Builder
	b.WriteString("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\nanonymous:\n  enabled: true\n  conditions:\n")
	for _, path := range paths {
		fmt.Fprintf(&b, "  - path: %s\n", path)
	}
	return File{Path: l.config("authentication.yaml"), Content: []byte(b.String())}
}
