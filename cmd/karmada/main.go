package main

import (
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/spf13/cobra"
	_ "go.etcd.io/etcd/server/v3/embed"
	_ "go.etcd.io/etcd/server/v3/etcdmain"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/term"
	_ "k8s.io/cli-runtime/pkg/genericclioptions"
	_ "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	_ "k8s.io/kubectl/pkg/cmd"
	_ "k8s.io/kubernetes/cmd/kube-apiserver/app"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	_ "k8s.io/kubernetes/cmd/kube-scheduler/app"
	_ "sigs.k8s.io/controller-runtime"
	_ "sigs.k8s.io/kwok/pkg/kwok/controllers"
	_ "sigs.k8s.io/kwok/pkg/kwok/server"
	_ "sigs.k8s.io/yaml"
)

func main() {}
