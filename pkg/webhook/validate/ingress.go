package validate

import (
	"net"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	networkingv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/networking/v1alpha1"
)

// ingressClassAnnotation is what there was before ingressClassName.
const ingressClassAnnotation = "kubernetes.io/ingress.class"

// ingresses are the rules of an Ingress of networking.k8s.io/v1 (spec:
// behaviour/08 8.3).
func ingresses() rules[networkingv1alpha1.MultiClusterIngress] {
	type ingress = networkingv1alpha1.MultiClusterIngress
	r := plain(func(i *ingress) any { return i.Spec }, func(i *ingress) field.ErrorList { return ingressSpec(&i.Spec, field.NewPath("spec")) })
	r.change = func(was, now *ingress) field.ErrorList {
		class, old := now.Annotations[ingressClassAnnotation]
		if was == nil && old && now.Spec.IngressClassName != nil {
			return field.ErrorList{field.Invalid(field.NewPath("metadata", "annotations").Key(ingressClassAnnotation), class,
				"can not be set when the class field is also set")}
		}
		return nil
	}
	return r
}

func ingressSpec(s *networkingv1.IngressSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(s.Rules) == 0 && s.DefaultBackend == nil {
		errs = append(errs, field.Required(path, "either `defaultBackend` or `rules` must be specified"))
	}
	if s.DefaultBackend != nil {
		errs = append(errs, ingressBackend(s.DefaultBackend, path.Child("defaultBackend"))...)
	}
	for i, r := range s.Rules {
		path := path.Child("rules").Index(i)
		if r.Host != "" {
			errs = append(errs, dnsName(r.Host, true, path.Child("host"))...)
		}
		if r.HTTP == nil {
			continue
		}
		path = path.Child("http", "paths")
		if len(r.HTTP.Paths) == 0 {
			errs = append(errs, field.Required(path, ""))
		}
		for j := range r.HTTP.Paths {
			errs = append(errs, ingressPath(&r.HTTP.Paths[j], path.Index(j))...)
		}
	}
	for i, t := range s.TLS {
		path := path.Child("tls").Index(i)
		for j, host := range t.Hosts {
			errs = append(errs, dnsName(host, true, path.Child("hosts").Index(j))...)
		}
		if t.SecretName != "" {
			errs = append(errs, invalid(path.Child("secretName"), t.SecretName, validation.IsDNS1123Subdomain(t.SecretName))...)
		}
	}
	if c := s.IngressClassName; c != nil {
		errs = append(errs, invalid(path.Child("ingressClassName"), *c, validation.IsDNS1123Subdomain(*c))...)
	}
	return errs
}

// dnsName checks the name of a host. A wildcard is a first label of "*".
func dnsName(host string, wildcard bool, path *field.Path) field.ErrorList {
	if net.ParseIP(host) != nil {
		return field.ErrorList{field.Invalid(path, host, "must be a DNS name, not an IP address")}
	}
	if wildcard && strings.Contains(host, "*") {
		return invalid(path, host, validation.IsWildcardDNS1123Subdomain(host))
	}
	return invalid(path, host, validation.IsDNS1123Subdomain(host))
}

func ingressPath(p *networkingv1.HTTPIngressPath, path *field.Path) field.ErrorList {
	types := []networkingv1.PathType{networkingv1.PathTypeExact, networkingv1.PathTypePrefix, networkingv1.PathTypeImplementationSpecific}
	var errs field.ErrorList
	const absolute = "must be an absolute path"
	switch {
	case p.PathType == nil:
		errs = append(errs, field.Required(path.Child("pathType"), "pathType must be specified"))
	case *p.PathType == networkingv1.PathTypeExact || *p.PathType == networkingv1.PathTypePrefix:
		if !strings.HasPrefix(p.Path, "/") {
			errs = append(errs, field.Invalid(path.Child("path"), p.Path, absolute))
		}
		// Servers disagree on what these mean.
		for _, s := range []string{"//", "/./", "/../", "%2f", "%2F"} {
			if strings.Contains(p.Path, s) {
				errs = append(errs, field.Invalid(path.Child("path"), p.Path, "must not contain '"+s+"'"))
			}
		}
		for _, s := range []string{"/..", "/."} {
			if strings.HasSuffix(p.Path, s) {
				errs = append(errs, field.Invalid(path.Child("path"), p.Path, "cannot end with '"+s+"'"))
			}
		}
	case *p.PathType == networkingv1.PathTypeImplementationSpecific:
		if p.Path != "" && !strings.HasPrefix(p.Path, "/") {
			errs = append(errs, field.Invalid(path.Child("path"), p.Path, absolute))
		}
	default:
		errs = append(errs, field.NotSupported(path.Child("pathType"), *p.PathType, types))
	}
	return append(errs, ingressBackend(&p.Backend, path.Child("backend"))...)
}

func ingressBackend(b *networkingv1.IngressBackend, path *field.Path) field.ErrorList {
	switch {
	case b.Resource != nil && b.Service != nil:
		return field.ErrorList{field.Invalid(path, "", "cannot set both resource and service backends")}
	case b.Resource != nil:
		errs := segment(b.Resource.Kind, path.Child("resource", "kind"))
		return append(errs, segment(b.Resource.Name, path.Child("resource", "name"))...)
	case b.Service == nil:
		return field.ErrorList{field.Required(path, "resource or service backend is required")}
	}
	path = path.Child("service")
	var errs field.ErrorList
	if name := b.Service.Name; name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	} else {
		errs = append(errs, invalid(path.Child("name"), name, validation.IsDNS1035Label(name))...)
	}
	switch port, path := b.Service.Port, path.Child("port"); {
	case port.Name != "" && port.Number != 0:
		errs = append(errs, field.Invalid(path, port.Name, "cannot set both port name & port number"))
	case port.Name != "":
		errs = append(errs, invalid(path.Child("name"), port.Name, validation.IsValidPortName(port.Name))...)
	case port.Number != 0:
		for _, problem := range validation.IsValidPortNum(int(port.Number)) {
			errs = append(errs, field.Invalid(path.Child("number"), port.Number, problem))
		}
	default:
		errs = append(errs, field.Required(path, "port name or number is required"))
	}
	return errs
}

// segment checks what has to be there and becomes a part of a URL.
func segment(s string, at *field.Path) field.ErrorList {
	if s == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	return invalid(at, s, path.IsValidPathSegmentName(s))
}
