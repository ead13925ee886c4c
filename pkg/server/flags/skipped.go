package flags

import (
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/karmadactl/karmadactl/pkg/exempt"
)

// Skipped is what is not propagated, besides what never is.
type Skipped struct {
	APIs       string
	Namespaces []string
}

// NewSkipped returns the defaults.
func NewSkipped() Skipped {
	return Skipped{Namespaces: []string{"kube-.*"}}
}

// AddFlags registers the flags.
func (s *Skipped) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&s.APIs, "skipped-propagating-apis", s.APIs, "APIs not to propagate, separated by semicolons, in addition to those of the control plane itself, events and leases. <group> skips a whole group (e.g. networking.k8s.io), <group>/<version> a version of it (e.g. networking.k8s.io/v1beta1), <group>/<version>/<kind>,<kind> some of its kinds (e.g. networking.k8s.io/v1beta1/Ingress,IngressClass), v1/<kind>,<kind> kinds of the core group.")
	fs.StringSliceVar(&s.Namespaces, "skipped-propagating-namespaces", s.Namespaces, "Regular expressions for the whole names of namespaces in which nothing is propagated, and which are not propagated by themselves either. karmada-system, karmada-cluster and karmada-es-* are always skipped.")
}

// Validate reports what cannot be parsed.
func (s *Skipped) Validate() field.ErrorList {
	_, _, errs := s.Parse()
	return errs
}

// Parse returns what the flags say.
func (s *Skipped) Parse() (exempt.APIs, exempt.Namespaces, field.ErrorList) {
	var errs field.ErrorList
	apis, err := exempt.ParseAPIs(s.APIs)
	if err != nil {
		errs = append(errs, field.Invalid(Path("skipped-propagating-apis"), s.APIs, oneLine(err)))
	}
	namespaces, err := exempt.ParseNamespaces(s.Namespaces)
	if err != nil {
		errs = append(errs, field.Invalid(Path("skipped-propagating-namespaces"), strings.Join(s.Namespaces, ","), oneLine(err)))
	}
	return apis, namespaces, errs
}

func oneLine(err error) string {
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}
