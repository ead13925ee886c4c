package cluster

import "sync"

// A nameSet is a set of names that several goroutines use.
type nameSet struct {
	mu    sync.RWMutex
	names map[string]struct{}
}

func newNameSet() *nameSet { return &nameSet{names: map[string]struct{}{}} }

func (s *nameSet) add(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[name] = struct{}{}
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
