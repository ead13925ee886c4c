package kubectl

import (
	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/cmd/annotate"
	"k8s.io/kubectl/pkg/cmd/apiresources"
	"k8s.io/kubectl/pkg/cmd/apply"
	"k8s.io/kubectl/pkg/cmd/create"
	"k8s.io/kubectl/pkg/cmd/delete"
	"k8s.io/kubectl/pkg/cmd/edit"
	"k8s.io/kubectl/pkg/cmd/explain"
	"k8s.io/kubectl/pkg/cmd/get"
	"k8s.io/kubectl/pkg/cmd/label"
	"k8s.io/kubectl/pkg/cmd/patch"
	"k8s.io/kubectl/pkg/util/completion"

	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
)

// A verb is one row of the table: a command of kubectl, and how ours differs.
// An empty text means kubectl's own.
type verb struct {
	name    string
	command func() *cobra.Command
	use     string // spec: cli/commands.md Appendix B
	short   string
	long    string
	example string

	drop       []string          // kubectl's flags that the contract does not have
	rename     map[string]string // kubectl's name of a flag: the contract's
	values     map[string]string // defaults that are not kubectl's
	namespaced bool              // has -n, --namespace
	inherited  bool              // sub-commands have the connection flags too
	reach      reach
	complete   cobra.CompletionFunc // of the arguments
}

// verbs is the table (spec: cli/commands.md 5 and 7).
func (s Set) verbs() []verb {
	f, streams := s.Factory, s.Streams
	oneMember := []factory.Scope{factory.ScopeKarmada, factory.ScopeMembers}
	anyMembers := []factory.Scope{factory.ScopeKarmada, factory.ScopeMembers, factory.ScopeAll}
	typeAndName := completion.ResourceTypeAndNameCompletionFunc(f)

	return []verb{
		{
			name:       "explain",
			command:    func() *cobra.Command { return explain.NewCmdExplain(s.Program, f, streams) },
			use:        "explain TYPE [--recursive=FALSE|TRUE] [--api-version=api-version-group] [--output=plaintext|plaintext-openapiv2]",
			drop:       []string{"max-depth"},
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
			name:       "get",
			command:    func() *cobra.Command { return get.NewCmdGet(s.Program, f, streams) },
			use:        "get [NAME | -l label | -n namespace]",
			short:      "Display one or many resources in the Karmada control plane and member clusters",
			drop:       []string{"chunk-size", "field-selector", "filename", "kustomize", "raw", "recursive", "server-print", "subresource"},
			rename:     map[string]string{"selector": "labels"},
			namespaced: true,
			reach:      reach{scopes: anyMembers, clusters: true},
			complete:   typeAndName,
			long: `
				Display one or many resources of the Karmada control plane.

				Prints a table of the most important information about the specified resources. The list can be
				filtered with a label selector and the --labels flag. For a namespaced resource type only the
				current namespace is shown, unless another is given.

				With --output=go-template and --template a Go template decides what is shown of each object.

				Use "kubectl api-resources" for a complete list of supported resources.`,
			example: `
				# List all deployments in the current namespace
				kubectl get deployments

				# List all deployments in all namespaces, with more columns
				kubectl get deployments -A -o wide

				# List the propagation policies of a namespace
				kubectl get propagationpolicies -n production

				# List the objects with a label
				kubectl get deployments,services -l app=web

				# Show one object as YAML
				kubectl get deployment web -o yaml

				# Return only one field of an object
				kubectl get deployment web -o jsonpath={.status.readyReplicas}

				# Watch the member clusters
				kubectl get clusters --watch`,
		},
		{
			name:       "create",
			command:    func() *cobra.Command { return create.NewCmdCreate(f, streams) },
			use:        "create -f FILENAME",
			namespaced: true,
			inherited:  true,
		},
		{
			name:       "delete",
			command:    func() *cobra.Command { return delete.NewCmdDelete(f, streams) },
			use:        "delete ([-f FILENAME] | [-k DIRECTORY] | TYPE [(NAME | -l label | --all)])",
			namespaced: true,
		},
		{
			name:       "edit",
			command:    func() *cobra.Command { return edit.NewCmdEdit(f, streams) },
			use:        "edit (RESOURCE/NAME | -f FILENAME)",
			namespaced: true,
		},
		{
			name:       "apply",
			command:    func() *cobra.Command { return apply.NewCmdApply(s.Program, f, streams) },
			use:        "apply (-f FILENAME | -k DIRECTORY)",
			namespaced: true,
			reach:      reach{propagate: true},
		},
		{
			name:       "patch",
			command:    func() *cobra.Command { return patch.NewCmdPatch(f, streams) },
			use:        "patch (-f FILENAME | TYPE NAME) [-p PATCH|--patch-file FILE]",
			namespaced: true,
		},
		{
			name:       "label",
			command:    func() *cobra.Command { return label.NewCmdLabel(f, streams) },
			use:        "label [--overwrite] (-f FILENAME | TYPE NAME) KEY_1=VAL_1 ... KEY_N=VAL_N [--resource-version=version]",
			namespaced: true,
		},
		{
			name:       "annotate",
			command:    func() *cobra.Command { return annotate.NewCmdAnnotate(s.Program, f, streams) },
			use:        "annotate [--overwrite] (-f FILENAME | TYPE NAME) KEY_1=VAL_1 ... KEY_N=VAL_N [--resource-version=version]",
			values:     map[string]string{"recursive": "false"},
			namespaced: true,
		},
		{
			name:    "api-resources",
			command: func() *cobra.Command { return apiresources.NewCmdAPIResources(f, streams) },
			reach:   reach{scopes: oneMember, cluster: true},
		},
		{
			name:    "api-versions",
			command: func() *cobra.Command { return apiresources.NewCmdAPIVersions(f, streams) },
			reach:   reach{scopes: oneMember, cluster: true},
		},
	}
}

// firstOnly completes the first argument, for a command that takes one.
func firstOnly(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, typed)
	}
}
