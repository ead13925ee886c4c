package get

import (
	"context"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/cli-runtime/pkg/resource"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/karmadactl/karmadactl/pkg/cmd/fleet"
	"github.com/karmadactl/karmadactl/pkg/cmd/kubectl"
)

// follow shows what there is and then what changes, of all sources, until it is
// told to end or nobody is left. A watch that is cut is taken up again.
func (o *Options) follow(ctx context.Context, sources []*source) error {
	show, err := o.newDisplay()
	if err != nil {
		return err
	}
	var (
		parts  = make(chan part)
		notes  = make(chan error)
		ended  = make(chan int, len(sources))
		errs   = make([]error, len(sources))
		grace  = time.NewTimer(together)
		late   = false
		failed = false
	)
	defer grace.Stop()
	for i, s := range sources {
		f := &follower{o: o, source: s, factory: s.factory, listing: true,
			send: func(p part) error {
				p.at = i
				select {
				case parts <- p:
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			},
			note: func(err error) {
				select {
				case notes <- err:
				case <-ctx.Done():
				}
			},
		}
		go func() {
			errs[i] = f.run(ctx)
			ended <- i
		}()
	}
	for pending := len(sources); pending > 0; {
		select {
		case <-ctx.Done():
			if failed {
				return &kubectl.Exit{Code: cmdutil.DefaultErrorExitCode}
			}
			return kubectl.Interrupted()
		case i := <-ended:
			if pending--; errs[i] == nil || len(sources) == 1 {
				break
			}
			// Others may go on for hours.
			failed = true
			if _, err := fmt.Fprintf(o.ErrOut, "error: %v\n", failures(sources[i:i+1], errs[i:i+1])); err != nil {
				return err
			}
		case note := <-notes:
			if _, err := fmt.Fprintln(o.ErrOut, note); err != nil {
				return err
			}
		case <-grace.C:
			late = true
		case p := <-parts:
			if err := show.add(p); err != nil {
				return err
			}
		}
		if late {
			if err := show.flush(); err != nil {
				return err
			}
		}
	}
	if err := show.flush(); err != nil {
		return err
	}
	if failed {
		return &kubectl.Exit{Code: cmdutil.DefaultErrorExitCode} // each has been told
	}
	return failures(sources, errs)
}

// A display is where parts go.
type display interface {
	add(part) error
	flush() error
}

func (o *Options) newDisplay() (display, error) {
	if o.Query.table {
		return o.newBoard(), nil
	}
	p, err := o.Print.ToPrinter()
	return &stream{o: o, out: o.Out, printer: p}, err
}

// stream prints each object as a document.
type stream struct {
	o       *Options
	out     io.Writer
	printer printers.ResourcePrinter
}

func (s *stream) flush() error { return nil }

func (s *stream) add(p part) error {
	return eachItem(p.object, func(item *unstructured.Unstructured) error {
		var shown runtime.Object = p.from.mark(item)
		if s.o.Events {
			event := p.event
			if event == "" {
				event = string(watch.Added)
			}
			shown = &metav1.WatchEvent{Type: event, Object: runtime.RawExtension{Object: shown}}
		}
		return s.printer.PrintObj(shown, s.out)
	})
}

// A follower watches one source.
type follower struct {
	o       *Options
	source  *source
	factory cmdutil.Factory
	send    func(part) error
	note    func(error)

	// listing is true until what there is has been sent once.
	listing bool
	// version is the last that was seen, of one object or of a list.
	version string
	one     bool
}

const (
	retryFirst = 500 * time.Millisecond
	retryMost  = 30 * time.Second
	// settled is how long a watch lives that was not cut for a reason.
	settled = 5 * time.Second
)

// run ends when ctx does, or when the source cannot be watched at all.
func (f *follower) run(ctx context.Context) error {
	lost := false
	backoff := newBackoff()
	for {
		began := time.Now()
		err := f.watch(ctx, func() {
			if lost {
				f.note(fmt.Errorf("note: %s is back", f.name()))
			}
			lost = false
		})
		switch {
		case ctx.Err() != nil:
			return nil
		case f.listing && f.source.own != nil && isNotServed(err):
			f.factory, f.source = f.source.own(), &source{name: f.source.name, member: true}
			continue
		case f.listing:
			if f.o.Query.ignoreNotFound && isObjectMissing(err) {
				return nil
			}
			return err
		case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
			f.version = ""
			f.note(fmt.Errorf("note: %s: some changes are not shown: the watch was cut for too long", f.name()))
		case err != nil && !lost:
			lost = true
			f.note(fmt.Errorf("error: %w; trying again", &fleet.Error{Cluster: f.source.name, Err: err}))
		}
		if time.Since(began) > settled {
			backoff = newBackoff()
		}
		pause := time.NewTimer(backoff.Step())
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil
		case <-pause.C:
		}
	}
}

