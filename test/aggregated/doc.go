// Package aggregated holds the tests of karmada-aggregated-apiserver beside a
// whole control plane: etcd and kube-apiserver are processes that karmadactl
// init has started, the server itself runs in the process of the tests, and
// requests reach it the way that users' do.
package aggregated
