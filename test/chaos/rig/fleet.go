package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// A Playground is the local member clusters in one directory.
type Playground struct {
	Karmadactl
	Dir string
}

// NewPlayground returns a playground to be made in dir, which need not exist.
func NewPlayground(b Binaries, dir string) Playground {
	return Playground{Karmadactl: Karmadactl{Path: b.Karmadactl}, Dir: dir}
}

// Up starts member clusters, or makes more of them.
func (g Playground) Up(ctx context.Context, members, nodes int) error {
	_, err := g.Run(ctx, "", "playground", "up", "--dir="+g.Dir, "--members="+strconv.Itoa(members), "--nodes="+strconv.Itoa(nodes), "--timeout=15m")
	return err
}

// Down stops every member cluster; the data stays.
func (g Playground) Down(ctx context.Context) error {
	_, err := g.Run(ctx, "", "playground", "down", "--dir="+g.Dir)
	return err
}

// Kubeconfig is the admin's of one member cluster.
func (g Playground) Kubeconfig(member string) string { return filepath.Join(g.Dir, member+".config") }

// MemberDir is where a member cluster keeps its data.
func (g Playground) MemberDir(member string) string { return filepath.Join(g.Dir, member) }

// Kubectl runs a kubectl verb of karmadactl as admin of a member cluster.
func (g Playground) Kubectl(ctx context.Context, member, stdin string, args ...string) (string, error) {
	return g.Run(ctx, stdin, append(args, "--kubeconfig="+g.Kubeconfig(member))...)
}

// Destroy ends every process of g with SIGKILL and removes its directory.
func (g Playground) Destroy(ctx context.Context) error { return DestroyDir(ctx, g.Dir) }

// JoinArgs is the command line by which a member of g becomes the push cluster of that name.
func (p Plane) JoinArgs(g Playground, member, name string, more ...string) []string {
	return append([]string{"join", name, "--kubeconfig=" + p.Kubeconfig(), "--cluster-kubeconfig=" + g.Kubeconfig(member)}, more...)
}

// UnjoinArgs is the command line that ends it.
func (p Plane) UnjoinArgs(g Playground, member, name string, more ...string) []string {
	return append([]string{
		"unjoin", name, "--kubeconfig=" + p.Kubeconfig(),
		"--cluster-kubeconfig=" + g.Kubeconfig(member), "--cluster-context=" + member,
	}, more...)
}

// An Agent is a pull cluster's agent, a process with a directory of its own.
type Agent struct {
	Cluster string
	Dir     string
}

// RegisterArgs is the command line by which a member of g becomes the pull cluster of that name. It makes a token for
// that cluster first.
func (p Plane) RegisterArgs(ctx context.Context, g Playground, member string, a Agent, more ...string) ([]string, error) {
	out, err := p.Run(ctx, "", "token", "create", "--cluster="+a.Cluster, "--print-register-command", "--kubeconfig="+p.Kubeconfig())
	if err != nil {
		return nil, err
	}
	printed := strings.Fields(out)
	if len(printed) < 2 || printed[1] != "register" {
		return nil, fmt.Errorf("token create printed %q, want a command that registers", out)
	}
	args := append(printed[1:], "--kubeconfig="+g.Kubeconfig(member), "--agent=process", "--agent-dir="+a.Dir)
	return append(args, more...), nil
}

// UnregisterArgs is the command line that ends it.
func (p Plane) UnregisterArgs(g Playground, member string, a Agent, more ...string) []string {
	return append([]string{
		"unregister", a.Cluster, "--karmada-config=" + p.Kubeconfig(),
		"--cluster-kubeconfig=" + g.Kubeconfig(member), "--agent-dir=" + a.Dir,
	}, more...)
}

// A Cluster is what tests and benchmarks look at of a Cluster object.
type Cluster struct {
	Metadata struct {
		Name            string `json:"name"`
		UID             string `json:"uid"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Spec struct {
		ID       string `json:"id"`
		SyncMode string `json:"syncMode"`
		Taints   []struct {
			Key    string `json:"key"`
			Effect string `json:"effect"`
		} `json:"taints"`
	} `json:"spec"`
	Status struct {
		KubernetesVersion string `json:"kubernetesVersion"`
		Conditions        []struct {
			Type    string `json:"type"`
			Status  string `json:"status"`
			Reason  string `json:"reason"`
			Message string `json:"message"`
		} `json:"conditions"`
		NodeSummary struct {
			TotalNum int `json:"totalNum"`
			ReadyNum int `json:"readyNum"`
		} `json:"nodeSummary"`
		ResourceSummary struct {
			Allocatable map[string]string `json:"allocatable"`
		} `json:"resourceSummary"`
	} `json:"status"`
}

// Ready is the status of the condition Ready, and why; "" when there is none.
func (c Cluster) Ready() (status, why string) {
	for _, condition := range c.Status.Conditions {
		if condition.Type == "Ready" {
			return condition.Status, condition.Reason + ": " + condition.Message
		}
	}
	return "", "no condition Ready"
}

// Tainted reports whether the cluster has that taint.
func (c Cluster) Tainted(key, effect string) bool {
	for _, t := range c.Spec.Taints {
		if t.Key == key && t.Effect == effect {
			return true
		}
	}
	return false
}

// ErrNoCluster says that there is no Cluster of that name.
var ErrNoCluster = errors.New("there is no such Cluster")

// Cluster reads one Cluster object.
func (p Plane) Cluster(ctx context.Context, name string) (Cluster, error) {
	out, err := p.Kubectl(ctx, "", "get", "cluster", name, "-o", "json", "--ignore-not-found")
	if err != nil {
		return Cluster{}, err
	}
	if strings.TrimSpace(out) == "" {
		return Cluster{}, fmt.Errorf("%s: %w", name, ErrNoCluster)
	}
	var c Cluster
	if err := json.Unmarshal([]byte(out), &c); err != nil {
		return Cluster{}, fmt.Errorf("decode cluster %s: %w", name, err)
	}
	return c, nil
}

// WaitCluster waits until a Cluster is as check wants it, and returns it.
func (p Plane) WaitCluster(ctx context.Context, name, what string, check func(Cluster) error) (Cluster, error) {
	var last Cluster
	err := Eventually(ctx, "cluster "+name+" "+what, func() error {
		c, err := p.Cluster(ctx, name)
		if err != nil {
			return err
		}
		last = c
		return check(c)
	})
	return last, err
}

// IsReady is a check for WaitCluster: Ready has that status.
func IsReady(want string) func(Cluster) error {
	return func(c Cluster) error {
		if status, why := c.Ready(); status != want {
			return fmt.Errorf("Ready is %q, want %q (%s)", status, want, why)
		}
		return nil
	}
}
