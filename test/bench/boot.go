package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/karmadactl/karmadactl/test/chaos/rig"
)

const (
	memberNodes = 4
	cliRuns     = 20
)

// boot measures how fast a control plane and a member cluster come up, what they cost while nothing happens, and how
// fast the CLI itself starts.
func boot(ctx context.Context, e *Env) error {
	for _, part := range []func(context.Context, *Env) error{bootPlane, bootMember, bootCLI} {
		if err := part(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// bootPlane installs, stops and starts a control plane; the last one stays for the idle figures.
func bootPlane(ctx context.Context, e *Env) error {
	for n := 1; n <= e.Runs; n++ {
		if err := bootPlaneOnce(ctx, e, n); err != nil {
			return err
		}
	}
	return nil
}

func bootPlaneOnce(ctx context.Context, e *Env, n int) (err error) {
	p, err := rig.NewPlane(e.Binaries, filepath.Join(e.Dir, fmt.Sprintf("plane-%d", n)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Destroy(context.WithoutCancel(ctx))) }()

	e.Say("control plane %d of %d: cold init", n, e.Runs)
	begin := time.Now()
	result, err := p.Init(ctx)
	if err != nil {
		return err
	}
	e.Add(coldInit, Seconds, time.Since(begin).Seconds())
	for _, step := range result.Steps {
		e.Add("  "+step.Name, Seconds, step.Took.Seconds())
		if step.Name == "start" {
			addComponents(e, step.Detail)
		}
	}
	if err := addCPUTime(e, "  CPU time of the plane", p); err != nil {
		return err
	}

	begin = time.Now()
	if err := p.Stop(ctx); err != nil {
		return err
	}
	e.Add("stop", Seconds, time.Since(begin).Seconds())

	e.Say("control plane %d of %d: warm start", n, e.Runs)
	begin = time.Now()
	if err := p.Start(ctx); err != nil {
		return err
	}
	e.Add(warmStart, Seconds, time.Since(begin).Seconds())
	if err := addCPUTime(e, "  CPU time of the plane, warm", p); err != nil {
		return err
	}
	if n == e.Runs {
		if err := idlePlane(ctx, e, p); err != nil {
			return err
		}
	}
	return p.Deinit(ctx)
}

// addComponents reads the times of single components from what the step says to people. They are a bonus: when the
// text looks different there are none.
func addComponents(e *Env, detail string) {
	for _, match := range regexp.MustCompile(`([a-z-]+) ([0-9.]+)s`).FindAllStringSubmatch(detail, -1) {
		if seconds, err := strconv.ParseFloat(match[2], 64); err == nil {
			e.Add("    "+match[1], Seconds, seconds)
		}
	}
}

// addCPUTime adds what the control plane has used of the processor so far. Unlike the time that passed, it hardly
// depends on what else the machine does.
func addCPUTime(e *Env, name string, p rig.Plane) error {
	running, err := p.Processes()
	if err != nil {
		return err
	}
	var all time.Duration
	for _, one := range running {
		used, err := cpuTime(one.PID)
		if err != nil {
			return fmt.Errorf("measure %s: %w", one, err)
		}
		all += used
	}
	e.Add(name, Seconds, all.Seconds())
	return nil
}

// idlePlane measures the control plane while nobody uses it. It was started warm: what it holds is what a host that
// was booted holds.
func idlePlane(ctx context.Context, e *Env, p rig.Plane) error {
	running, err := p.Processes()
	if err != nil {
		return err
	}
	var watched []Watched
	for _, one := range running {
		watched = append(watched, Watched{PID: one.PID, Name: one.Role()})
	}
	e.Say("control plane: idle for %s, then measured for %s", e.Settle, e.Idle)
	usage, err := idle(ctx, e.Settings, watched)
	if err != nil {
		return err
	}
	var all Usage
	for i, u := range usage {
		all = all.plus(u)
		addUsage(e, "idle ", ", "+watched[i].Name, u)
	}
	addUsage(e, "idle ", ", all", all)
	disk, err := diskUsage(p.Dir)
	if err != nil {
		return err
	}
	e.Add("data directory", MiB, float64(disk)/mebi)
	return nil
}

// bootMember starts one local member cluster, and measures it while it is idle.
func bootMember(ctx context.Context, e *Env) (err error) {
	dir := filepath.Join(e.Dir, "playground")
	k := rig.Karmadactl{Path: e.Karmadactl}
	defer func() { err = errors.Join(err, rig.DestroyDir(context.WithoutCancel(ctx), dir)) }()
	for n := 1; n <= e.Runs; n++ {
		e.Say("member cluster with %d nodes, %d of %d", memberNodes, n, e.Runs)
		begin := time.Now()
		if _, err := k.Run(ctx, "", "playground", "up", "--dir="+dir, "--members=1", "--nodes="+strconv.Itoa(memberNodes)); err != nil {
			return err
		}
		e.Add(memberReady, Seconds, time.Since(begin).Seconds())
		if n == e.Runs {
			if err := idleMember(ctx, e, dir); err != nil {
				return err
			}
		}
		if _, err := k.Run(ctx, "", "playground", "down", "--dir="+dir, "--purge"); err != nil {
			return err
		}
	}
	return nil
}

func idleMember(ctx context.Context, e *Env, dir string) error {
	running, err := rig.FindProcesses(dir)
	if err != nil {
		return err
	}
	if len(running) != 1 {
		return fmt.Errorf("a member cluster is one process, but there is %v", running)
	}
	e.Say("member cluster: idle for %s, then measured for %s", e.Settle, e.Idle)
	usage, err := idle(ctx, e.Settings, []Watched{{PID: running[0].PID, Name: "member"}})
	if err != nil {
		return err
	}
	addUsage(e, "member idle ", "", usage[0])
	disk, err := diskUsage(dir)
	if err != nil {
		return err
	}
	e.Add("member data directory", MiB, float64(disk)/mebi)
	return nil
}

// bootCLI compares how long the CLI takes for nothing with kubectl, turn by turn: both see the same machine.
func bootCLI(ctx context.Context, e *Env) error {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		e.Note("kubectl is not in PATH: the start of the CLI is not compared with it")
		kubectl = ""
	}
	cases := []struct {
		name, ratio  string
		args, theirs []string
	}{
		{name: "version", ratio: versionVs, args: []string{"version"}, theirs: []string{"version", "--client"}},
		{name: "--help", ratio: helpVs, args: []string{"--help"}, theirs: []string{"--help"}},
	}
	e.Say("start of the CLI, %d times", cliRuns)
	for _, c := range cases {
		var ours, theirs []float64
		for range cliRuns {
			took, err := runTime(ctx, e.Karmadactl, c.args...)
			if err != nil {
				return err
			}
			ours = append(ours, took)
			e.Add("karmadactl "+c.name, Millis, took)
			if kubectl == "" {
				continue
			}
			if took, err = runTime(ctx, kubectl, c.theirs...); err != nil {
				return err
			}
			theirs = append(theirs, took)
			e.Add("kubectl "+c.name, Millis, took)
		}
		if len(theirs) > 0 {
			e.Add(c.ratio, Ratio, median(ours)/median(theirs))
		}
	}
	return nil
}

// runTime runs a program that needs no server, and returns how many milliseconds it took.
func runTime(ctx context.Context, program string, args ...string) (float64, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+os.DevNull)
	begin := time.Now()
	err := cmd.Run()
	took := time.Since(begin)
	if err != nil {
		return 0, fmt.Errorf("run %s %v: %w", program, args, err)
	}
	return float64(took) / float64(time.Millisecond), nil
}
