package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/karmadactl/karmadactl/test/bench/load"
	"github.com/karmadactl/karmadactl/test/chaos/rig"
)

const (
	renderNamespace = "render"
	renderMembers   = 2
)

// render measures how fast Works are made of bindings that were scheduled while nobody rendered: the control plane runs
// without its controllers, which come back as a role of their own. Nothing is applied to members meanwhile.
func render(ctx context.Context, e *Env) (err error) {
	p, err := rig.NewPlane(e.Binaries, filepath.Join(e.Dir, "render-plane"))
	if err != nil {
		return err
	}
	g := rig.NewPlayground(e.Binaries, filepath.Join(e.Dir, "render-members"))
	defer func() {
		ctx := context.WithoutCancel(ctx)
		err = errors.Join(err, p.Destroy(ctx), g.Destroy(ctx))
	}()
	e.Say("a control plane and %d members", renderMembers)
	if _, err := p.Init(ctx); err != nil {
		return err
	}
	if err := g.Up(ctx, renderMembers, 0); err != nil {
		return err
	}
	for _, name := range fleetMembers()[:renderMembers] {
		if _, err := p.Run(ctx, "", p.JoinArgs(g, name, name)...); err != nil {
			return err
		}
	}
	if err := p.Stop(ctx); err != nil {
		return err
	}
	without, err := startRole(ctx, e, "plane", "--data-dir="+p.Dir, "--without=karmada-controller-manager,karmada-scheduler")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, without.stop()) }()
	var control *load.Target
	if err := rig.Eventually(ctx, "the API server serves bindings", func() error {
		control, err = load.Open("the control plane", p.Kubeconfig())
		if err != nil {
			return err
		}
		return control.Serves(bindingResource())
	}); err != nil {
		return err
	}
	if err := bound(ctx, e, control, e.Bindings); err != nil {
		return err
	}
	return resume(ctx, e, p, control, e.Bindings*renderMembers)
}

func bindingResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "work.karmada.io", Version: "v1alpha2", Resource: "resourcebindings"}
}

func clusterResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "cluster.karmada.io", Version: "v1alpha1", Resource: "clusters"}
}

func workResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "work.karmada.io", Version: "v1alpha1", Resource: "works"}
}

// bound creates ConfigMaps with bindings that name both members.
func bound(ctx context.Context, e *Env, control *load.Target, count int) error {
	e.Say("%d bindings", count)
	if err := applyTemplate(ctx, []*load.Target{control}, "namespace", "NAMESPACE", renderNamespace); err != nil {
		return err
	}
	object, err := load.Template("configmap", "NAMESPACE", renderNamespace)
	if err != nil {
		return err
	}
	binding, err := load.Template("binding", "NAMESPACE", renderNamespace)
	if err != nil {
		return err
	}
	if err := control.Create(ctx, count, concurrently, load.Numbered(object)); err != nil {
		return err
	}
	uids, err := control.UIDs(ctx, object)
	if err != nil {
		return err
	}
	return control.Create(ctx, count, concurrently, func(i int) *unstructured.Unstructured {
		b, name := binding.DeepCopy(), fmt.Sprintf("%s-%d", object.GetName(), i)
		b.SetName(name + "-configmap")
		b.Object["spec"].(map[string]any)["resource"] = map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "namespace": renderNamespace, "name": name, "uid": uids[name],
		}
		return b
	})
}

// resume starts the controllers that render, and measures from the first Work that they make to the last.
func resume(ctx context.Context, e *Env, p rig.Plane, control *load.Target, want int) error {
	watched, stop := context.WithCancel(ctx)
	defer stop()
	works, err := control.Watch(watched, workResource(), "", map[string]func(*unstructured.Unstructured) bool{
		present: func(u *unstructured.Unstructured) bool {
			return u.GetAnnotations()["resourcebinding.karmada.io/namespace"] == renderNamespace
		},
	})
	if err != nil {
		return err
	}
	e.Say("the controllers come back")
	begin := time.Now()
	controllers, err := startRole(ctx, e, "karmada-controller-manager", "--kubeconfig="+p.Kubeconfig(), "--leader-elect=false",
		"--health-probe-bind-address=0", "--metrics-bind-address=0", "--controllers=*,-execution,-workStatus,-clusterStatus")
	if err != nil {
		return err
	}
	err = works.AtLeast(ctx, present, 1)
	first := time.Now()
	if err == nil {
		err = works.AtLeast(ctx, present, want)
	}
	if err == nil {
		took := time.Since(first)
		e.Add("until the first Work", Seconds, first.Sub(begin).Seconds())
		e.Add(fmt.Sprintf("%d Works", want), Seconds, took.Seconds())
		e.Add(renderEach, Millis, took.Seconds()*1000/float64(want))
		e.Note("%.0f Works a second", float64(want)/took.Seconds())
		var u Usage
		if u, err = memory(controllers.cmd.Process.Pid); err == nil {
			e.Add("peak RSS of the controllers", MiB, u.Peak/mebi)
		}
	}
	return errors.Join(err, controllers.stop())
}

// A role is a server that a scenario started itself.
type role struct {
	cmd *exec.Cmd
	log *os.File
}

func startRole(ctx context.Context, e *Env, args ...string) (*role, error) {
	log, err := os.CreateTemp(e.Dir, args[0]+"-*.log")
	if err != nil {
		return nil, fmt.Errorf("make a log for %s: %w", args[0], err)
	}
	r := &role{cmd: exec.CommandContext(ctx, e.Karmada, args...), log: log}
	r.cmd.Stdout, r.cmd.Stderr = log, log
	if err := r.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", args[0], err), log.Close())
	}
	return r, nil
}

// stop ends the role, in order.
func (r *role) stop() error {
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", r.cmd.Args[1], err)
	}
	err := r.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil // what it says is in its log
	}
	return errors.Join(err, r.log.Close())
}
