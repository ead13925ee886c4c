package schedule

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Steps of the algorithm, as metrics call them.
const (
	stepFilter = "Filter"
	stepScore  = "Score"
	stepSelect = "Select"
	stepAssign = "AssignReplicas"
)

// What brings a binding into the queue, as metrics call it.
const (
	incomingAdd     = "BindingAdd"
	incomingUpdate  = "BindingUpdate"
	incomingFailure = "ScheduleAttemptFailure"
	incomingCluster = "ClusterChanged"
)

// instruments are the metrics of the scheduler (spec: behaviour/15 15.1).
type instruments struct {
	attempts  *prometheus.CounterVec
	durations *prometheus.HistogramVec
	steps     *prometheus.HistogramVec
	incoming  *prometheus.CounterVec
}

func newInstruments(r prometheus.Registerer) (*instruments, error) {
	const subsystem = "karmada_scheduler"
	buckets := prometheus.ExponentialBuckets(0.001, 2, 15)
	i := &instruments{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Subsystem: subsystem, Name: "schedule_attempts_total", Help: "Attempts to schedule a binding.",
		}, []string{"result", "schedule_type"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Subsystem: subsystem, Name: "e2e_scheduling_duration_seconds", Help: "How long it takes to schedule a binding, writing the result included.", Buckets: buckets,
		}, []string{"result", "schedule_type"}),
		steps: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Subsystem: subsystem, Name: "scheduling_algorithm_duration_seconds", Help: "How long a step of the scheduling algorithm takes.", Buckets: buckets,
		}, []string{"schedule_step"}),
		incoming: prometheus.NewCounterVec(prometheus.CounterOpts{
			Subsystem: subsystem, Name: "queue_incoming_bindings_total", Help: "Bindings that came into the queue, by what brought them.",
		}, []string{"event"}),
	}
	for _, c := range []prometheus.Collector{i.attempts, i.durations, i.steps, i.incoming} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("register metric: %w", err)
		}
	}
	return i, nil
}

func (i *instruments) step(name string) func() {
	begin := time.Now()
	return func() { i.steps.WithLabelValues(name).Observe(time.Since(begin).Seconds()) }
}

// attempted notes how an attempt that began at a time ended.
func (i *instruments) attempted(why cause, begin time.Time, err error) {
	result := "scheduled"
	if err != nil {
		result = "error"
	}
	i.attempts.WithLabelValues(result, string(why)).Inc()
	i.durations.WithLabelValues(result, string(why)).Observe(time.Since(begin).Seconds())
}

func (i *instruments) came(event string) { i.incoming.WithLabelValues(event).Inc() }
