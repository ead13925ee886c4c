package proxy

import (
	"errors"
	"io"
	"net/http"
	"sync"
)

// replayLimit is how much of a request's body is kept to send it again: API
// servers take no larger objects.
const replayLimit = 3 << 20

var errGivenUp = errors.New("the request is being sent again")

// A replay lets a body that can be read once be sent twice. A first sending that
// is given up may still be reading: what it reads is not lost to the second.
type replay struct {
	source  io.Reader
	reading sync.Mutex // held while source is read, which takes as long as the sender takes

	mu     sync.Mutex // held for a moment
	kept   []byte
	lost   bool // what was read is not kept any more
	latest *sending
}

// replayOf returns nil for a request without a body.
func replayOf(r *http.Request) *replay {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	return &replay{source: r.Body}
}

// body returns a body from the beginning, false if that is not possible any
// more. One that was returned before comes to an end.
func (r *replay) body() (io.ReadCloser, bool) {
	if r == nil {
		return http.NoBody, true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost {
		return nil, false
	}
	r.latest = &sending{replay: r}
	return r.latest, true
}

// A sending reads a body once.
type sending struct {
	replay *replay
	at     int
	closed bool
}

func (s *sending) Read(p []byte) (int, error) {
	if n, err := s.readKept(p); n > 0 || err != nil {
		return n, err
	}
	r := s.replay
	r.reading.Lock()
	defer r.reading.Unlock()
	// Another sending may have read in the meantime.
	if n, err := s.readKept(p); n > 0 || err != nil {
		return n, err
	}
	n, err := r.source.Read(p)
	s.keep(p[:n])
	return n, err
}

func (s *sending) readKept(p []byte) (int, error) {
	r := s.replay
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.latest != s || s.closed {
		return 0, errGivenUp
	}
	if r.lost || s.at >= len(r.kept) {
		return 0, nil
	}
	n := copy(p, r.kept[s.at:])
	s.at += n
	return n, nil
}

// keep keeps what was just read from the source: for the next sending, if there
// may be one, or because it has begun.
func (s *sending) keep(p []byte) {
	r := s.replay
	r.mu.Lock()
	defer r.mu.Unlock()
	s.at += len(p)
	switch {
	case r.lost:
	case r.latest == s && len(r.kept)+len(p) > replayLimit:
		r.lost, r.kept = true, nil
	default:
		r.kept = append(r.kept, p...)
	}
}

// Close ends this sending. The body itself is for the server to close.
func (s *sending) Close() error {
	s.replay.mu.Lock()
	defer s.replay.mu.Unlock()
	s.closed = true
	return nil
}
