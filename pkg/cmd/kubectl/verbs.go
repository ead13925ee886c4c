package kubectl

import (
	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/cmd/annotate"
	"k8s.io/kubectl/pkg/cmd/apiresources"
	"k8s.io/kubectl/pkg/cmd/attach"
	"k8s.io/kubectl/pkg/cmd/create"
	"k8s.io/kubectl/pkg/cmd/delete"
	"k8s.io/kubectl/pkg/cmd/describe"
	"k8s.io/kubectl/pkg/cmd/edit"
	kubectlexec "k8s.io/kubectl/pkg/cmd/exec"
	"k8s.io/kubectl/pkg/cmd/explain"
	"k8s.io/kubectl/pkg/cmd/label"
	"k8s.io/kubectl/pkg/cmd/logs"
	"k8s.io/kubectl/pkg/cmd/patch"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/completion"

	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
)

// A verb is one row of the table: a command of kubectl, and how ours differs.
// An empty text means kubectl's own.
type verb struct {
	name    string
	command func(f cmdutil.Factory) *cobra.Command
	use     string // spec: cli/commands.md Appendix B
	short   string
	long    string
	example string

	drop       []string          // kubectl's flags that the contract does not have
	rename     map[string]string // kubectl's name of a flag: the contract's
	values     map[string]string // defaults that are not kubectl's
	usages     map[string]string // what flags are for, where kubectl's text speaks of what we do not have
	namespaced bool              // has -n, --namespace
	inherited  bool              // sub-commands have the connection flags too
	reach      reach
	complete   func(f cmdutil.Factory) cobra.CompletionFunc // of the arguments
}

