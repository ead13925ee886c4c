package observe

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/karmadactl/karmadactl/pkg/binding"
)

const (
	// pause is how long after a write nothing more is written about a Work, and
	// how long an object that is about to get a status is given for that.
	pause = 500 * time.Millisecond
	// longestPause is what the pause grows to while an object is on its way: each
	// step of a rollout is told, but not so many that they slow the rollout down.
	// That it has become healthy waits for none of it.
	longestPause = 4 * time.Second
	// giveUp is how long the cache is waited for to see what was written.
	giveUp = 10 * time.Second
)

// Windows are the times in which nothing is written about a Work: what is new
// then is told by the first write after it. Only Works have one that changed
// lately.
type windows struct {
	now func() time.Time

	mu    sync.Mutex
	works map[types.NamespacedName]window
	swept time.Time
}

type window struct {
	opened time.Time
	// held says that it is for something that was not written.
	held bool
	// version is the one of the Work that was written, else "".
	version string
	// rest is for how long nothing more is written that is not the end of it.
	rest time.Duration
}

func newWindows() *windows {
	return &windows{now: time.Now, works: map[types.NamespacedName]window{}}
}

// wait returns how long to wait before a Work, of which the cache has a version,
// is looked at; 0 is now.
func (w *windows) wait(work types.NamespacedName, version string) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	is, ok := w.works[work]
	if !ok {
		return 0
	}
	since := w.now().Sub(is.opened)
	switch {
	case since < pause:
		return pause - since
	case is.version != "" && since < giveUp && binding.IsOlder(version, is.version):
		return pause // what is written would be compared with what was
	}
	return 0
}

// rest returns how long to wait before one more step of a Work on its way is
// written; 0 is now.
func (w *windows) rest(work types.NamespacedName) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	is, ok := w.works[work]
	if !ok || is.held {
		return 0
	}
	return max(0, is.rest-w.now().Sub(is.opened))
}

// hold opens a window for something that is better not written yet. It returns
// false if that was put off already.
func (w *windows) hold(work types.NamespacedName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.works[work].held {
		return false
	}
	w.works[work] = window{opened: w.now(), held: true, rest: w.works[work].rest}
	return true
}

// wrote opens a window after a write. done says that it was the end of what the
// object was on its way to.
func (w *windows) wrote(work types.NamespacedName, version string, done bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	w.sweep(now)
	next := window{opened: now, version: version}
	if !done {
		next.rest = pause
		if last := w.works[work]; now.Sub(last.opened) < giveUp {
			next.rest = min(max(pause, 2*last.rest), longestPause)
		}
	}
	w.works[work] = next
}

// close ends a window: there is nothing to write.
func (w *windows) close(work types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.works, work)
}

// sweep closes, now and then, windows of Works about which nothing more came.
func (w *windows) sweep(now time.Time) {
	if now.Sub(w.swept) < giveUp {
		return
	}
	w.swept = now
	for work, is := range w.works {
		if !is.held && now.Sub(is.opened) >= giveUp {
			delete(w.works, work)
		}
	}
}

// Failures are what went wrong with each Work last, so that it is told once.
type failures struct {
	mu    sync.Mutex
	works map[types.NamespacedName]string
}

func newFailures() *failures { return &failures{works: map[types.NamespacedName]string{}} }

// note notes what goes wrong with a Work, "" for nothing, and reports whether
// that is news.
func (f *failures) note(work types.NamespacedName, what string) (news bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.works[work] == what {
		return false
	}
	if what == "" {
		delete(f.works, work)
	} else {
		f.works[work] = what
	}
	return true
}
