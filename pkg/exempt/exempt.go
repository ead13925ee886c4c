// Package exempt says what is never propagated to member clusters: whole APIs,
// and whole namespaces. Every stage that looks at templates asks it, and the
// flags --skipped-propagating-apis and --skipped-propagating-namespaces add to
// what it knows (spec: behaviour/01 1.1, 1.2).
package exempt

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/karmadactl/karmadactl/pkg/names"
)

// APIs is a set of API groups, versions and kinds that are not propagated. The
// zero value exempts what is always exempt, and nothing else.
type APIs struct {
	groups   map[string]bool
	versions map[schema.GroupVersion]bool
	kinds    map[schema.GroupVersionKind]bool // kinds in lower case
}

// ParseAPIs reads a list of APIs separated by semicolons, each of them one of
//
//	<group>
//	<group>/<version>
//	<group>/<version>/<Kind>[,<Kind>...]
//	v1/<Kind>[,<Kind>...]
//
// where the last means kinds of the core group. Kinds may be in any case. All
// entries that do not have such a form are reported.
func ParseAPIs(list string) (APIs, error) {
	a := APIs{
		groups:   map[string]bool{},
		versions: map[schema.GroupVersion]bool{},
		kinds:    map[schema.GroupVersionKind]bool{},
	}
	var errs []error
	for entry := range strings.SplitSeq(list, ";") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		if err := a.add(entry); err != nil {
			errs = append(errs, fmt.Errorf("%q: %w", entry, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return APIs{}, err
	}
	return a, nil
}

func (a APIs) add(entry string) error {
	switch part := strings.Split(entry, "/"); len(part) {
	case 1:
		if err := validGroup(part[0]); err != nil {
			return err
		}
		a.groups[part[0]] = true
		return nil
	case 2:
		if part[0] == "v1" {
			return a.addKinds(schema.GroupVersion{Version: "v1"}, part[1])
		}
		gv := schema.GroupVersion{Group: part[0], Version: part[1]}
		if err := validGroupVersion(gv); err != nil {
			return err
		}
		a.versions[gv] = true
		return nil
	case 3:
		gv := schema.GroupVersion{Group: part[0], Version: part[1]}
		if err := validGroupVersion(gv); err != nil {
			return err
		}
		return a.addKinds(gv, part[2])
	default:
		return errors.New("too many slashes: write <group>, <group>/<version> or <group>/<version>/<Kind>[,<Kind>...]")
	}
}

func (a APIs) addKinds(gv schema.GroupVersion, list string) error {
	for kind := range strings.SplitSeq(list, ",") {
		kind = strings.ToLower(strings.TrimSpace(kind))
		if problems := validation.IsDNS1035Label(kind); len(problems) > 0 {
			return fmt.Errorf("kind %q: %s", kind, problems[0])
		}
		a.kinds[gv.WithKind(kind)] = true
	}
	return nil
}

func validGroup(group string) error {
	if problems := validation.IsDNS1123Subdomain(group); len(problems) > 0 {
		return fmt.Errorf("group %q: %s", group, problems[0])
	}
	return nil
}

func validGroupVersion(gv schema.GroupVersion) error {
	if err := validGroup(gv.Group); err != nil {
		return err
	}
	if problems := validation.IsDNS1035Label(gv.Version); len(problems) > 0 {
		return fmt.Errorf("version %q: %s", gv.Version, problems[0])
	}
	return nil
}

// Has says whether objects of a kind are exempt, by default or by what was
// parsed.
func (a APIs) Has(gvk schema.GroupVersionKind) bool {
	return alwaysExempt(gvk) ||
		a.groups[gvk.Group] ||
		a.versions[gvk.GroupVersion()] ||
		a.kinds[gvk.GroupVersion().WithKind(strings.ToLower(gvk.Kind))]
}

// alwaysExempt is the list that no flag can shorten: our own machinery, and
// what the API server writes by itself all the time. The groups
// search.karmada.io and multicluster.x-k8s.io are propagated.
func alwaysExempt(gvk schema.GroupVersionKind) bool {
	switch gvk.Group {
	case "cluster.karmada.io", "policy.karmada.io", "work.karmada.io", "config.karmada.io",
		"networking.karmada.io", "autoscaling.karmada.io", "remedy.karmada.io", "apps.karmada.io",
		"events.k8s.io":
		return true
	case "coordination.k8s.io":
		return gvk.Version == "v1"
	case "":
		return gvk.Version == "v1" && gvk.Kind == "Event"
	default:
		return false
	}
}

// Namespaces is a set of namespaces that are not propagated, nor is anything in
// them. The zero value exempts the reserved ones, and nothing else.
type Namespaces struct {
	patterns []*regexp.Regexp
}

// ParseNamespaces reads regular expressions that must each match the whole of a
// namespace's name. All that do not compile are reported.
func ParseNamespaces(patterns []string) (Namespaces, error) {
	var (
		n    Namespaces
		errs []error
	)
	for _, p := range patterns {
		re, err := regexp.Compile("^(?:" + p + ")$")
		if err != nil {
			errs = append(errs, fmt.Errorf("%q: %w", p, err))
			continue
		}
		n.patterns = append(n.patterns, re)
	}
	if err := errors.Join(errs...); err != nil {
		return Namespaces{}, err
	}
	return n, nil
}

// Has says whether a namespace is exempt. The empty name, which stands for what
// is in no namespace, never is.
func (n Namespaces) Has(namespace string) bool {
	if namespace == "" {
		return false
	}
	if names.IsReservedNamespace(namespace) {
		return true
	}
	for _, re := range n.patterns {
		if re.MatchString(namespace) {
			return true
		}
	}
	return false
}
