package cluster

import (
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// MaxNameLength is how many characters the name of a Cluster may have: names of
// objects that are made for it begin with more (spec: behaviour/09 9.1).
const MaxNameLength = 48

// ValidateName reports what is wrong with the name of a Cluster.
func ValidateName(name string) []string {
	if name == "" {
		return []string{"must be not empty"}
	}
	var problems []string
	if len(name) > MaxNameLength {
		problems = append(problems, "must be no more than 48 characters")
	}
	return append(problems, validation.IsDNS1123Label(name)...)
}

// Validate reports everything that is wrong with a Cluster in canonical form.
func Validate(c *clusterv1alpha1.Cluster) field.ErrorList {
	meta := field.NewPath("metadata")
	if c.Name == "" {
		return append(field.ErrorList{field.Required(meta.Child("name"), ValidateName("")[0])}, validateSpec(&c.Spec, field.NewPath("spec"))...)
	}
	// A name that was generated is complete by now: only the name counts.
	named := c.ObjectMeta
	named.GenerateName = ""
	name := func(name string, _ bool) []string { return ValidateName(name) }
	return append(apivalidation.ValidateObjectMeta(&named, false, name, meta), validateSpec(&c.Spec, field.NewPath("spec"))...)
}

// ValidateUpdate reports everything that is wrong with a changed Cluster.
func ValidateUpdate(c, old *clusterv1alpha1.Cluster) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&c.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, Validate(c)...)
}

func validateSpec(s *clusterv1alpha1.ClusterSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch s.SyncMode {
	case clusterv1alpha1.Push, clusterv1alpha1.Pull:
	case "":
		errs = append(errs, field.Required(path.Child("syncMode"), "must be Push or Pull"))
	default:
		errs = append(errs, field.NotSupported(path.Child("syncMode"), s.SyncMode, []clusterv1alpha1.ClusterSyncMode{clusterv1alpha1.Pull, clusterv1alpha1.Push}))
	}
	if s.APIEndpoint != "" {
		errs = append(errs, validateEndpoint(s.APIEndpoint, path.Child("apiEndpoint"))...)
	}
	if s.ProxyURL != "" {
		errs = append(errs, validateProxy(s.ProxyURL, path.Child("proxyURL"))...)
	}
	errs = append(errs, validateSecretRef(s.SecretRef, path.Child("secretRef"))...)
	errs = append(errs, validateSecretRef(s.ImpersonatorSecretRef, path.Child("impersonatorSecretRef"))...)

	errs = append(errs, validateLabelValue(s.Provider, path.Child("provider"))...)
	errs = append(errs, validateLabelValue(s.Region, path.Child("region"))...)
	errs = append(errs, validateLabelValue(s.Zone, path.Child("zone"))...)
	for i, zone := range s.Zones {
		errs = append(errs, validateLabelValue(zone, path.Child("zones").Index(i))...)
	}
	if s.Zone != "" && len(s.Zones) > 0 {
		errs = append(errs, field.Invalid(path.Child("zone"), s.Zone, "must not be set together with zones: it is deprecated, use zones alone"))
	}
	errs = append(errs, validateTaints(s.Taints, path.Child("taints"))...)
	return append(errs, validateModels(s.ResourceModels, path.Child("resourceModels"))...)
}

// parseURL returns a URL, or what is wrong with it. The text it returns shows no
// password: errors are read by others than secrets are.
func parseURL(text string, path *field.Path) (*url.URL, string, *field.Error) {
	u, err := url.Parse(text)
	if err != nil {
		// The text of the error has the URL in it; its cause does not.
		problem := err.Error()
		if wrapped, ok := err.(*url.Error); ok {
			problem = wrapped.Err.Error()
		}
		shown := text
		if strings.Contains(text, "@") {
			shown = "(not shown: it may hold a password)"
			problem = "cannot be parsed"
		}
		return nil, shown, field.Invalid(path, shown, "malformed URL: "+problem)
	}
	return u, u.Redacted(), nil
}

func validateEndpoint(text string, path *field.Path) field.ErrorList {
	const form = "; desired format: https://host[:port][/path]"
	u, shown, err := parseURL(text, path)
	if err != nil {
		return field.ErrorList{err}
	}
	var errs field.ErrorList
	invalid := func(problem string) { errs = append(errs, field.Invalid(path, shown, problem+form)) }
	if u.Scheme != "https" && u.Scheme != "http" {
		invalid("must begin with https:// or http://")
	} else if u.Hostname() == "" {
		invalid("host must be specified")
	}
	if u.User != nil {
		invalid("user information is not permitted in the URL")
	}
	if u.Fragment != "" {
		invalid("fragments are not permitted in the URL")
	}
	if u.RawQuery != "" || u.ForceQuery {
		invalid("query parameters are not permitted in the URL")
	}
	return errs
}

