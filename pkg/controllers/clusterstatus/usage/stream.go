package usage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/ptr"
)

const (
	// pageSize is how many objects are listed at once where the server cannot
	// stream them.
	pageSize = 500
	// stalled is how long a server may say nothing while it streams what is
	// there. Servers before Kubernetes 1.27 never say that they are done.
	stalled = 10 * time.Second
	// watchMin is the least time that a server is asked to keep a watch open; the
	// most is twice that.
	watchMin = 5 * time.Minute
	// watchSlack is how much longer it may take to close it, before the connection
	// is taken for dead.
	watchSlack = 30 * time.Second
	// short is a watch that a server has not kept open at all.
	short = time.Second
	// calm is how long things must go well for a fault to count as the first.
	calm = 30 * time.Second
)

// Follow keeps t up to date with a cluster until ctx ends. What goes wrong is
// tried again; it is logged once, not each time.
func Follow(ctx context.Context, client corev1client.CoreV1Interface, t *Tracker, log logr.Logger) {
	nodes := &stream[*corev1.Node]{
		what:  "nodes",
		watch: client.Nodes().Watch,
		list: func(ctx context.Context, o metav1.ListOptions, each func(*corev1.Node)) (metav1.ListMeta, error) {
			l, err := client.Nodes().List(ctx, o)
			if err != nil {
				return metav1.ListMeta{}, err
			}
			for i := range l.Items {
				each(&l.Items[i])
			}
			return l.ListMeta, nil
		},
		begin: t.beginNodes, set: t.setNode, drop: t.dropNode, end: t.endNodes,
	}
	pods := &stream[*corev1.Pod]{
		what: "pods",
		// Pods that have ended do not count: whoever runs many jobs has many.
		selector: "status.phase!=Succeeded,status.phase!=Failed",
		watch:    client.Pods(metav1.NamespaceAll).Watch,
		list: func(ctx context.Context, o metav1.ListOptions, each func(*corev1.Pod)) (metav1.ListMeta, error) {
			l, err := client.Pods(metav1.NamespaceAll).List(ctx, o)
			if err != nil {
				return metav1.ListMeta{}, err
			}
			for i := range l.Items {
				each(&l.Items[i])
			}
			return l.ListMeta, nil
		},
		begin: t.beginPods, set: t.setPod, drop: t.dropPod, end: t.endPods,
	}
	nodes.log, pods.log = log, log
	nodes.stalled, pods.stalled = stalled, stalled
	var wg wait.Group
	defer wg.Wait()
	wg.StartWithContext(ctx, nodes.run)
	wg.StartWithContext(ctx, pods.run)
}

// An object is what a stream is of.
type object interface {
	runtime.Object
	metav1.Object
}

// A stream follows the objects of one kind.
type stream[T object] struct {
	what     string
	selector string // of fields
	watch    func(context.Context, metav1.ListOptions) (watch.Interface, error)
	list     func(context.Context, metav1.ListOptions, func(T)) (metav1.ListMeta, error)

	begin, end func()
	set, drop  func(T)

	log     logr.Logger
	stalled time.Duration

	// pages is set when the server was found not to stream what is there.
	pages bool
	// version is where the next watch goes on; empty when everything is to be
	// read anew.
	version string
	told    string // the error that was logged last
}

// errStalled is the end of a stream that never told that it was complete.
var errStalled = errors.New("the server does not say when it has sent everything")

// errShort is the end of a watch that was hardly there.
var errShort = errors.New("the server ended it too early")

func (s *stream[T]) run(ctx context.Context) {
	fresh := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Cap: 15 * time.Second, Steps: 20}
	backoff := fresh
	for ctx.Err() == nil {
		began := time.Now()
		err := s.once(ctx)
		if time.Since(began) > calm {
			backoff = fresh
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		s.tell(err)
		select {
		case <-ctx.Done():
		case <-time.After(backoff.Step()):
		}
	}
}

// tell logs an error unless it is the same as before, or what has to be expected.
func (s *stream[T]) tell(err error) {
	if text := err.Error(); text != s.told && !isExpired(err) {
		s.told = text
		s.log.Info("Could not follow what the member cluster has; trying again", "what", s.what, "error", text)
	}
}

// once reads everything, or goes on where it ended, and then follows changes
// until the server ends the watch.
func (s *stream[T]) once(ctx context.Context) error {
	if s.version == "" && s.pages {
		if err := s.readPages(ctx); err != nil {
			return fmt.Errorf("list %s: %w", s.what, err)
		}
	}
	timeout := watchMin + rand.N(watchMin)
	ctx, cancel := context.WithTimeout(ctx, timeout+watchSlack)
	defer cancel()
	options := metav1.ListOptions{
		FieldSelector:       s.selector,
		ResourceVersion:     s.version,
		AllowWatchBookmarks: true,
		TimeoutSeconds:      ptr.To(int64(timeout.Seconds())),
	}
	initial := s.version == ""
	if initial {
		options.SendInitialEvents = ptr.To(true)
		options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
		s.begin()
	}
	w, err := s.watch(ctx, options)
	if err == nil {
		defer w.Stop()
		err = s.follow(ctx, w, initial)
	}
	switch {
	case err == nil:
		return nil
	case initial && (apierrors.IsInvalid(err) || errors.Is(err, errStalled)):
		s.pages = true // this server can only list
		return nil
	case isExpired(err):
		s.version = ""
	}
	return fmt.Errorf("watch %s: %w", s.what, err)
}

func isExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// readPages reads everything where the server cannot stream it.
func (s *stream[T]) readPages(ctx context.Context) error {
	s.begin()
	options := metav1.ListOptions{FieldSelector: s.selector, Limit: pageSize}
	for {
		page, err := s.list(ctx, options, s.set)
		if err != nil {
			return err
		}
		if page.Continue == "" {
			s.end()
			s.version, s.told = page.ResourceVersion, ""
			return nil
		}
		options.Continue = page.Continue
	}
}

// follow takes what a watch brings until it ends. A stream that is cut before
// it was complete begins anew the next time; what it has brought counts.
func (s *stream[T]) follow(ctx context.Context, w watch.Interface, initial bool) error {
	began := time.Now()
	silence := time.NewTimer(s.stalled)
	defer silence.Stop()
	for {
		if !initial {
			silence.Stop()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-silence.C:
			return errStalled
		case event, open := <-w.ResultChan():
			if !open && (initial || time.Since(began) < short) {
				return errShort
			}
			if !open {
				return nil
			}
			complete, err := s.take(event)
			if err != nil {
				return err
			}
			if complete && initial {
				initial = false
				s.told = ""
				s.end()
			}
			if initial {
				silence.Reset(s.stalled)
				continue
			}
			if o, ok := event.Object.(T); ok {
				s.version = o.GetResourceVersion()
			}
		}
	}
}

// take takes one event. complete says that it tells that everything there was
// has been sent.
func (s *stream[T]) take(event watch.Event) (complete bool, err error) {
	if event.Type == watch.Error {
		return false, apierrors.FromObject(event.Object)
	}
	o, ok := event.Object.(T)
	if !ok {
		return false, fmt.Errorf("got a %T", event.Object)
	}
	switch event.Type {
	case watch.Added, watch.Modified:
		s.set(o)
	case watch.Deleted:
		s.drop(o)
	case watch.Bookmark:
		return o.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true", nil
	}
	return false, nil
}
