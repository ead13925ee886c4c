package convert

import (
	"encoding/json"
	"fmt"

	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

// A Converter converts bindings. It is safe for concurrent use; only New makes one.
type Converter struct {
	// check says what is wrong with a v1alpha2 object of a kind, nil when nothing is.
	check func(kind string, object []byte) error
}

// New returns a Converter that holds what travels in the annotation to the schema of v1alpha2.
func New() *Converter { return &Converter{check: (&schemas{}).check} }

// Convert returns an object, a ResourceBinding or ClusterResourceBinding as JSON, in the version that is wanted, such as
// work.karmada.io/v1alpha1. An error is for the user: it names the object and what is wrong with it.
func (c *Converter) Convert(object []byte, version string) ([]byte, error) {
	var o fields
	if err := json.Unmarshal(object, &o); err != nil {
		return nil, fmt.Errorf("read the object: %w", err)
	}
	is, err := identify(o)
	if err != nil {
		return nil, fmt.Errorf("read the object: %w", err)
	}
	if is.version == version {
		return object, nil
	}
	out, err := c.convert(o, is, version)
	if err != nil {
		return nil, fmt.Errorf("convert %s to %s: %w", is, version, err)
	}
	return out, nil
}

func (c *Converter) convert(o fields, is identity, version string) ([]byte, error) {
	if is.kind != workv1alpha2.KindResourceBinding && is.kind != workv1alpha2.KindClusterResourceBinding {
		return nil, fmt.Errorf("only %s and %s have several versions", workv1alpha2.KindResourceBinding, workv1alpha2.KindClusterResourceBinding)
	}
	older, newer := workv1alpha1.GroupVersion.String(), workv1alpha2.GroupVersion.String()
	switch {
	case is.version == newer && version == older:
		rest, err := toOlder(o)
		if err != nil {
			return nil, err
		}
		if err := is.carry(rest); err != nil {
			return nil, err
		}
		return is.write(o, version)
	case is.version == older && version == newer:
		rest, err := is.carried()
		if err != nil {
			return nil, err
		}
		if err := toNewer(o, rest); err != nil {
			return nil, err
		}
		out, err := is.write(o, version)
		if err == nil && !rest.empty() {
			// The API server has checked what v1alpha1 has fields for, but not what a user may have put into an annotation.
			err = c.check(is.kind, out)
		}
		return out, err
	}
	return nil, fmt.Errorf("it is of %s: there are %s and %s", is.version, older, newer)
}

// toOlder makes the content of a v1alpha2 object that of a v1alpha1 object, and returns what does not fit in there.
func toOlder(o fields) (rest, error) {
	var left rest
	spec, err := o.object("spec")
	if err != nil {
		return rest{}, err
	}
	status, err := o.object("status")
	if err != nil {
		return rest{}, err
	}
	resource, err := spec.object("resource")
	if err != nil {
		return rest{}, err
	}
	requirements, err := spec.object("replicaRequirements")
	if err != nil {
		return rest{}, err
	}

	reference := resource.take(sharedReference()...)
	left.Resource = resource
	if len(resource) > 0 {
		left.Of = reference.only(sharedIdentity()...)
	}
	if replicas, ok := spec["replicas"]; ok {
		reference["replicas"] = replicas
	}
	if request, ok := requirements["resourceRequest"]; ok {
		reference["resourcePerReplicas"] = request
		delete(requirements, "resourceRequest")
		if len(requirements) == 0 {
			delete(spec, "replicaRequirements")
		} else if err := spec.put("replicaRequirements", requirements); err != nil {
			return rest{}, err
		}
	}

	older := fields{}
	if _, ok := spec["resource"]; ok || len(reference) > 0 {
		if err := older.put("resource", reference); err != nil {
			return rest{}, err
		}
	}
	if left.Clusters, err = older.putItems("clusters", spec["clusters"], "name", sharedTarget()); err != nil {
		return rest{}, err
	}
	if _, ok := o["spec"]; ok {
		if err := o.put("spec", older); err != nil {
			return rest{}, err
		}
	}
	left.Spec = spec.without(specElsewhere()...)

	older = status.only("conditions")
	if left.AggregatedStatus, err = older.putItems("aggregatedStatus", status["aggregatedStatus"], "clusterName", sharedAggregated()); err != nil {
		return rest{}, err
	}
	if _, ok := o["status"]; ok {
		if err := o.put("status", older); err != nil {
			return rest{}, err
		}
	}
	left.Status = status.without(statusElsewhere()...)
	return left, nil
}

// toNewer makes the content of a v1alpha1 object that of a v1alpha2 object, with what was left of an earlier conversion.
// What v1alpha1 has fields for is never taken from there.
func toNewer(o fields, left rest) error {
	older, err := o.object("spec")
	if err != nil {
		return err
	}
	olderStatus, err := o.object("status")
	if err != nil {
		return err
	}
	resource, err := older.object("resource")
	if err != nil {
		return err
	}

	spec := left.Spec.without(specElsewhere()...)
	requirements, err := spec.object("replicaRequirements")
	if err != nil {
		return err
	}
	if _, ok := requirements["resourceRequest"]; ok {
		spec["replicaRequirements"], err = json.Marshal(requirements.without("resourceRequest"))
		if err != nil {
			return err
		}
	}
	reference := resource.only(sharedReference()...)
	if reference.equal(left.Of, sharedIdentity()...) {
		// Another template has another UID.
		for name, value := range left.Resource.without(sharedReference()...) {
			reference[name] = value
		}
	}
	if request, ok := resource["resourcePerReplicas"]; ok {
		with := requirements.without("resourceRequest")
		with["resourceRequest"] = request
		if err := spec.put("replicaRequirements", with); err != nil {
			return err
		}
	}
	if replicas, ok := resource["replicas"]; ok {
		spec["replicas"] = replicas
	}
	if _, ok := older["resource"]; ok {
		if err := spec.put("resource", reference); err != nil {
			return err
		}
	}
	if err := spec.mergeItems("clusters", older["clusters"], left.Clusters, "name", sharedTarget()); err != nil {
		return err
	}
	if _, ok := o["spec"]; ok || len(spec) > 0 {
		if err := o.put("spec", spec); err != nil {
			return err
		}
	}

	status := left.Status.without(statusElsewhere()...)
	if conditions, ok := olderStatus["conditions"]; ok {
		status["conditions"] = conditions
	}
	if err := status.mergeItems("aggregatedStatus", olderStatus["aggregatedStatus"], left.AggregatedStatus, "clusterName", sharedAggregated()); err != nil {
		return err
	}
	if _, ok := o["status"]; ok || len(status) > 0 {
		return o.put("status", status)
	}
	return nil
}

// What both versions have, by name, and which of it says which template is meant.
func sharedReference() []string {
	return []string{"apiVersion", "kind", "namespace", "name", "resourceVersion"}
}
func sharedIdentity() []string { return []string{"apiVersion", "kind", "namespace", "name"} }
func sharedTarget() []string   { return []string{"name", "replicas"} }
func sharedAggregated() []string {
	return []string{"clusterName", "status", "applied", "appliedMessage"}
}

// What of v1alpha2's spec and status has a place in v1alpha1, whole or in parts.
func specElsewhere() []string   { return []string{"resource", "replicas", "clusters"} }
func statusElsewhere() []string { return []string{"conditions", "aggregatedStatus"} }
