package apply

import (
	"sync"
	"time"
)

const (
	// quickRepairs is how often an object is repaired at once.
	quickRepairs = 5
	// firstPause is how long the first repair is put off after these; each
	// further one twice as long, up to maxPause.
	firstPause = time.Second
	maxPause   = 5 * time.Minute
	// peace is after how long without repairs an object is as any other.
	peace = 10 * time.Minute
)

// Repairs know how often the objects of members had to be repaired lately. What
// somebody there changes back again and again is repaired less and less often.
type repairs struct {
	now func() time.Time

	mu       sync.Mutex
	clusters map[string]map[place]repair
	swept    time.Time
}

type repair struct {
	times int
	last  time.Time
}

func newRepairs() *repairs {
	return &repairs{now: time.Now, clusters: map[string]map[place]repair{}}
}

// note counts a repair, and reports whether from now on they are put off.
func (r *repairs) note(cluster string, at place) (begins bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	r.sweep(now)
	if r.clusters[cluster] == nil {
		r.clusters[cluster] = map[place]repair{}
	}
	is := r.clusters[cluster][at]
	if now.Sub(is.last) >= peace {
		is.times = 0
	}
	is.times++
	is.last = now
	r.clusters[cluster][at] = is
	return is.times == quickRepairs
}

// pause returns how long the next repair is put off.
func (r *repairs) pause(cluster string, at place) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	is, ok := r.clusters[cluster][at]
	if !ok || is.times < quickRepairs || r.now().Sub(is.last) >= peace {
		return 0
	}
	pause := firstPause
	for range is.times - quickRepairs {
		if pause *= 2; pause >= maxPause {
			return maxPause
		}
	}
	return pause
}

// sweep forgets, now and then, what has been at peace.
func (r *repairs) sweep(now time.Time) {
	if now.Sub(r.swept) < peace {
		return
	}
	r.swept = now
	for _, places := range r.clusters {
		for at, is := range places {
			if now.Sub(is.last) >= peace {
				delete(places, at)
			}
		}
	}
}

func (r *repairs) forget(cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.clusters, cluster)
}
