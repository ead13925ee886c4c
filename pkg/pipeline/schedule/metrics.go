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
	points    *prometheus.HistogramVec
	plugins   *prometheus.HistogramVec
	skipped   *prometheus.CounterVec
}

// resultSuccess is that of plugins: to refuse a cluster is no failure, and what
// they cannot understand fails the attempt.
const resultSuccess = "success"

func newInstruments(r prometheus.Registerer) (*instruments, error) {
	const subsystem = "karmada_scheduler"
	buckets, quick := prometheus.ExponentialBuckets(0.001, 2, 15), prometheus.ExponentialBuckets(0.000_001, 4, 12)
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
		points: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Subsystem: subsystem, Name: "framework_extension_point_duration_seconds", Help: "How long all plugins of an extension point take for one binding.", Buckets: quick,
		}, []string{"extension_point", "result"}),
		plugins: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Subsystem: subsystem, Name: "plugin_execution_duration_seconds", Help: "How long a plugin takes for one binding.", Buckets: quick,
		}, []string{"plugin", "extension_point", "result"}),
		skipped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Subsystem: subsystem, Name: "skipped_estimates_total", Help: "Decisions made without the answer of an estimator, by why there was none.",
		}, []string{"estimator", "reason"}),
	}
	for _, c := range []prometheus.Collector{i.attempts, i.durations, i.steps, i.incoming, i.points, i.plugins, i.skipped} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("register metric: %w", err)
		}
	}
	return i, nil
}

func (i *instruments) step(name string) func() {
	begin := time.Now()
	return func() {
		took := time.Since(begin).Seconds()
		i.steps.WithLabelValues(name).Observe(took)
		if name == stepFilter || name == stepScore { // points are called as their steps
			i.points.WithLabelValues(name, resultSuccess).Observe(took)
		}
	}
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

// watch shows how many bindings are in the queue, and where.
func (i *instruments) watch(r prometheus.Registerer, count func() map[place]int) error {
	for _, p := range []place{placeActive, placeBackoff, placeUnschedulable} {
		gauge := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Subsystem: "scheduler", Name: "pending_bindings", Help: "Bindings in the queue, by the part of it that they are in.",
			ConstLabels: prometheus.Labels{"queue": string(p)},
		}, func() float64 { return float64(count()[p]) })
		if err := r.Register(gauge); err != nil {
			return fmt.Errorf("register metric: %w", err)
		}
	}
	return nil
}

// plugin notes how long a plugin takes at a point of extension for one binding. It
// is called when that begins, and what it returns when it ends.
func (i *instruments) plugin(point, name string) (done func()) {
	begin := time.Now()
	return func() { i.plugins.WithLabelValues(name, point, resultSuccess).Observe(time.Since(begin).Seconds()) }
}

func (i *instruments) skip(estimator, reason string) {
	i.skipped.WithLabelValues(estimator, reason).Inc()
}

func (i *instruments) came(event string) { i.incoming.WithLabelValues(event).Inc() }
