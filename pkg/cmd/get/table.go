package get

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	kubectlget "k8s.io/kubectl/pkg/cmd/get"

	"github.com/karmadactl/karmadactl/pkg/cmd/kubectl"
	"github.com/karmadactl/karmadactl/pkg/names"
)

const (
	// together is how long rows wait for those of other clusters, so that they
	// can be shown in order. Who has not answered by then comes later.
	together = 500 * time.Millisecond
	// togetherMany is as long for several types, which come one after the other.
	togetherMany = 2 * time.Second
	// atMost is how many rows wait: more are shown in the order they come in.
	atMost = 2000
)

// table shows rows of all sources: those that come soon in the order of the
// sources, the rest as they come.
func (o *Options) table(ctx context.Context, sources []*source) error {
	var (
		b       = o.newBoard()
		parts   = make(chan part)
		ended   = make(chan struct{}, len(sources))
		errs    = make([]error, len(sources))
		pending = len(sources)
		grace   = time.NewTimer(o.Query.patience())
		late    = false
	)
	defer grace.Stop()
	o.Query.asked(ctx, sources,
		func(int) chan<- part { return parts },
		func(i int, _ bool, err error) { errs[i] = err; ended <- struct{}{} })

	for pending > 0 {
		select {
		case <-ctx.Done():
			return kubectl.Interrupted()
		case <-ended:
			pending--
		case <-grace.C:
			late = true
		case p := <-parts:
			if err := b.add(p); err != nil {
				errs[p.at] = err
			}
		}
		// What is sorted cannot be shown before it is complete.
		if o.sortBy() == "" && (late || b.waiting >= atMost) {
			if err := b.flush(); err != nil {
				return err
			}
		}
	}
	if err := b.flush(); err != nil {
		return err
	}
	err := failures(sources, errs)
	if b.shown == 0 && err == nil && !o.Query.ignoreNotFound {
		return o.nothing(b.namespaced)
	}
	return err
}

// A board is where rows of many clusters become tables, one for each type.
type board struct {
	o       *Options
	out     aligned
	groups  map[string]*group
	kinds   map[schema.GroupKind]bool
	last    *group
	printer printers.ResourcePrinter
	// columns are those of the last part of a source: changes come without.
	columns map[string][]metav1.TableColumnDefinition

	waiting, shown int
	namespaced     bool
}

// aligned is a writer that makes columns of tabs, and keeps their width from one
// flush to the next.
type aligned interface {
	io.Writer
	Flush() error
}

// A group is what has one header: a type with the same columns everywhere.
type group struct {
	key        string
	kind       schema.GroupKind
	namespaced bool
	columns    []metav1.TableColumnDefinition
	pages      []page
}

// A page is rows of one cluster that wait to be shown.
type page struct {
	at    int
	event string
	rows  []metav1.TableRow
}

func (o *Options) newBoard() *board {
	return &board{
		o: o, namespaced: true,
		groups: make(map[string]*group), kinds: make(map[schema.GroupKind]bool),
		columns: make(map[string][]metav1.TableColumnDefinition),
	}
}

// add takes a part, and says where it is from.
func (b *board) add(p part) error {
	t, err := toTable(p.object)
	if err != nil {
		return fmt.Errorf("understand the answer: %w", err)
	}
	b.kinds[p.kind] = true
	b.namespaced = b.namespaced && p.namespaced
	known := p.resource.String() + " " + p.from.name
	if len(t.ColumnDefinitions) == 0 {
		t.ColumnDefinitions = b.columns[known]
	}
	b.columns[known] = t.ColumnDefinitions
	if len(t.Rows) == 0 || len(t.ColumnDefinitions) == 0 {
		return nil
	}
	columns := withCluster(p, t, b.o.Query.whole)

	key := p.resource.String() // core comes first
	for _, c := range columns {
		key += "\x00" + c.Name
	}
	g := b.groups[key]
	if g == nil {
		g = &group{key: key, kind: p.kind, namespaced: p.namespaced, columns: columns}
		b.groups[key] = g
	}
	g.pages = append(g.pages, page{at: p.at, event: p.event, rows: t.Rows})
	b.waiting += len(t.Rows)
	return nil
}

// flush shows what waits.
func (b *board) flush() error {
	if b.waiting == 0 {
		return nil
	}
	var due []*group
	for _, g := range b.groups {
		if len(g.pages) > 0 {
			due = append(due, g)
		}
	}
	// One that has begun goes on.
	slices.SortFunc(due, func(x, y *group) int {
		switch {
		case x == b.last:
			return -1
		case y == b.last:
			return 1
		}
		return strings.Compare(x.key, y.key)
	})
	for _, g := range due {
		if err := b.show(g); err != nil {
			return err
		}
	}
	b.waiting = 0
	return nil
}

