package bind

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// meters are the metrics of this stage (spec: behaviour/15 15.1).
type meters struct {
	matching    *prometheus.HistogramVec
	applying    *prometheus.HistogramVec
	attempts    *prometheus.CounterVec
	preemptions *prometheus.CounterVec
}

// newMeters registers the metrics, or finds those that another role of this
// process has registered.
func newMeters(r prometheus.Registerer) (*meters, error) {
	buckets := prometheus.ExponentialBuckets(0.001, 2, 12)
	result := []string{"result"}
	var (
		m    meters
		errs = make([]error, 4)
	)
	m.matching, errs[0] = register(r, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "resource_match_policy_duration_seconds", Help: "How long it takes to find the policy for a template.", Buckets: buckets,
	}, nil))
	m.applying, errs[1] = register(r, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "resource_apply_policy_duration_seconds", Help: "How long it takes to apply a policy to a template.", Buckets: buckets,
	}, result))
	m.attempts, errs[2] = register(r, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "policy_apply_attempts_total", Help: "How often a policy was applied to a template.",
	}, result))
	m.preemptions, errs[3] = register(r, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "policy_preemption_total", Help: "How often a policy took a template from another.",
	}, result))
	return &m, errors.Join(errs...)
}

func register[C prometheus.Collector](r prometheus.Registerer, c C) (C, error) {
	err := r.Register(c)
	var already prometheus.AlreadyRegisteredError
	if errors.As(err, &already) {
		if existing, ok := already.ExistingCollector.(C); ok {
			return existing, nil
		}
	}
	if err != nil {
		return c, fmt.Errorf("register metric: %w", err)
	}
	return c, nil
}

func result(err error) string {
	if err != nil {
		return "error"
	}
	return "success"
}

func (m *meters) matched(took time.Duration) { m.matching.WithLabelValues().Observe(took.Seconds()) }

func (m *meters) applied(took time.Duration, err error) {
	m.applying.WithLabelValues(result(err)).Observe(took.Seconds())
	m.attempts.WithLabelValues(result(err)).Inc()
}

func (m *meters) preempted(err error) { m.preemptions.WithLabelValues(result(err)).Inc() }
