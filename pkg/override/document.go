package override

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	goyaml "go.yaml.in/yaml/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
)

// An operation is one of a JSON patch (RFC 6902).
type operation struct {
	Op   policyv1alpha1.OverriderOperator `json:"op"`
	Path string                           `json:"path"`
	// Value is not there for remove, and null when an overrider that needs one
	// has none.
	Value *apiextensionsv1.JSON `json:"value,omitempty"`
}

func newOperation(o policyv1alpha1.OverriderOperator, path string, value apiextensionsv1.JSON) operation {
	op := operation{Op: o, Path: path}
	if o != policyv1alpha1.OverriderOpRemove {
		op.Value = &value
	}
	return op
}

// An operationError is an operation that cannot be carried out.
type operationError struct {
	index int
	path  string
	err   error
}

func (e *operationError) Error() string { return e.err.Error() }

func (e *operationError) Unwrap() error { return e.err }

// patch applies operations to a JSON text, all or none. What they leave alone
// keeps its order, and its numbers their spelling. The error is an
// *operationError where it is one operation's.
func patch(text []byte, ops []operation) ([]byte, error) {
	for i, op := range ops {
		switch op.Op {
		case policyv1alpha1.OverriderOpAdd, policyv1alpha1.OverriderOpRemove, policyv1alpha1.OverriderOpReplace:
		default:
			return nil, &operationError{index: i, path: op.Path, err: unknownOperator(op.Op)}
		}
		if op.Path != "" && op.Path[0] != '/' {
			return nil, &operationError{index: i, path: op.Path, err: errNoPointer()}
		}
	}
	result, err := applyPatch(text, ops)
	if err == nil {
		return result, nil
	}
	// The library does not say which one: the first that fails after those before it.
	for i := range ops {
		if _, first := applyPatch(text, ops[:i+1]); first != nil {
			return nil, &operationError{index: i, path: ops[i].Path, err: explain(ops[i], first)}
		}
	}
	return nil, err
}

func applyPatch(text []byte, ops []operation) ([]byte, error) {
	var encoded bytes.Buffer
	e := json.NewEncoder(&encoded)
	e.SetEscapeHTML(false)
	if err := e.Encode(ops); err != nil {
		return nil, fmt.Errorf("write the patch: %w", err)
	}
	decoded, err := jsonpatch.DecodePatch(encoded.Bytes())
	if err != nil {
		return nil, err
	}
	options := jsonpatch.NewApplyOptions()
	options.EscapeHTML = false
	return decoded.ApplyWithOptions(text, options)
}

// explain says what is wrong in the words of whoever wrote the policy.
func explain(op operation, err error) error {
	switch {
	case errors.Is(err, jsonpatch.ErrMissing) && op.Op == policyv1alpha1.OverriderOpAdd:
		return errors.New("what it is to be added to is not there")
	case errors.Is(err, jsonpatch.ErrMissing):
		return fmt.Errorf("there is nothing there to %s", op.Op)
	case errors.Is(err, jsonpatch.ErrInvalidIndex):
		return errors.New("the list has no such place")
	default:
		return err
	}
}

// overrideFields applies one JSON patch to the object (spec: behaviour/07 7.7).
func overrideFields(obj *unstructured.Unstructured, overriders []policyv1alpha1.PlaintextOverrider) *failure {
	if len(overriders) == 0 {
		return nil
	}
	ops := make([]operation, 0, len(overriders))
	for i, o := range overriders {
		if o.Path == "" {
			return failed("plaintext", i, "", errNoPointer())
		}
		ops = append(ops, newOperation(o.Operator, o.Path, o.Value))
	}
	fields, err := patchFields(obj.Object, ops)
	var wrong *operationError
	switch {
	case errors.As(err, &wrong):
		return failed("plaintext", wrong.index, wrong.path, wrong.err)
	case err != nil:
		return &failure{field: "overriders.plaintext", err: err}
	}
	obj.Object = fields
	return nil
}

// patchFields returns the fields of an object after some operations. It is still
// an object then.
func patchFields(fields map[string]any, ops []operation) (map[string]any, error) {
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("write the object: %w", err)
	}
	if text, err = patch(text, ops); err != nil {
		return nil, err
	}
	var patched map[string]any
	if err := utiljson.Unmarshal(text, &patched); err != nil {
		return nil, fmt.Errorf("read the object: %w", err)
	}
	for _, path := range [][]string{{"apiVersion"}, {"kind"}, {"metadata", "name"}} {
		if s, _ := field(patched, path...).(string); s == "" {
			return nil, fmt.Errorf("no object can be without %s", pointerTo(path...))
		}
	}
	return patched, nil
}

// overrideDocuments changes documents that stand in string fields
// (spec: behaviour/07 7.6).
func overrideDocuments(obj *unstructured.Unstructured, overriders []policyv1alpha1.FieldOverrider) *failure {
	for i, o := range overriders {
		f, err := stringAt(obj.Object, o.FieldPath)
		if err != nil {
			return failed("fieldOverrider", i, o.FieldPath, err)
		}
		format, edits, change := "json", o.JSON, changeJSON
		if len(o.YAML) > 0 {
			format, edits, change = "yaml", o.YAML, changeYAML
		}
		ops := make([]operation, 0, len(edits))
		for _, e := range edits {
			ops = append(ops, newOperation(e.Operator, e.SubPath, e.Value))
		}
		changed, err := change(f.value, ops)
		var wrong *operationError
		switch {
		case errors.As(err, &wrong):
			fault := failed("fieldOverrider", i, o.FieldPath, fmt.Errorf("at %s of the document: %w", wrong.path, wrong.err))
			fault.field += fmt.Sprintf(".%s[%d]", format, wrong.index)
			return fault
		case err != nil:
			return failed("fieldOverrider", i, o.FieldPath, err)
		}
		f.set(changed)
	}
	return nil
}

// changeJSON applies operations to a JSON document.
func changeJSON(document string, ops []operation) (string, error) {
	if len(ops) == 0 {
		return document, nil
	}
	text := bytes.TrimSpace([]byte(document))
	if !json.Valid(text) {
		return "", errors.New("it is not a JSON document")
	}
	return patched(text, ops)
}

// patched applies operations to a JSON text that is a list or an object.
func patched(text []byte, ops []operation) (string, error) {
	if text[0] != '{' && text[0] != '[' {
		return "", errors.New("the document is neither a map nor a list")
	}
	text, err := patch(text, ops)
	return string(text), err
}

// changeYAML applies operations to a YAML document.
func changeYAML(document string, ops []operation) (string, error) {
	if several, err := hasSeveral(document); err != nil {
		return "", fmt.Errorf("it is not a YAML document: %w", err)
	} else if several {
		return "", errors.New("it has several YAML documents, and would lose all but the first")
	}
	text, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		return "", fmt.Errorf("it is not a YAML document: %w", err)
	}
	changed, err := patched(text, ops)
	if err != nil {
		return "", err
	}
	result, err := yaml.JSONToYAML([]byte(changed))
	if err != nil {
		return "", fmt.Errorf("write the YAML document: %w", err)
	}
	return string(result), nil
}

// hasSeveral says whether there is more than one YAML document in a text.
func hasSeveral(text string) (bool, error) {
	d := goyaml.NewDecoder(strings.NewReader(text))
	for range 2 {
		var document any
		err := d.Decode(&document)
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}