func (b *board) show(g *group) error {
	if g != b.last {
		if b.last != nil && !*b.o.Print.NoHeaders {
			if _, err := io.WriteString(b.o.Out, "\n"); err != nil {
				return err
			}
		}
		b.out = printers.GetNewTabWriter(b.o.Out)
		flags := b.o.Print.Copy()
		human := *flags.HumanReadableFlags
		flags.HumanReadableFlags = &human
		human.Kind = g.kind
		human.WithNamespace = b.o.Query.allNamespaces && g.namespaced
		if showKind := len(b.kinds) > 1 || b.o.Query.hasTypes(); showKind {
			human.ShowKind = &showKind
		}
		p, err := flags.ToPrinter()
		if err != nil {
			return err
		}
		b.printer, b.last = p, g
	}
	pages := g.pages
	g.pages = nil
	slices.SortStableFunc(pages, func(x, y page) int { return x.at - y.at })
	var rows []metav1.TableRow
	for i, p := range pages {
		rows = append(rows, p.rows...)
		// Changes are shown one by one, each with what has happened.
		if p.event == "" && i+1 < len(pages) && pages[i+1].event == "" {
			continue
		}
		if err := b.print(g, rows, p.event); err != nil {
			return err
		}
		rows = nil
	}
	return b.out.Flush()
}

func (b *board) print(g *group, rows []metav1.TableRow, event string) error {
	t := &metav1.Table{ColumnDefinitions: g.columns, Rows: rows}
	b.shown += len(rows)
	if field := b.o.sortBy(); field != "" && event == "" {
		if err := kubectlget.NewRuntimeSorter([]runtime.Object{t}, field).Sort(); err != nil {
			return err
		}
	}
	if !b.o.Events {
		return b.printer.PrintObj(t, b.out)
	}
	if event == "" {
		event = "ADDED"
	}
	return b.printer.PrintObj(&metav1.WatchEvent{Type: event, Object: runtime.RawExtension{Object: t}}, b.out)
}

// withCluster puts CLUSTER and ADOPTION into a table, and takes out what is not
// shown (spec: cli/commands.md 5.1).
func withCluster(p part, t *metav1.Table, whole bool) []metav1.TableColumnDefinition {
	columns := slices.Clone(t.ColumnDefinitions)
	adoption := metav1.TableColumnDefinition{Name: "Adoption", Type: "string", Description: "Whether the control plane manages the object in its cluster."}
	if p.kind == (schema.GroupKind{Kind: "Pod"}) {
		adoption.Priority = 1 // what is managed is what made the pod
	}
	columns = slices.Insert(columns, 1, metav1.TableColumnDefinition{Name: "Cluster", Type: "string", Description: "The cluster that the object is in."})
	columns = append(columns, adoption)
	for i := range t.Rows {
		row := &t.Rows[i]
		cells := make([]any, len(columns))
		copy(cells, row.Cells[:min(len(row.Cells), 1)])
		cells[1] = p.from.name
		if len(row.Cells) > 1 {
			copy(cells[2:len(columns)-1], row.Cells[1:])
		}
		cells[len(columns)-1] = adopted(p.from, row.Object.Object)
		row.Cells = cells
		if !whole {
			row.Object = runtime.RawExtension{Object: labelsOf(row.Object.Object)}
		}
	}
	return columns
}

func adopted(s *source, o runtime.Object) string {
	if !s.member {
		return "-"
	}
	a, err := meta.Accessor(o)
	if err == nil && a.GetLabels()[names.ManagedLabel] == names.True {
		return "Y"
	}
	return "N"
}

// labelsOf keeps of an object what a printer looks at.
func labelsOf(o runtime.Object) runtime.Object {
	a, err := meta.Accessor(o)
	if err != nil {
		return nil
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: a.GetNamespace(), Name: a.GetName(), Labels: a.GetLabels()}}
}

// toTable reads a table. A server that makes none is helped with what every
// object has.
func toTable(o runtime.Object) (*metav1.Table, error) {
	var t *metav1.Table
	keep := printers.ResourcePrinterFunc(func(o runtime.Object, _ io.Writer) error {
		var err error
		if t, _ = o.(*metav1.Table); t == nil {
			t, err = plainTable(o)
		}
		return err
	})
	if err := (&kubectlget.TablePrinter{Delegate: keep}).PrintObj(o, io.Discard); err != nil {
		return nil, err
	}
	return t, nil
}

func plainTable(o runtime.Object) (*metav1.Table, error) {
	t := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name"}, {Name: "Age", Type: "string"}}}
	return t, eachItem(o, func(item *unstructured.Unstructured) error {
		age := "<unknown>"
		if made := item.GetCreationTimestamp(); !made.IsZero() {
			age = duration.HumanDuration(time.Since(made.Time))
		}
		t.Rows = append(t.Rows, metav1.TableRow{Cells: []any{item.GetName(), age}, Object: runtime.RawExtension{Object: item}})
		return nil
	})
}

// eachItem visits the items of a list, or the one object.
func eachItem(o runtime.Object, visit func(*unstructured.Unstructured) error) error {
	switch o := o.(type) {
	case *unstructured.UnstructuredList:
		for i := range o.Items {
			if err := visit(&o.Items[i]); err != nil {
				return err
			}
		}
		return nil
	case *unstructured.Unstructured:
		if !o.IsList() {
			return visit(o)
		}
		list, err := o.ToList()
		if err != nil {
			return fmt.Errorf("read the list: %w", err)
		}
		return eachItem(list, visit)
	}
	return fmt.Errorf("%T is no object", o)
}
