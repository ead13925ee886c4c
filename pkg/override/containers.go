package override

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
)

// podSpecOf returns where a kind has the specification of its pods, ok false
// for a kind that has none as far as overriders know. Only the kind counts, not
// its group: a workload of another group that is built in the same way is
// treated in the same way (spec: behaviour/07 7.3, 7.4).
func podSpecOf(kind string) (path []string, ok bool) {
	switch kind {
	case "Pod":
		return []string{"spec"}, true
	case "ReplicaSet", "Deployment", "DaemonSet", "StatefulSet", "Job":
		return []string{"spec", "template", "spec"}, true
	case "CronJob":
		return []string{"spec", "jobTemplate", "spec", "template", "spec"}, true
	default:
		return nil, false
	}
}

// A container is one of an object's.
type container struct {
	fields map[string]any
	path   string // JSON pointer
}

// containersOf returns the containers that an object has in some of the lists
// of its pods' specification. What does not look like one is left out.
func containersOf(obj *unstructured.Unstructured, lists ...string) []container {
	path, ok := podSpecOf(obj.GetKind())
	if !ok {
		return nil
	}
	var all []container
	for _, list := range lists {
		at := append(slices.Clip(path), list)
		items, _ := field(obj.Object, at...).([]any)
		for i, item := range items {
			if fields, ok := item.(map[string]any); ok {
				all = append(all, container{fields: fields, path: fmt.Sprintf("%s/%d", pointerTo(at...), i)})
			}
		}
	}
	return all
}

// field returns a field of an object, nil when there is none.
func field(in map[string]any, path ...string) any {
	var v any = in
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

// overrideLists changes a list of strings, command or args, of containers that
// are chosen by name. Init containers are, too: no other container of the pod
// has the name (spec: behaviour/07 7.4).
func overrideLists(obj *unstructured.Unstructured, name, list string, overriders []policyv1alpha1.CommandArgsOverrider) *failure {
	if len(overriders) == 0 {
		return nil
	}
	containers := containersOf(obj, "containers", "initContainers")
	for i, o := range overriders {
		for _, c := range containers {
			if c.fields["name"] != o.ContainerName {
				continue
			}
			if err := overrideList(c.fields, name, o); err != nil {
				return failed(list, i, c.path+"/"+name, err)
			}
		}
	}
	return nil
}

func overrideList(in map[string]any, name string, o policyv1alpha1.CommandArgsOverrider) error {
	old, isList := in[name].([]any)
	if in[name] != nil && !isList {
		return errors.New("it is not a list")
	}
	switch o.Operator {
	case policyv1alpha1.OverriderOpAdd:
		list := slices.Clone(old)
		for _, v := range o.Value {
			list = append(list, v)
		}
		if list != nil {
			in[name] = list
		}
	case policyv1alpha1.OverriderOpRemove:
		if !isList {
			return nil
		}
		in[name] = slices.DeleteFunc(slices.Clone(old), func(v any) bool {
			s, ok := v.(string)
			return ok && slices.Contains(o.Value, s)
		})
	default:
		return unknownOperator(o.Operator)
	}
	return nil
}

func unknownOperator(o policyv1alpha1.OverriderOperator) error {
	return fmt.Errorf("unsupported operator %q", o)
}
