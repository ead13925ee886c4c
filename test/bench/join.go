package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/karmadactl/karmadactl/test/chaos/rig"
)

// joinSizes are the members that are joined, by their number of nodes.
func joinSizes() []int { return []int{0, 100, 5000} }

// join measures how long it takes until a member cluster is Ready with its capacity known, by push for several sizes
// and by pull, and what an agent costs.
func join(ctx context.Context, e *Env) (err error) {
	p, err := rig.NewPlane(e.Binaries, filepath.Join(e.Dir, "plane"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Destroy(context.WithoutCancel(ctx))) }()
	if _, err := p.Init(ctx); err != nil {
		return err
	}
	for _, nodes := range joinSizes() {
		if err := joinMember(ctx, e, p, nodes); err != nil {
			return err
		}
	}
	return nil
}

// joinMember joins and unjoins one member several times. There is one member at a time: it is not what is measured.
func joinMember(ctx context.Context, e *Env, p rig.Plane, nodes int) (err error) {
	g := rig.NewPlayground(e.Binaries, filepath.Join(e.Dir, fmt.Sprintf("playground-%d", nodes)))
	defer func() { err = errors.Join(err, g.Destroy(context.WithoutCancel(ctx))) }()
	e.Say("a member with %d nodes", nodes)
	if err := populate(ctx, e, g, nodes); err != nil {
		return err
	}
	// A member that has only just made its nodes is busy with them.
	if err := pause(ctx, e.Settle); err != nil {
		return err
	}
	for n := 1; n <= e.Runs; n++ {
		if err := cleared(ctx, g); err != nil {
			return err
		}
		e.Say("join and unjoin, %d nodes, %d of %d", nodes, n, e.Runs)
		begin := time.Now()
		if _, err := p.Run(ctx, "", p.JoinArgs(g, "member1", "bench", "--wait=5m")...); err != nil {
			return err
		}
		e.Add(joinFigure(nodes), Seconds, time.Since(begin).Seconds())
		c, err := p.Cluster(ctx, "bench")
		if err != nil {
			return err
		}
		if got := c.Status.NodeSummary.TotalNum; got != nodes {
			return fmt.Errorf("join has returned, but the Cluster counts %d of %d nodes", got, nodes)
		}
		begin = time.Now()
		if _, err := p.Run(ctx, "", p.UnjoinArgs(g, "member1", "bench", "--cascade=delete")...); err != nil {
			return err
		}
		e.Add(fmt.Sprintf("unjoin, %d nodes", nodes), Seconds, time.Since(begin).Seconds())
	}
	if nodes != agentNodes {
		return nil
	}
	return joinByPull(ctx, e, p, g)
}

// populate starts a member with so many nodes.
func populate(ctx context.Context, e *Env, g rig.Playground, nodes int) error {
	if nodes <= mostSimulatedNodes {
		if err := g.Up(ctx, 1, nodes); err != nil {
			return err
		}
		return settled(ctx, g, nodes)
	}
	e.Note("the %d nodes are objects without heartbeats: simulating them would take all of the machine", nodes)
	if err := g.Up(ctx, 1, 0); err != nil {
		return err
	}
	return createNodes(ctx, g.Kubeconfig("member1"), nodes)
}

// settled waits until every node of a member is ready.
func settled(ctx context.Context, g rig.Playground, nodes int) error {
	return rig.Eventually(ctx, "all nodes are ready", func() error {
		out, err := g.Kubectl(ctx, "member1", "", "get", "nodes", "-o", "jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}")
		if err != nil {
			return err
		}
		if ready := strings.Count(out, "True"); ready != nodes {
			return fmt.Errorf("%d of %d nodes are ready", ready, nodes)
		}
		return nil
	})
}

// cleared waits until a member has nothing of an earlier join. A namespace takes its time to go, and a join waits for
// that; it is not what is measured.
func cleared(ctx context.Context, g rig.Playground) error {
	return rig.Eventually(ctx, "nothing is left of an earlier join", func() error {
		out, err := g.Kubectl(ctx, "member1", "", "get", "namespace", "karmada-cluster", "-o", "name", "--ignore-not-found")
		if err == nil && strings.TrimSpace(out) != "" {
			err = fmt.Errorf("there is still %s", out)
		}
		return err
	})
}

// agentNodes is the size of the member whose agent is measured.
const agentNodes = 100

// joinByPull registers a member and measures its agent while nothing happens.
func joinByPull(ctx context.Context, e *Env, p rig.Plane, g rig.Playground) error {
	a := rig.Agent{Cluster: "pull", Dir: filepath.Join(e.Dir, "agent")}
	for n := 1; n <= e.Runs; n++ {
		if err := cleared(ctx, g); err != nil {
			return err
		}
		e.Say("register and unregister, %d nodes, %d of %d", agentNodes, n, e.Runs)
		args, err := p.RegisterArgs(ctx, g, "member1", a, "--wait=5m")
		if err != nil {
			return err
		}
		begin := time.Now()
		if _, err := p.Run(ctx, "", args...); err != nil {
			return err
		}
		e.Add(registerTime, Seconds, time.Since(begin).Seconds())
		if n == e.Runs {
			if err := idleAgent(ctx, e, a); err != nil {
				return err
			}
		}
		if _, err := p.Run(ctx, "", p.UnregisterArgs(g, "member1", a, "--cascade=delete")...); err != nil {
			return err
		}
	}
	return nil
}

func idleAgent(ctx context.Context, e *Env, a rig.Agent) error {
	running, err := rig.FindProcesses(a.Dir)
	if err != nil {
		return err
	}
	if len(running) == 0 {
		return fmt.Errorf("no process works in the agent's directory %s", a.Dir)
	}
	var watched []Watched
	for _, one := range running {
		watched = append(watched, Watched{PID: one.PID, Name: one.Role()})
	}
	e.Say("agent: idle for %s, then measured for %s", e.Settle, e.Idle)
	usage, err := idle(ctx, e.Settings, watched)
	if err != nil {
		return err
	}
	for i, u := range usage {
		addUsage(e, "agent idle ", ", "+watched[i].Name, u)
	}
	return nil
}

func joinFigure(nodes int) string { return fmt.Sprintf("join until ready, %d nodes", nodes) }
