package explanation

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// OneObject is the Args of commands that are about one object.
func OneObject(_ *cobra.Command, args []string) error {
	const want = "name one object, as in deployment/web or deployment web"
	switch {
	case len(args) == 0:
		return errors.New("no object is given: " + want)
	case len(args) > 2, len(args) == 2 && (strings.Contains(args[0], "/") || strings.Contains(args[1], "/")):
		return errors.New("more than one object is given: " + want)
	case len(args) == 1:
		kind, name, slash := strings.Cut(args[0], "/")
		if !slash || name == "" {
			return fmt.Errorf("%q has no name: %s", args[0], want)
		}
		if kind == "" {
			return fmt.Errorf("%q has no type: %s", args[0], want)
		}
		args = []string{kind, name}
	}
	for _, part := range args {
		if part == "" || strings.Contains(part, ",") || strings.Contains(part, "/") {
			return fmt.Errorf("%q is not one object: %s", strings.Join(args, "/"), want)
		}
	}
	return nil
}

// An Object is one of the control plane that a user has named.
type Object struct {
	*unstructured.Unstructured
	// Resource is where its kind is served.
	Resource schema.GroupVersionResource
	// Client reaches the control plane.
	Client client.Client
}

// ReadObject reads the object that args name, in the words of kubectl when there is
// none.
func ReadObject(f cmdutil.Factory, args []string) (*Object, error) {
	namespace, _, err := f.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	infos, err := f.NewBuilder().Unstructured().NamespaceParam(namespace).DefaultNamespace().
		ResourceTypeOrNameArgs(false, args...).SingleResourceType().Flatten().Do().Infos()
	if err != nil {
		return nil, err
	}
	if len(infos) != 1 {
		return nil, fmt.Errorf("%d objects are called %s: name one", len(infos), strings.Join(args, "/"))
	}
	object, ok := infos[0].Object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("%s is no object but a %T", strings.Join(args, "/"), infos[0].Object)
	}
	cfg, err := f.ToRESTConfig()
	if err != nil {
		return nil, err // says already what is wrong with which kubeconfig
	}
	c, err := NewClient(cfg)
	if err != nil {
		return nil, err
	}
	return &Object{Unstructured: object, Resource: infos[0].Mapping.Resource, Client: c}, nil
}
