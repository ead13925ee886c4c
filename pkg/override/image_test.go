package override

import (
	"strings"
	"testing"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
)

const (
	registry   = policyv1alpha1.ImageComponentRegistry
	repository = policyv1alpha1.ImageComponentRepository
	tag        = policyv1alpha1.ImageComponentTag

	add     = policyv1alpha1.OverriderOpAdd
	remove  = policyv1alpha1.OverriderOpRemove
	replace = policyv1alpha1.OverriderOpReplace
)

func TestChangeImage(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a1", 32)
	other := "sha256:" + strings.Repeat("b2", 32)

	tests := map[string]struct {
		reason    string
		image     string
		component policyv1alpha1.ImageComponent
		operator  policyv1alpha1.OverriderOperator
		value     string
		want      string
	}{
		// spec: 14.13
		"RegistryToNone":       {"A registry is put where there is none.", "nginx:1.19.0", registry, replace, "fake", "fake/nginx:1.19.0"},
		"RegistryAppended":     {"What is added is appended.", "docker.io/lib/nginx:1", registry, add, ".cn", "docker.io.cn/lib/nginx:1"},
		"NoRegistry":           {"A first segment that is no host is no registry.", "lib/nginx:1", registry, remove, "", "lib/nginx:1"},
		"RepositoryBehindPort": {"A port is no tag.", "reg.io:5000/a/b", repository, replace, "c", "reg.io:5000/c"},
		"RepositoryAppended":   {"What is added is appended.", "reg.io/a", repository, add, "/x", "reg.io/a/x"},
		"TagAppended":          {"What is added is appended.", "nginx:1", tag, add, "-alpine", "nginx:1-alpine"},
		"TagToDigest":          {"A digest replaces a tag.", "nginx:1", tag, replace, digest, "nginx@" + digest},
		"DigestRemoved":        {"A digest goes with the tag that it is.", "nginx@" + digest, tag, remove, "", "nginx"},
		// Where this differs from Karmada: the digest is kept.
		"RegistryKeepsDigest": {
			"A mirror must serve the very image that was pinned.", "nginx:1@" + digest, registry, replace, "r.io", "r.io/nginx:1@" + digest,
		},
		"RepositoryKeepsDigest": {
			"Another repository must serve the very image that was pinned.", "r.io/a:1@" + digest, repository, replace, "b", "r.io/b:1@" + digest,
		},
		"RegistryRemovedKeepsDigest": {"Nothing behind it changes.", "r.io/a@" + digest, registry, remove, "", "a@" + digest},
		"TagReplacesDigestToo":       {"The old digest would pin the old image.", "nginx:1@" + digest, tag, replace, "2", "nginx:2"},
		"TagInPlaceOfDigest":         {"A tag replaces a digest.", "nginx@" + digest, tag, replace, "2", "nginx:2"},
		"DigestReplacesTagToo":       {"The old tag would name another image.", "nginx:1@" + digest, tag, replace, other, "nginx@" + other},
		"Both":                       {"A tag with its digest can be set as it is written.", "nginx:1", tag, replace, "2@" + digest, "nginx:2@" + digest},
		"TagAppendedDropsDigest":     {"The old digest would pin the old image.", "nginx:1@" + digest, tag, add, "-alpine", "nginx:1-alpine"},
		"DigestAppendedToTag":        {"A tag can be pinned.", "nginx:1", tag, add, "@" + digest, "nginx:1@" + digest},
		"BothRemoved":                {"Tag and digest are one component.", "nginx:1@" + digest, tag, remove, "", "nginx"},

		"TagToNone":           {"A tag is put where there is none.", "nginx", tag, replace, "1", "nginx:1"},
		"TagAddedToNone":      {"A tag is put where there is none.", "nginx", tag, add, "1", "nginx:1"},
		"BadTag":              {"A value that can be no tag is ignored.", "nginx:1", tag, replace, "not a tag", "nginx:1"},
		"BadTagFirst":         {"A tag does not begin with a dash.", "nginx", tag, add, "-alpine", "nginx"},
		"LongTag":             {"A tag has at most 128 characters.", "nginx:1", tag, replace, strings.Repeat("x", 129), "nginx:1"},
		"BadDigest":           {"A digest that is too short is none.", "nginx:1", tag, replace, "sha256:abc", "nginx:1"},
		"BadDigestAlgorithm":  {"An algorithm has a name.", "nginx:1", tag, replace, ":" + strings.Repeat("a", 64), "nginx:1"},
		"BadDigestDigits":     {"A digest is hexadecimal.", "nginx:1", tag, replace, "sha256:" + strings.Repeat("x", 64), "nginx:1"},
		"BadHalf":             {"A good tag does not make up for a bad digest.", "nginx:1", tag, replace, "2@latest", "nginx:1"},
		"Algorithm":           {"An algorithm may have parts.", "nginx", tag, replace, "sha512+b64:" + strings.Repeat("a", 64), "nginx@sha512+b64:" + strings.Repeat("a", 64)},
		"NothingSet":          {"An empty tag is none.", "nginx:1", tag, replace, "", "nginx:1"},
		"Localhost":           {"localhost is a registry.", "localhost/a:1", registry, replace, "r.io", "r.io/a:1"},
		"Port":                {"A host with a port is a registry.", "reg:5000/a", registry, remove, "", "a"},
		"PortAndTag":          {"The tag is behind the last slash.", "reg:5000/a:1", tag, replace, "2", "reg:5000/a:2"},
		"RegistryAddedToNone": {"A registry is put where there is none.", "lib/a", registry, add, "r.io", "r.io/lib/a"},
		"OddImage":            {"What is odd stays so.", "a b:{{tag}}", registry, replace, "r.io", "r.io/a b:{{tag}}"},
		"Empty":               {"Nothing can be made of nothing.", "", tag, remove, "", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			i := parseImage(tc.image)
			if got := i.String(); got != tc.image {
				t.Errorf("an image that is taken apart and put together is %q, want %q", got, tc.image)
			}
			if err := i.change(policyv1alpha1.ImageOverrider{Component: tc.component, Operator: tc.operator, Value: tc.value}); err != nil {
				t.Fatal(err)
			}
			if got := i.String(); got != tc.want {
				t.Errorf("%s\n%s %s %q of %q is %q, want %q", tc.reason, tc.component, tc.operator, tc.value, tc.image, got, tc.want)
			}
		})
	}
}

func TestChangeImageUnknown(t *testing.T) {
	for _, o := range []policyv1alpha1.ImageOverrider{
		{Component: "Layer", Operator: replace}, {Component: tag, Operator: "move"}, {Component: registry, Operator: ""},
	} {
		i := parseImage("nginx:1")
		if err := i.change(o); err == nil {
			t.Errorf("%s %q must be an error", o.Component, o.Operator)
		}
	}
}