func validateProxy(text string, path *field.Path) field.ErrorList {
	u, shown, err := parseURL(text, path)
	if err != nil {
		return field.ErrorList{err}
	}
	switch u.Scheme {
	case "http", "https", "socks5":
	default:
		return field.ErrorList{field.Invalid(path, shown, `unsupported scheme "`+u.Scheme+`", must be http, https, or socks5`)}
	}
	if u.Hostname() == "" {
		return field.ErrorList{field.Invalid(path, shown, "host must be specified")}
	}
	return nil
}

func validateSecretRef(ref *clusterv1alpha1.LocalSecretReference, path *field.Path) field.ErrorList {
	if ref == nil {
		return nil
	}
	var errs field.ErrorList
	if ref.Namespace == "" {
		errs = append(errs, field.Required(path.Child("namespace"), "names the namespace of the Secret"))
	}
	if ref.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "names the Secret"))
	}
	return errs
}

func validateLabelValue(value string, path *field.Path) field.ErrorList {
	return invalidEach(value, path, validation.IsValidLabelValue(value))
}

func invalidEach(value string, path *field.Path, problems []string) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range problems {
		errs = append(errs, field.Invalid(path, value, problem))
	}
	return errs
}

func validateTaints(taints []corev1.Taint, path *field.Path) field.ErrorList {
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, t := range taints {
		path := path.Index(i)
		if t.Key == "" {
			errs = append(errs, field.Required(path.Child("key"), "names the taint"))
		} else {
			errs = append(errs, metav1validation.ValidateLabelName(t.Key, path.Child("key"))...)
		}
		errs = append(errs, validateLabelValue(t.Value, path.Child("value"))...)
		switch {
		case t.Effect == "":
			errs = append(errs, field.Required(path.Child("effect"), "must be NoSchedule, PreferNoSchedule or NoExecute"))
		case !slices.Contains(effects, t.Effect):
			errs = append(errs, field.NotSupported(path.Child("effect"), t.Effect, effects))
		}
		id := t.Key + ":" + string(t.Effect)
		if seen.Has(id) {
			errs = append(errs, field.Duplicate(path, id))
		}
		seen.Insert(id)
	}
	return errs
}

// validateModels checks that models cover every size of node once.
func validateModels(models []clusterv1alpha1.ResourceModel, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	grades := sets.New[int32]()
	for i, m := range models {
		path := path.Index(i)
		if grades.Has(m.Grade) {
			errs = append(errs, field.Duplicate(path.Child("grade"), m.Grade))
		}
		grades.Insert(m.Grade)
		names := sets.New[corev1.ResourceName]()
		for j, r := range m.Ranges {
			path := path.Child("ranges").Index(j)
			if names.Has(r.Name) {
				errs = append(errs, field.Duplicate(path.Child("name"), r.Name))
			}
			names.Insert(r.Name)
			if r.Max.Cmp(r.Min) <= 0 {
				errs = append(errs, field.Invalid(path.Child("max"), r.Max.String(), "must be greater than min"))
			}
			if i == 0 && !r.Min.IsZero() {
				errs = append(errs, field.Invalid(path.Child("min"), r.Min.String(), "must be 0 in the first model"))
			}
			if i == len(models)-1 && !isTop(r.Max) {
				errs = append(errs, field.Invalid(path.Child("max"), r.Max.String(), "must be 9223372036854775807 in the last model"))
			}
		}
		if i > 0 {
			errs = append(errs, validateNeighbours(models[i-1].Ranges, m.Ranges, path.Child("ranges"))...)
		}
	}
	return errs
}

func validateNeighbours(below, ranges []clusterv1alpha1.ResourceModelRange, path *field.Path) field.ErrorList {
	if len(below) != len(ranges) {
		return field.ErrorList{field.Invalid(path, len(ranges), "must have the same resources as the other models")}
	}
	var errs field.ErrorList
	for j, r := range ranges {
		switch path := path.Index(j); {
		case below[j].Name != r.Name:
			errs = append(errs, field.Invalid(path.Child("name"), r.Name, "must have the same resources in the same order as the other models"))
		case below[j].Max.Cmp(r.Min) != 0:
			errs = append(errs, field.Invalid(path.Child("min"), r.Min.String(), "Model intervals for resources must be contiguous and non-overlapping"))
		}
	}
	return errs
}