func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: retryFirst, Factor: 2, Jitter: 0.1, Steps: 10, Cap: retryMost}
}

func (f *follower) name() string { return "cluster(" + f.source.name + ")" }

// watch lists, if that has not been done, and sends what changes until the
// server ends it. begun is called when it begins.
func (f *follower) watch(ctx context.Context, begun func()) error {
	r := f.o.Query.build(f.factory).SingleResourceType().Do()
	if err := r.Err(); err != nil {
		return err
	}
	mapping, err := r.ResourceMapping()
	if err != nil {
		return err
	}
	example := newPart(f.source, &resource.Info{Mapping: mapping})
	if f.listing || f.version == "" {
		if err := f.list(r); err != nil {
			return err
		}
	}
	from := f.version
	if f.one {
		// The version of an object may be so old that nobody can watch from it. What is
		// there comes again first.
		from = "0"
	}
	w, err := r.Watch(from)
	if err != nil {
		return err
	}
	defer w.Stop()
	f.listing = false
	begun()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, open := <-w.ResultChan():
			switch {
			case !open:
				return nil
			case e.Type == watch.Error:
				return apierrors.FromObject(e.Object)
			}
			version := versionOf(e.Object)
			if version != "" && version == f.version {
				continue // begins with what was listed
			}
			f.version = version
			p := example
			p.object, p.event = e.Object, string(e.Type)
			if err := f.send(p); err != nil {
				return err
			}
		}
	}
}

// list sends what there is the first time, and learns from which version on to
// watch.
func (f *follower) list(r *resource.Result) error {
	return r.Visit(func(info *resource.Info, err error) error {
		if err != nil {
			return err
		}
		if f.one = info.Name != ""; f.one {
			f.version = versionOf(info.Object)
		} else if l, err := meta.ListAccessor(info.Object); err == nil {
			f.version = l.GetResourceVersion()
		}
		p := newPart(f.source, info)
		if !f.listing {
			return nil
		}
		if !f.o.Initial {
			empty, isTable := withoutRows(info.Object)
			if !isTable {
				return nil
			}
			p.object = empty // changes come without columns
		}
		return f.send(p)
	})
}

// withoutRows returns what is left of a table for which nothing is to be shown.
func withoutRows(o runtime.Object) (runtime.Object, bool) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok || u.GetKind() != "Table" {
		return o, false
	}
	u.Object["rows"] = []any{}
	return u, true
}

// versionOf returns the version of an object, or of the first row of a table.
func versionOf(o runtime.Object) string {
	u, ok := o.(*unstructured.Unstructured)
	if !ok || u.GetKind() != "Table" {
		a, err := meta.Accessor(o)
		if err != nil {
			return ""
		}
		return a.GetResourceVersion()
	}
	rows, _, _ := unstructured.NestedSlice(u.Object, "rows")
	if len(rows) == 0 {
		return ""
	}
	row, _ := rows[0].(map[string]any)
	version, _, _ := unstructured.NestedString(row, "object", "metadata", "resourceVersion")
	return version
}
