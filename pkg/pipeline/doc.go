// Package pipeline is the story of this project: how a template and a policy in
// the control plane become the same object, overridden, on every member
// cluster, with its status back.
//
//	template (any kind)      PropagationPolicy / ClusterPropagationPolicy
//	       \                  /
//	        match  ......... which policy wins
//	        bind  .......... claims the template, writes the binding
//	        schedule  ...... which clusters, how many replicas each
//	        render  ........ per cluster: replicas, overrides -> Work in karmada-es-<cluster>
//	        apply  ......... the Work's objects are on the member
//	        observe  ....... the member's objects -> status of the Work
//	        aggregate  ..... Works -> status of the binding -> status of the template
//
// Each stage is a package below this one. Stages never import each other: they
// meet in API objects alone, so that each can be replaced and tested by itself.
// What two of them share is a noun with a package of its own: how a member is
// reached, for example, is pkg/member. A stage that works for push and for pull
// members runs in the controller manager and in the agent; its Options are all
// that differs.
//
// What stages share is below them: pkg/template (users' objects), pkg/policy,
// pkg/binding (bindings and Works), pkg/interpreter, pkg/override, pkg/member.
// Namespaces take a shortcut: pkg/controllers/namespace makes their Works.
package pipeline
