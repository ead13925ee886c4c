package get

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	kubectlget "k8s.io/kubectl/pkg/cmd/get"
	"sigs.k8s.io/yaml"

	"github.com/karmadactl/karmadactl/pkg/cmd/kubectl"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// list prints the objects of all sources as one document, in the order of the
// sources. An object of a member says where it is from.
func (o *Options) list(ctx context.Context, sources []*source) error {
	out, err := o.newSink()
	if err != nil {
		return err
	}
	var (
		// Each waits with a page until it is its turn: as much is in memory, and no more.
		parts = make([]chan part, len(sources))
		errs  = make([]error, len(sources))
		named = make([]bool, len(sources))
	)
	for i := range parts {
		parts[i] = make(chan part)
	}
	o.Query.asked(ctx, sources,
		func(i int) chan<- part { return parts[i] },
		func(i int, one bool, err error) { named[i], errs[i] = one, err; close(parts[i]) })
	for i := range parts {
		for open := true; open; {
			select {
			case <-ctx.Done():
				return kubectl.Interrupted()
			case p, more := <-parts[i]:
				if open = more; !more {
					break
				}
				if err := eachItem(p.object, func(item *unstructured.Unstructured) error { return out.add(p.from.mark(item)) }); err != nil {
					return err
				}
			}
		}
	}
	failed := failures(sources, errs)
	// One object that was asked for by name in one place is that object, and not a
	// list of it; then nothing is printed in its place either.
	single := len(sources) == 1 && named[0]
	if err := out.end(single, failed == nil && o.Query.ignoreNotFound); err != nil {
		return err
	}
	return failed
}

// mark says on an object of a member where it is from.
func (s *source) mark(item *unstructured.Unstructured) *unstructured.Unstructured {
	if s.member {
		annotations := item.GetAnnotations()
		if annotations == nil {
			annotations = make(map[string]string)
		}
		annotations[names.QueryFromClusterAnnotation] = s.name
		item.SetAnnotations(annotations)
	}
	return item
}

// A sink turns objects into the output.
type sink interface {
	add(item *unstructured.Unstructured) error
	// end completes the output: single is for one object without a list around
	// it, quiet for nothing at all instead of an empty list.
	end(single, quiet bool) error
}

func (o *Options) newSink() (sink, error) {
	p, err := o.Print.ToPrinter()
	if err != nil {
		return nil, err
	}
	switch format := *o.Print.OutputFormat; {
	case o.sortBy() != "":
		return &gathered{out: o.Out, printer: &kubectlget.SortingPrinter{Delegate: p, SortField: o.sortBy()}}, nil
	case format == "name":
		return &oneByOne{out: o.Out, printer: p}, nil
	case format == "json":
		return &document{out: o.Out, single: p, syntax: jsonList(), fields: o.Print.JSONYamlPrintFlags.ShowManagedFields}, nil
	case format == "yaml":
		return &document{out: o.Out, single: p, syntax: yamlList(), fields: o.Print.JSONYamlPrintFlags.ShowManagedFields}, nil
	}
	return &gathered{out: o.Out, printer: p}, nil
}

// gathered keeps all objects for a printer that needs them together.
type gathered struct {
	out     io.Writer
	printer printers.ResourcePrinter
	items   []unstructured.Unstructured
}

func (g *gathered) add(item *unstructured.Unstructured) error {
	g.items = append(g.items, *item)
	return nil
}

func (g *gathered) end(single, quiet bool) error {
	var all runtime.Object
	switch {
	case single && len(g.items) == 1:
		all = &g.items[0]
	case len(g.items) == 0 && (single || quiet):
		return nil
	default:
		all = &unstructured.UnstructuredList{
			Object: map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}},
			Items:  g.items,
		}
	}
	return g.printer.PrintObj(all, g.out)
}

// oneByOne prints each object by itself.
type oneByOne struct {
	out     io.Writer
	printer printers.ResourcePrinter
}

func (n *oneByOne) add(item *unstructured.Unstructured) error { return n.printer.PrintObj(item, n.out) }
func (n *oneByOne) end(bool, bool) error                      { return nil }

// A document is a list that is written while it comes, as kubectl would write
// it: 10,000 pods of 50 clusters are no reason to hold them all.
type document struct {
	out    io.Writer
	single printers.ResourcePrinter
	syntax syntax
	// fields keeps managedFields.
	fields bool

	// first waits for a second one: it may stay alone.
	first *unstructured.Unstructured
	open  bool
}

// A syntax is how a list is written.
type syntax struct {
	begin, between, end, empty string
	item                       func(*unstructured.Unstructured) ([]byte, error)
}

func (d *document) add(item *unstructured.Unstructured) error {
	if d.first == nil && !d.open {
		d.first = item
		return nil
	}
	if err := d.begin(); err != nil {
		return err
	}
	if _, err := io.WriteString(d.out, d.syntax.between); err != nil {
		return err
	}
	return d.write(item)
}

// begin writes what stands before the second object.
func (d *document) begin() error {
	if d.open {
		return nil
	}
	d.open = true
	if _, err := io.WriteString(d.out, d.syntax.begin); err != nil {
		return err
	}
	first := d.first
	d.first = nil
	return d.write(first)
}

func (d *document) write(item *unstructured.Unstructured) error {
	if !d.fields {
		item.SetManagedFields(nil)
	}
	text, err := d.syntax.item(item)
	if err != nil {
		return fmt.Errorf("print %s %s: %w", item.GetKind(), item.GetName(), err)
	}
	_, err = d.out.Write(text)
	return err
}

func (d *document) end(single, quiet bool) error {
	switch {
	case d.first == nil && !d.open:
		if single || quiet {
			return nil
		}
		_, err := io.WriteString(d.out, d.syntax.empty)
		return err
	case single && d.first != nil:
		return d.single.PrintObj(d.first, d.out)
	}
	if err := d.begin(); err != nil {
		return err
	}
	_, err := io.WriteString(d.out, d.syntax.end)
	return err
}

func jsonList() syntax {
	const tail = "    \"kind\": \"List\",\n    \"metadata\": {\n        \"resourceVersion\": \"\"\n    }\n}\n"
	return syntax{
		begin:   "{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n        ",
		between: ",\n        ",
		end:     "\n    ],\n" + tail,
		empty:   "{\n    \"apiVersion\": \"v1\",\n    \"items\": [],\n" + tail,
		item: func(u *unstructured.Unstructured) ([]byte, error) {
			return json.MarshalIndent(u.Object, "        ", "    ")
		},
	}
}

func yamlList() syntax {
	const tail = "kind: List\nmetadata:\n  resourceVersion: \"\"\n"
	return syntax{
		begin: "apiVersion: v1\nitems:\n",
		end:   tail,
		empty: "apiVersion: v1\nitems: []\n" + tail,
		item: func(u *unstructured.Unstructured) ([]byte, error) {
			return yaml.Marshal([]any{u.Object})
		},
	}
}