// verbs is the table (spec: cli/commands.md 5 and 7).
func (s Set) verbs() []verb {
	streams := s.Streams
	oneMember := []factory.Scope{factory.ScopeKarmada, factory.ScopeMembers}

	return []verb{
		{
			name:       "explain",
			command:    func(f cmdutil.Factory) *cobra.Command { return explain.NewCmdExplain(s.Program, f, streams) },
			use:        "explain TYPE [--recursive=FALSE|TRUE] [--api-version=api-version-group] [--output=plaintext|plaintext-openapiv2]",
			drop:       []string{"max-depth"},
			usages:     map[string]string{"recursive": "Print the fields of fields."},
			namespaced: true,
			reach:      reach{scopes: oneMember, cluster: true},
			complete:   firstOnly(typeAndName),
			example: `
				# Get the documentation of the resource and its fields
				kubectl explain propagationpolicies

				# Get all the fields in the resource
				kubectl explain deployments --recursive

				# Get the explanation for deployment in supported api versions
				kubectl explain deployments --api-version=apps/v1

				# Get the documentation of a specific field of a resource
				kubectl explain propagationpolicies.spec.placement

				# Get the documentation of resources in different format
				kubectl explain deployment --output=plaintext-openapiv2`,
		},
		{
			name:       "create",
			command:    func(f cmdutil.Factory) *cobra.Command { return create.NewCmdCreate(f, streams) },
			use:        "create -f FILENAME",
			namespaced: true,
			inherited:  true,
		},
		{
			name:       "delete",
			command:    func(f cmdutil.Factory) *cobra.Command { return delete.NewCmdDelete(f, streams) },
			use:        "delete ([-f FILENAME] | [-k DIRECTORY] | TYPE [(NAME | -l label | --all)])",
			namespaced: true,
		},
		{
			name:       "edit",
			command:    func(f cmdutil.Factory) *cobra.Command { return edit.NewCmdEdit(f, streams) },
			use:        "edit (RESOURCE/NAME | -f FILENAME)",
			namespaced: true,
		},
		{
			name:       "describe",
			command:    func(f cmdutil.Factory) *cobra.Command { return describe.NewCmdDescribe(s.Program, f, streams) },
			use:        "describe (-f FILENAME | TYPE [NAME_PREFIX | -l label] | TYPE/NAME) (--operation-scope=SCOPE --cluster=CLUSTER)",
			short:      "Show details of a specific resource or group of resources in the control plane or a member cluster",
			namespaced: true,
			reach:      reach{scopes: oneMember, cluster: true, short: "C"},
			complete:   typeAndName,
			example: `
				# Describe a deployment of the control plane
				kubectl describe deployment/web

				# Describe a pod of cluster member1
				kubectl describe pod/web-7c5ddbdf54-abcde -C member1

				# Describe all pods of cluster member1 with label app=web
				kubectl describe pods -l app=web --operation-scope=members --cluster=member1

				# Describe the pods of cluster member1 whose names begin with web
				kubectl describe pods web -C member1

				# Describe what a file has
				kubectl describe -f web.yaml`,
		},
		{
			name:       "logs",
			command:    func(f cmdutil.Factory) *cobra.Command { return logs.NewCmdLogs(f, streams) },
			use:        "logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER] (-C CLUSTER)",
			short:      "Print the logs for a container in a pod in a member cluster",
			namespaced: true,
			reach:      reach{cluster: true, short: "C", always: true},
			example: `
				# Print the logs of pod web-0 of cluster member1, which has one container
				kubectl logs web-0 -C member1

				# Follow the logs of container proxy of that pod
				kubectl logs -f web-0 -c proxy -C member1

				# Print the last 20 lines of all containers of all pods with label app=web
				kubectl logs -l app=web --all-containers --tail=20 -C member1

				# Print what the container before the last restart said
				kubectl logs -p web-0 -C member1

				# Print the logs of the last hour of the first pod of a deployment
				kubectl logs deployment/web --since=1h -C member1`,
		},
		{
			name:       "exec",
			command:    func(f cmdutil.Factory) *cobra.Command { return kubectlexec.NewCmdExec(f, streams) },
			use:        "exec (POD | TYPE/NAME) [-c CONTAINER] (-C CLUSTER) -- COMMAND [args...]",
			short:      "Execute a command in a container in a member cluster",
			namespaced: true,
			reach:      reach{scopes: oneMember, cluster: true, short: "C"},
			example: `
				# Run date in pod web-0 of cluster member1
				kubectl exec web-0 -C member1 -- date

				# Get a shell in container proxy of that pod
				kubectl exec -it web-0 -c proxy -C member1 -- sh

				# Run a command in the first pod of a deployment
				kubectl exec deployment/web --operation-scope=members --cluster=member1 -- ls -l /`,
		},
		{
			name:       "attach",
			command:    func(f cmdutil.Factory) *cobra.Command { return attach.NewCmdAttach(f, streams) },
			use:        "attach (POD | TYPE/NAME) -c CONTAINER",
			short:      "Attach to a running container in a member cluster",
			drop:       []string{"detach-keys"},
			namespaced: true,
			reach:      reach{scopes: oneMember, cluster: true, short: "C"},
			example: `
				# See what the one container of pod web-0 of cluster member1 writes
				kubectl attach web-0 -C member1

				# Type into container shell of that pod
				kubectl attach -it web-0 -c shell -C member1`,
		},
		{
			name:       "apply",
			command:    s.apply,
			use:        "apply (-f FILENAME | -k DIRECTORY)",
			short:      "Apply a configuration to a resource by file name or stdin and propagate it to member clusters",
			namespaced: true,
			long: `
				Apply a configuration to a resource by file name or stdin, and propagate it to member clusters.

				The resource is created in the control plane if it is not there yet, and changed otherwise. With
				--cluster or --all-clusters each object also gets a policy that propagates it: a PropagationPolicy
				beside it, or a ClusterPropagationPolicy if it is in no namespace.`,
			example: `
				# Apply what a file has, without propagating it
				kubectl apply -f manifest.yaml

				# Apply it, and propagate it to two clusters
				kubectl apply -f manifest.yaml -C member1,member2

				# Apply it, and propagate it to all clusters
				kubectl apply -f manifest.yaml --all-clusters

				# See what would become of it
				kubectl apply -f manifest.yaml --all-clusters --dry-run=server

				# Apply resources from a directory containing kustomization.yaml
				kubectl apply -k dir/ -C member1

				# Apply the JSON passed into stdin
				cat pod.json | kubectl apply -f - -C member1`,
		},
		{
			name:       "patch",
			command:    func(f cmdutil.Factory) *cobra.Command { return patch.NewCmdPatch(f, streams) },
			use:        "patch (-f FILENAME | TYPE NAME) [-p PATCH|--patch-file FILE]",
			namespaced: true,
		},
		{
			name:       "label",
			command:    func(f cmdutil.Factory) *cobra.Command { return label.NewCmdLabel(f, streams) },
			use:        "label [--overwrite] (-f FILENAME | TYPE NAME) KEY_1=VAL_1 ... KEY_N=VAL_N [--resource-version=version]",
			namespaced: true,
		},
		{
			name:       "annotate",
			command:    func(f cmdutil.Factory) *cobra.Command { return annotate.NewCmdAnnotate(s.Program, f, streams) },
			use:        "annotate [--overwrite] (-f FILENAME | TYPE NAME) KEY_1=VAL_1 ... KEY_N=VAL_N [--resource-version=version]",
			values:     map[string]string{"recursive": "false"},
			namespaced: true,
		},
		{
			name:    "api-resources",
			command: func(f cmdutil.Factory) *cobra.Command { return apiresources.NewCmdAPIResources(f, streams) },
			reach:   reach{scopes: oneMember, cluster: true},
		},
		{
			name:    "api-versions",
			command: func(f cmdutil.Factory) *cobra.Command { return apiresources.NewCmdAPIVersions(f, streams) },
			reach:   reach{scopes: oneMember, cluster: true},
		},
	}
}

func typeAndName(f cmdutil.Factory) cobra.CompletionFunc {
	return completion.ResourceTypeAndNameCompletionFunc(f)
}

// firstOnly completes the first argument, for a command that takes one.
func firstOnly(complete func(cmdutil.Factory) cobra.CompletionFunc) func(cmdutil.Factory) cobra.CompletionFunc {
	return func(f cmdutil.Factory) cobra.CompletionFunc {
		return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return complete(f)(cmd, args, typed)
		}
	}
}
