package metrics

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Pools count what is taken from pools of things that are costly to make.
type Pools struct {
	gets, puts *prometheus.CounterVec
}

// NewPools registers the metrics with a registry.
func NewPools(r prometheus.Registerer) (*Pools, error) {
	gets, getsErr := register(r, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pool_get_operation_total",
		Help: "Number of times something was taken from a pool, by where it came from.",
	}, []string{"name", "from"}))
	puts, putsErr := register(r, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pool_put_operation_total",
		Help: "Number of times something was given back to a pool, by where it went.",
	}, []string{"name", "to"}))
	return &Pools{gets: gets, puts: puts}, errors.Join(getsErr, putsErr)
}

// Got counts one thing taken from the pool of a name; from says where it came
// from: the pool, or new.
func (p *Pools) Got(name, from string) { p.gets.WithLabelValues(name, from).Inc() }

// Put counts one thing given back to the pool of a name; to says where it went:
// the pool, or destroyed.
func (p *Pools) Put(name, to string) { p.puts.WithLabelValues(name, to).Inc() }
