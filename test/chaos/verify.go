package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/karmadactl/karmadactl/test/chaos/rig"
)

// Objects that a user would create: one of Kubernetes' own kinds, and one of ours.
const (
	configMapName = "chaos"
	policyName    = "chaos"
	userObjects   = `
apiVersion: v1
kind: ConfigMap
metadata: {name: chaos, namespace: default}
data: {kept: "yes"}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: chaos, namespace: default}
spec:
  resourceSelectors:
  - {apiVersion: v1, kind: ConfigMap, name: chaos}
  placement:
    clusterAffinity: {clusterNames: [member1]}
`
)

// Converged runs init again and finds out whether that made a whole control plane: everything healthy, objects can be
// made and read, and a further init finds nothing to change.
func Converged(ctx context.Context, p rig.Plane) error {
	if _, err := p.Init(ctx); err != nil {
		return fmt.Errorf("the next init must complete the installation: %w", err)
	}
	if err := Healthy(ctx, p); err != nil {
		return err
	}
	if _, err := CreateObjects(ctx, p); err != nil {
		return err
	}
	again, err := p.Init(ctx)
	if err != nil {
		return fmt.Errorf("one more init must succeed: %w", err)
	}
	if again.Changed {
		return fmt.Errorf("one more init must find nothing to change, but it did:\n%s", describeSteps(again.Steps))
	}
	return nil
}

func describeSteps(steps []rig.Step) string {
	var b strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&b, "  %s: %s\n", s.Name, s.Detail)
	}
	return b.String()
}

// Healthy asks status once: after init or start nothing has to be waited for.
func Healthy(ctx context.Context, p rig.Plane) error {
	status, err := p.Status(ctx)
	if err != nil {
		return fmt.Errorf("status must find everything healthy: %w", err)
	}
	if !status.Healthy || status.PID == 0 || status.Supervisor.PID == 0 {
		return fmt.Errorf("status exits with 0, but does not tell of a supervised and healthy control plane: %+v", status)
	}
	return onlyOne(p)
}

// onlyOne finds out that exactly one plane and one supervisor run.
func onlyOne(p rig.Plane) error {
	running, err := p.Processes()
	if err != nil {
		return err
	}
	if planes, supervisors := count(running, "plane"), count(running, "supervise"); planes != 1 || supervisors != 1 {
		return fmt.Errorf("one plane and one supervisor must run, but there are %d and %d: %v", planes, supervisors, running)
	}
	return nil
}

func count(processes []rig.Process, role string) int {
	n := 0
	for _, one := range processes {
		if one.Role() == role {
			n++
		}
	}
	return n
}

// Objects identify what a user has made: the unique names that the API server gave it. They tell an object that was
// kept from one that was made anew.
type Objects struct {
	ConfigMap, Policy string
}

// CreateObjects makes the user's objects, or finds them, and reads them back.
func CreateObjects(ctx context.Context, p rig.Plane) (Objects, error) {
	if _, err := p.Kubectl(ctx, userObjects, "apply", "-f", "-"); err != nil {
		return Objects{}, fmt.Errorf("objects must be created: %w", err)
	}
	return ReadObjects(ctx, p)
}

// ReadObjects reads the user's objects.
func ReadObjects(ctx context.Context, p rig.Plane) (Objects, error) {
	configMap, err := uid(ctx, p, "configmaps", configMapName)
	if err != nil {
		return Objects{}, err
	}
	policy, err := uid(ctx, p, "propagationpolicies.policy.karmada.io", policyName)
	if err != nil {
		return Objects{}, err
	}
	return Objects{ConfigMap: configMap, Policy: policy}, nil
}

func uid(ctx context.Context, p rig.Plane, resource, name string) (string, error) {
	out, err := p.Kubectl(ctx, "", "get", resource, name, "--namespace=default", "-o", "json")
	if err != nil {
		return "", fmt.Errorf("objects must be readable: %w", err)
	}
	var object struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal([]byte(out), &object); err != nil {
		return "", fmt.Errorf("decode %s %s: %w", resource, name, err)
	}
	if object.Metadata.UID == "" {
		return "", fmt.Errorf("%s %s has no uid:\n%s", resource, name, out)
	}
	return object.Metadata.UID, nil
}

// Kept finds out that the user's objects are still the very same.
func Kept(ctx context.Context, p rig.Plane, want Objects) error {
	got, err := ReadObjects(ctx, p)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("objects must be the same as before: got %+v, want %+v", got, want)
	}
	return nil
}

// Removed runs deinit and finds out that nothing is left of p: no process, no file.
func Removed(ctx context.Context, p rig.Plane) error {
	if err := p.Deinit(ctx); err != nil {
		return fmt.Errorf("deinit must remove the installation: %w", err)
	}
	running, err := p.Processes()
	if err != nil {
		return err
	}
	files, err := p.Files()
	if err != nil {
		return err
	}
	if len(running) > 0 {
		err = fmt.Errorf("deinit must leave no process, but there is %v", running)
	}
	files = slices.DeleteFunc(files, func(path string) bool { return path == p.Dir })
	if len(files) > 0 {
		err = errors.Join(err, fmt.Errorf("deinit must leave no file, but there is %v", files))
	}
	return err
}

// Survives is the whole question after an init was hit: does it converge, and can it be removed without a trace?
func Survives(ctx context.Context, p rig.Plane) error {
	if err := Converged(ctx, p); err != nil {
		return err
	}
	return Removed(ctx, p)
}
