package convert

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
)

// Annotation holds, on a v1alpha1 binding, what v1alpha1 has no fields for: JSON, or compressed if that is long. It is
// never stored, and is not part of Karmada's API.
const Annotation = "binding.karmadactl.io/v1alpha2"

const (
	// compressFrom is the length from which on what is carried is compressed: an object has room for 256 KiB of
	// annotations altogether, and a binding that many others refer to has more than that to carry.
	compressFrom = 32 << 10
	// compressed begins a value that is.
	compressed = "gzip:"
	// longest is what a value may become when it is read: twice what an API server stores of an object.
	longest = 3 << 20
)

// ErrIncomplete says that a v1alpha1 object cannot be written, because not everything that it lacks could travel with it.
var ErrIncomplete = errors.New("it has more than v1alpha1 can carry: read and write it as v1alpha2")

// rest is what v1alpha1 has no fields for.
type rest struct {
	Spec fields `json:"spec,omitempty"`
	// Resource is the rest of the reference to the template, which is the one that Of names.
	Resource         fields `json:"resource,omitempty"`
	Of               fields `json:"of,omitempty"`
	Clusters         []item `json:"clusters,omitempty"`
	Status           fields `json:"status,omitempty"`
	AggregatedStatus []item `json:"aggregatedStatus,omitempty"`

	// Incomplete says that all of the above was too much.
	Incomplete bool `json:"incomplete,omitempty"`
}

func (r rest) empty() bool {
	return len(r.Spec)+len(r.Resource)+len(r.Clusters)+len(r.Status)+len(r.AggregatedStatus) == 0 && !r.Incomplete
}

// identity is what of an object is the same in every version.
type identity struct {
	version, kind, namespace, name string
	metadata                       fields
	annotations                    map[string]string
}

func identify(o fields) (identity, error) {
	var is identity
	metadata, err := o.object("metadata")
	if err != nil {
		return identity{}, err
	}
	is.metadata = metadata.without()
	for _, part := range []struct {
		from fields
		name string
		into any
	}{
		{o, "apiVersion", &is.version},
		{o, "kind", &is.kind},
		{metadata, "namespace", &is.namespace},
		{metadata, "name", &is.name},
		{metadata, "annotations", &is.annotations},
	} {
		raw, ok := part.from[part.name]
		if !ok {
			continue
		}
		if err := json.Unmarshal(raw, part.into); err != nil {
			return identity{}, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return is, nil
}

// String says which object it is, for people.
func (is identity) String() string {
	if is.namespace == "" {
		return is.kind + " " + is.name
	}
	return is.kind + " " + is.namespace + "/" + is.name
}

// carry puts what does not fit into v1alpha1 into the annotation.
func (is *identity) carry(r rest) error {
	delete(is.annotations, Annotation) // of nobody who knows what it is for
	if r.empty() {
		return nil
	}
	room := apivalidation.TotalAnnotationSizeLimitB - len(Annotation)
	for name, value := range is.annotations {
		room -= len(name) + len(value)
	}
	text, err := r.encode()
	if err == nil && len(text) > room {
		// Reading goes on; what would be lost by writing is refused then.
		text, err = rest{Incomplete: true}.encode()
	}
	if err != nil {
		return fmt.Errorf("write what v1alpha1 has no fields for: %w", err)
	}
	if len(text) > room {
		return fmt.Errorf("its annotations leave no room for %s, and an object has room for %d bytes of them", Annotation, apivalidation.TotalAnnotationSizeLimitB)
	}
	if is.annotations == nil {
		is.annotations = map[string]string{}
	}
	is.annotations[Annotation] = text
	return nil
}

// carried takes what has travelled out of the annotation.
func (is *identity) carried() (rest, error) {
	text, ok := is.annotations[Annotation]
	if !ok {
		return rest{}, nil
	}
	delete(is.annotations, Annotation)
	r, err := decode(text)
	if err != nil {
		return rest{}, fmt.Errorf("read the annotation %s, which is to be left as it was read, or left out: %w", Annotation, err)
	}
	if r.Incomplete {
		return rest{}, ErrIncomplete
	}
	return r, nil
}

// write returns the object, in this version and with these annotations.
func (is identity) write(o fields, version string) ([]byte, error) {
	if len(is.annotations) > 0 {
		if err := is.metadata.put("annotations", is.annotations); err != nil {
			return nil, err
		}
	} else {
		delete(is.metadata, "annotations")
	}
	if err := o.put("metadata", is.metadata); err != nil {
		return nil, err
	}
	if err := o.put("apiVersion", version); err != nil {
		return nil, err
	}
	return json.Marshal(o)
}

func (r rest) encode() (string, error) {
	data, err := json.Marshal(r)
	if err != nil || len(data) < compressFrom {
		return string(data), err
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	return compressed + base64.StdEncoding.EncodeToString(b.Bytes()), nil
}

func decode(text string) (rest, error) {
	data := []byte(text)
	if packed, ok := strings.CutPrefix(text, compressed); ok {
		r, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(packed)))
		if err != nil {
			return rest{}, err
		}
		if data, err = io.ReadAll(io.LimitReader(r, longest+1)); err != nil {
			return rest{}, err
		}
	}
	if len(data) > longest {
		return rest{}, fmt.Errorf("it is longer than %d bytes", longest)
	}
	var r rest
	err := json.Unmarshal(data, &r)
	return r, err
}
