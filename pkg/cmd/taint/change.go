package taint

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// A Change is what is to be done to the taints of a cluster.
type Change struct {
	Add []corev1.Taint
	// Remove are taints by key and effect; without an effect all of that key are meant.
	Remove []corev1.Taint
}

// parseChange reads taints as kubectl's taint does: key=value:effect, key:effect, and with a - behind them, or key-, what is
// to be removed.
func parseChange(specs []string) (Change, error) {
	var c Change
	for _, spec := range specs {
		bare, remove := strings.CutSuffix(spec, "-")
		t, err := parseTaint(bare)
		switch {
		case err != nil:
			return Change{}, err
		case remove:
			c.Remove = append(c.Remove, corev1.Taint{Key: t.Key, Effect: t.Effect})
		case t.Effect == "":
			return Change{}, fmt.Errorf("invalid taint spec: %s: the effect is missing, as in %s:NoSchedule", spec, spec)
		case slices.ContainsFunc(c.Add, func(o corev1.Taint) bool { return o.MatchTaint(&t) }):
			return Change{}, fmt.Errorf("duplicated taints with the same key and effect: %s", t.ToString())
		default:
			c.Add = append(c.Add, t)
		}
	}
	for _, r := range c.Remove {
		for _, a := range c.Add {
			if matches(r, a) {
				return Change{}, fmt.Errorf("can not both modify and remove the following taint(s) in the same command: %s", r.ToString())
			}
		}
	}
	return c, nil
}

// parseTaint reads key=value:effect, key:effect or key.
func parseTaint(spec string) (corev1.Taint, error) {
	pair, effect, hasEffect := strings.Cut(spec, ":")
	key, value, hasValue := strings.Cut(pair, "=")
	if strings.Contains(effect, ":") || strings.Contains(value, "=") || (hasValue && !hasEffect) {
		return corev1.Taint{}, fmt.Errorf("invalid taint spec: %s: want key=value:effect or key:effect", spec)
	}
	t := corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	if hasEffect && !slices.Contains(effects, t.Effect) {
		return corev1.Taint{}, fmt.Errorf("invalid taint effect: %s, unsupported taint effect: want NoSchedule, PreferNoSchedule or NoExecute", effect)
	}
	problems := validation.IsQualifiedName(key)
	problems = append(problems, validation.IsValidLabelValue(value)...)
	if len(problems) > 0 {
		return corev1.Taint{}, fmt.Errorf("invalid taint spec: %s, %s", spec, strings.Join(problems, "; "))
	}
	return t, nil
}

// matches reports whether t is one that r removes.
func matches(r, t corev1.Taint) bool {
	return r.Key == t.Key && (r.Effect == "" || r.Effect == t.Effect)
}

// What was done to a cluster, in the contract's words (spec: cli/commands.md 4.2).
const (
	tainted   = "tainted"
	untainted = "untainted"
	modified  = "modified"
)

// apply returns the taints that a cluster is to have, in their order, and what that is called.
func (c Change) apply(cluster string, found []corev1.Taint, overwrite bool) ([]corev1.Taint, string, error) {
	if !overwrite {
		if taken := c.taken(found); len(taken) > 0 {
			return nil, "", fmt.Errorf("cluster %s already has %s taint(s) with same effect(s) and --overwrite is false", cluster, strings.Join(taken, ","))
		}
	}
	taints := slices.Clone(found)
	var errs []error
	for _, r := range c.Remove {
		before := len(taints)
		if taints = slices.DeleteFunc(taints, func(t corev1.Taint) bool { return matches(r, t) }); len(taints) == before {
			errs = append(errs, fmt.Errorf("taint %q not found on cluster %s", r.ToString(), cluster))
		}
	}
	for _, a := range c.Add {
		at := slices.IndexFunc(taints, func(t corev1.Taint) bool { return t.MatchTaint(&a) })
		switch {
		case at < 0:
			taints = append(taints, a)
		case taints[at].Value != a.Value:
			taints[at] = a // one that is the same keeps the time it was added
		}
	}
	done := tainted
	switch {
	case overwrite || (len(c.Add) > 0 && len(c.Remove) > 0):
		done = modified
	case len(c.Add) == 0:
		done = untainted
	}
	return taints, done, errors.Join(errs...)
}

// taken returns the keys of taints that are to be added and are there.
func (c Change) taken(found []corev1.Taint) []string {
	var keys []string
	for _, a := range c.Add {
		if slices.ContainsFunc(found, func(t corev1.Taint) bool { return t.MatchTaint(&a) }) {
			keys = append(keys, a.Key)
		}
	}
	return keys
}
