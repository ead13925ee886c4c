package register

import (
	"context"
	"fmt"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/karmadactl/karmadactl/pkg/cmd/host"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

// preview prints what would be made where, and makes nothing.
func (o *Options) preview(ctx context.Context) error {
	changes, cluster, err := registration.PreviewPull(ctx, o.Member, o.entry())
	if err != nil {
		return o.Explain(err)
	}
	request, err := o.request()
	if err != nil {
		return err
	}
	objects := []sided{{"control plane, by this command", request}}
	for _, c := range changes {
		if c.Action != registration.Keep {
			objects = append(objects, sided{fmt.Sprintf("cluster, by the agent (%s)", c.Action), c.Object})
		}
	}
	for _, secret := range o.secrets() {
		objects = append(objects, sided{"control plane, by the agent, with the tokens in it", secret})
	}
	objects = append(objects, sided{"control plane, by the agent", cluster})
	rights, err := registration.AgentRightsNames(o.Config.Cluster)
	if err != nil {
		return err
	}

	karmada, err := host.FindKarmada()
	if err != nil {
		karmada = "karmada" // it is only shown
	}
	var out strings.Builder
	fmt.Fprintf(&out, "# directory %s:\n# agent.yaml karmada-agent.conf member.conf pki/ca.crt pki/agent.pem\n", o.Layout.Dir)
	fmt.Fprintf(&out, "# agent: %s\n", shellQuoted(append([]string{karmada}, o.Config.Args(o.Layout)...)))
	fmt.Fprintf(&out, "# access rules of the agent, made by the control plane when it approves the certificate:\n# %s\n", strings.Join(rights, "\n# "))
	scheme, err := registration.NewScheme()
	if err != nil {
		return err
	}
	if err := certificatesv1.AddToScheme(scheme); err != nil {
		return fmt.Errorf("register API types: %w", err)
	}
	for _, s := range objects {
		data, err := encode(scheme, s.object)
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "---\n# %s\n%s", s.side, data)
	}
	_, err = fmt.Fprint(o.Out, out.String())
	return err
}

// secrets are those by which the control plane gets to know the cluster's tokens.
func (o *Options) secrets() []*corev1.Secret {
	var secrets []*corev1.Secret
	for _, name := range []string{names.ImpersonatorSecret(o.Config.Cluster), o.Config.Cluster} {
		secrets = append(secrets, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Config.Namespace, Name: name, Labels: map[string]string{names.SystemLabel: names.True},
		}})
	}
	return secrets
}

// sided is an object and where it would be made, by whom.
type sided struct {
	side   string
	object runtime.Object
}

// request is the one for the agent's certificate, without what depends on its key.
func (o *Options) request() (*certificatesv1.CertificateSigningRequest, error) {
	key, err := registration.NewKey()
	if err != nil {
		return nil, err
	}
	r, err := registration.AgentCertificateRequest(o.Config.Cluster, key, o.Enrolment.Validity)
	if err != nil {
		return nil, err
	}
	object, err := r.Object()
	if err != nil {
		return nil, err
	}
	object.Name, object.GenerateName, object.Spec.Request = "", o.Config.Cluster+"-", nil
	return object, nil
}

// encode writes an object as YAML, without what only a server says about it and without secrets.
func encode(scheme *runtime.Scheme, object runtime.Object) ([]byte, error) {
	gvk, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return nil, fmt.Errorf("encode a %T: %w", object, err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("encode a %s: %w", gvk.Kind, err)
	}
	content["apiVersion"], content["kind"] = gvk.GroupVersion().String(), gvk.Kind
	delete(content, "status")
	if gvk.GroupKind() == (schema.GroupKind{Kind: "Secret"}) {
		delete(content, "data")
	}
	if spec, ok := content["spec"].(map[string]any); ok && spec["request"] == nil {
		delete(spec, "request") // it comes from a key that is made then
	}
	if meta, ok := content["metadata"].(map[string]any); ok {
		for _, field := range []string{"creationTimestamp", "managedFields", "resourceVersion", "uid", "generation"} {
			delete(meta, field)
		}
	}
	data, err := yaml.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encode a %s: %w", gvk.Kind, err)
	}
	return data, nil
}
