package override

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
)

// overrideImages changes images: the one that a predicate leads to, or those of
// all containers (spec: behaviour/07 7.3). Init containers need a predicate.
func overrideImages(obj *unstructured.Unstructured, overriders []policyv1alpha1.ImageOverrider) *failure {
	if f := eachImage(obj, overriders, (*image).change); f != nil {
		return f
	}
	// What is removed may be added again: only the end of it all counts.
	return eachImage(obj, overriders, func(i *image, o policyv1alpha1.ImageOverrider) error {
		if o.Component == policyv1alpha1.ImageComponentRepository && i.repository == "" {
			return errors.New("an image needs a repository")
		}
		return nil
	})
}

// eachImage does something with every image that overriders are for.
func eachImage(
	obj *unstructured.Unstructured, overriders []policyv1alpha1.ImageOverrider, do func(*image, policyv1alpha1.ImageOverrider) error,
) *failure {
	for i, o := range overriders {
		if o.Predicate != nil {
			if err := withImage(obj.Object, o.Predicate.Path, o, do); err != nil {
				return failed("imageOverrider", i, o.Predicate.Path, err)
			}
			continue
		}
		for _, c := range containersOf(obj, "containers") {
			if s, _ := c.fields["image"].(string); s == "" {
				continue
			}
			if err := withImage(c.fields, "/image", o, do); err != nil {
				return failed("imageOverrider", i, c.path+"/image", err)
			}
		}
	}
	return nil
}

// withImage does something with the image that a JSON pointer leads to.
func withImage(
	in map[string]any, pointer string, o policyv1alpha1.ImageOverrider, do func(*image, policyv1alpha1.ImageOverrider) error,
) error {
	f, err := stringAt(in, pointer)
	if err != nil {
		return err
	}
	i := parseImage(f.value)
	before := i
	if err := do(&i, o); err != nil {
		return err
	}
	if i != before {
		f.set(i.String())
	}
	return nil
}

// An image is a reference to one, in its parts.
type image struct {
	registry, repository, tag, digest string
}

// parseImage takes [registry/]repository[:tag][@digest] apart. The first
// segment is a registry only when it looks like a host (spec: behaviour/07 7.3).
func parseImage(s string) image {
	var i image
	s, i.digest, _ = strings.Cut(s, "@")
	if first, rest, ok := strings.Cut(s, "/"); ok && (strings.ContainsAny(first, ".:") || first == "localhost") {
		i.registry, s = first, rest
	}
	i.repository = s
	if colon := strings.LastIndexByte(s, ':'); colon > strings.LastIndexByte(s, '/') {
		i.repository, i.tag = s[:colon], s[colon+1:]
	}
	return i
}

// String puts the parts together again.
func (i image) String() string {
	s := i.repository
	if i.registry != "" {
		s = i.registry + "/" + s
	}
	if i.tag != "" {
		s += ":" + i.tag
	}
	if i.digest != "" {
		s += "@" + i.digest
	}
	return s
}

// change changes one component. Tag and digest stay together whatever is
// changed in front of them, and are replaced together: a digest that stayed
// would pin the image that the old tag meant.
func (i *image) change(o policyv1alpha1.ImageOverrider) error {
	switch o.Component {
	case policyv1alpha1.ImageComponentRegistry:
		return changePart(&i.registry, o)
	case policyv1alpha1.ImageComponentRepository:
		return changePart(&i.repository, o)
	case policyv1alpha1.ImageComponentTag:
		return i.changeVersion(o)
	default:
		return fmt.Errorf("unsupported component %q", o.Component)
	}
}

func changePart(part *string, o policyv1alpha1.ImageOverrider) error {
	switch o.Operator {
	case policyv1alpha1.OverriderOpAdd:
		*part += o.Value
	case policyv1alpha1.OverriderOpReplace:
		*part = o.Value
	case policyv1alpha1.OverriderOpRemove:
		*part = ""
	default:
		return unknownOperator(o.Operator)
	}
	return nil
}

// changeVersion changes what is behind the repository. A value that makes
// neither a tag nor a digest is ignored (spec: behaviour/07 7.3).
func (i *image) changeVersion(o policyv1alpha1.ImageOverrider) error {
	version := i.tag
	if version == "" {
		version = i.digest
	}
	if err := changePart(&version, o); err != nil {
		return err
	}
	if o.Operator == policyv1alpha1.OverriderOpRemove {
		i.tag, i.digest = "", ""
		return nil
	}
	if tag, digest, ok := parseVersion(version); ok {
		i.tag, i.digest = tag, digest
	}
	return nil
}

// parseVersion takes apart a tag, a digest, or both with an @ in between.
func parseVersion(s string) (tag, digest string, ok bool) {
	if isDigest(s) {
		return "", s, true
	}
	tag, digest, both := strings.Cut(s, "@")
	return tag, digest, isTag(tag) && (!both || isDigest(digest))
}

// isTag says whether s is what registries take for a tag: at most 128 letters,
// digits, underscores, dots and dashes, not one of the last two first.
func isTag(s string) bool {
	if s == "" || len(s) > 128 || s[0] == '.' || s[0] == '-' {
		return false
	}
	for _, c := range []byte(s) {
		if !isLetter(c) && !isDigit(c) && c != '_' && c != '.' && c != '-' {
			return false
		}
	}
	return true
}

// isDigest says whether s is an algorithm and at least 32 hexadecimal digits.
func isDigest(s string) bool {
	algorithm, hex, ok := strings.Cut(s, ":")
	if !ok || len(hex) < 32 {
		return false
	}
	for _, c := range []byte(hex) {
		if !isDigit(c) && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	for word := range strings.FieldsFuncSeq(algorithm, func(r rune) bool { return strings.ContainsRune("-_+.", r) }) {
		for at, c := range []byte(word) {
			if !isLetter(c) && (at == 0 || !isDigit(c)) {
				return false
			}
		}
	}
	return algorithm != ""
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
