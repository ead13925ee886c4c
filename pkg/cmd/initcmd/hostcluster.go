package initcmd

import (
	"github.com/spf13/pflag"

	"github.com/karmadactl/karmadactl/pkg/cmd/host"
)

// addHostClusterFlags adds the flags of the contract that only make sense when the control plane is installed onto a
// host Kubernetes cluster, with the contract's types and defaults (spec: cli/init.md 1). Their help is hidden.
func addHostClusterFlags(fs *pflag.FlagSet) {
	for name, value := range map[string]string{
		"config": "", "context": "", "crds": "", "kubeconfig": "",
		"etcd-data": "/var/lib/karmada-etcd", "etcd-image": "", "etcd-node-selector-labels": "",
		"etcd-priority-class": "system-node-critical", "etcd-pvc-size": "5Gi", "etcd-storage-mode": "hostPath",
		"external-etcd-ca-cert-path": "", "external-etcd-client-cert-path": "", "external-etcd-client-key-path": "",
		"external-etcd-key-prefix": "", "external-etcd-servers": "",
		"host-cluster-domain": "cluster.local", "image-pull-policy": "IfNotPresent",
		"karmada-aggregated-apiserver-image": "", "karmada-aggregated-apiserver-priority-class": "system-node-critical",
		"karmada-apiserver-image": "", "karmada-apiserver-priority-class": "system-node-critical",
		"karmada-controller-manager-image": "", "karmada-controller-manager-priority-class": "system-node-critical",
		"karmada-kube-controller-manager-image": "", "karmada-kube-controller-manager-priority-class": "system-node-critical",
		"karmada-scheduler-image": "", "karmada-scheduler-priority-class": "system-node-critical",
		"karmada-webhook-image": "", "karmada-webhook-priority-class": "system-node-critical",
		"kube-image-mirror-country": "", "kube-image-registry": "", "kube-image-tag": "",
		"private-image-registry": "", "storage-classes-name": "",
	} {
		fs.String(name, value, "")
	}
	for _, component := range []string{"etcd", "karmada-aggregated-apiserver", "karmada-apiserver", "karmada-controller-manager", "karmada-kube-controller-manager", "karmada-scheduler", "karmada-webhook"} {
		fs.Int32(component+"-replicas", 1, "")
		fs.StringSlice(component+"-extra-args", nil, "")
	}
	fs.StringSlice("image-pull-secrets", nil, "")
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Usage == "" {
			host.MarkRefused(fs, f.Name)
		}
	})
}
