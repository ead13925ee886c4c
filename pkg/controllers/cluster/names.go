package cluster

import "sync"

// A nameSet is a set of names, each with what was told of it last, that several
// goroutines use.
type nameSet struct {
	mu    sync.RWMutex
	names map[string]string
}

func newNameSet() *nameSet { return &nameSet{names: map[string]string{}} }

func (s *nameSet) add(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.names[name]; !ok {
		s.names[name] = ""
	}
}

// tell notes what is told of a name, and reports whether that is news.
func (s *nameSet) tell(name, what string) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	news = s.names[name] != what
	s.names[name] = what
	return news
}

func (s *nameSet) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.names, name)
}

func (s *nameSet) has(name string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, ok := s.names[name]
	return ok
}
