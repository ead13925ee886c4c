package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karmadactl/karmadactl/pkg/cmd/fleet/fleettest"
	"github.com/karmadactl/karmadactl/test/bench/load"
)

// Names of the figures of scenario CLI that have a target.
const (
	getFew       = "get, 100 objects of 3 members"
	getManyFirst = "get, 10000 pods of 50 members: first row"
)

// getNamespace is where the objects are that get shows.
const getNamespace = "bench-get"

// commands measures what a user waits for at the prompt. Version and help are with scenario boot, beside kubectl's.
func commands(ctx context.Context, e *Env) error {
	if err := fewOfThree(ctx, e); err != nil {
		return err
	}
	return manyOfMany(ctx, e)
}

// fewOfThree measures get of 100 objects in three real members.
func fewOfThree(ctx context.Context, e *Env) (err error) {
	f, err := e.Fleet(ctx)
	if err != nil {
		return err
	}
	const objects = 100
	for i, m := range f.members {
		namespace := newObject("Namespace", "", getNamespace)
		if err := m.Apply(ctx, namespace); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, m.Remove(context.WithoutCancel(ctx), namespace)) }()
		count := (objects + i) / len(f.members)
		if err := m.Create(ctx, count, concurrently, load.Numbered(newObject("Secret", getNamespace, "bench"))); err != nil {
			return err
		}
	}
	args := []string{"get", "secrets", "-n", getNamespace, "-s", "members", "--no-headers", "--kubeconfig=" + f.kubeconfig(e.Settings)}
	cache := filepath.Join(e.Dir, "cache")
	for n := 0; n <= e.Runs; n++ {
		g, err := get(ctx, e, cache, args)
		if err != nil {
			return err
		}
		if g.rows != objects {
			return fmt.Errorf("get has shown %d rows of %d", g.rows, objects)
		}
		if n == 0 {
			e.Add(getFew+", the first time", Seconds, g.all.Seconds())
			continue
		}
		e.Add(getFew, Seconds, g.all.Seconds())
	}
	return nil
}

func newObject(kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// manyOfMany measures get of 10,000 pods in 50 members, which this process is itself.
func manyOfMany(ctx context.Context, e *Env) (err error) {
	const members, pods = 50, 200
	e.Say("%d members with %d pods in memory", members, pods)
	p := fleettest.NewPlane()
	for m := range members {
		var all []string
		for i := range pods {
			all = append(all, fleettest.Pod("default", fmt.Sprintf("web-7c5ddbdf54-%04d", i), "app", "web", "tier", "front"))
		}
		p.Join(fmt.Sprintf("member%02d", m), all...)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("serve members: %w", err)
	}
	server := &http.Server{Handler: p}
	go func() { _ = server.Serve(listener) }() // ends with Close
	defer func() { p.Stop(); err = errors.Join(err, server.Close()) }()
	kubeconfig := filepath.Join(e.Dir, "many.config")
	if err := fleettest.WriteKubeconfig(kubeconfig, "http://"+listener.Addr().String()); err != nil {
		return err
	}
	for range e.Runs {
		g, err := get(ctx, e, filepath.Join(e.Dir, "cache"), []string{"get", "pods", "-s", "members", "--no-headers", "--kubeconfig=" + kubeconfig})
		if err != nil {
			return err
		}
		if g.rows != members*pods {
			return fmt.Errorf("get has shown %d rows of %d", g.rows, members*pods)
		}
		e.Add(getManyFirst, Seconds, g.first.Seconds())
		e.Add("get, 10000 pods of 50 members: all rows", Seconds, g.all.Seconds())
		e.Add("get, 10000 pods of 50 members: RSS at most", MiB, float64(g.memory)/mebi)
	}
	return nil
}

// got is how a get went.
type got struct {
	first, all time.Duration
	rows       int
	memory     int64
}

// get runs karmadactl and counts what it writes.
func get(ctx context.Context, e *Env, cache string, args []string) (got, error) {
	var (
		g        got
		problems strings.Builder
	)
	cmd := exec.CommandContext(ctx, e.Karmadactl, args...)
	cmd.Env = append(os.Environ(), "KUBECACHEDIR="+cache)
	cmd.Stderr = &problems
	out, err := cmd.StdoutPipe()
	if err != nil {
		return g, fmt.Errorf("run karmadactl get: %w", err)
	}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return g, fmt.Errorf("run karmadactl get: %w", err)
	}
	lines := bufio.NewReader(out)
	for {
		_, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return g, errors.Join(fmt.Errorf("read what karmadactl get says: %w", err), cmd.Wait())
		}
		if g.rows++; g.rows == 1 {
			g.first = time.Since(begin)
		}
	}
	if err := cmd.Wait(); err != nil {
		return g, fmt.Errorf("karmadactl get: %w: %s", err, strings.TrimSpace(problems.String()))
	}
	g.all = time.Since(begin)
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		g.memory = usage.Maxrss << 10
	}
	return g, nil
}
