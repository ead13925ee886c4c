package flags

import (
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/util/workqueue"
)

// RateLimiter slows down what a work queue tries again
// (spec: behaviour/01 1.10).
type RateLimiter struct {
	// BaseDelay and MaxDelay bound the delay of one item, which doubles each
	// time.
	BaseDelay time.Duration
	MaxDelay  time.Duration
	// QPS and BucketSize limit retries of all items together.
	QPS        int
	BucketSize int
}

// NewRateLimiterFlags returns the defaults.
func NewRateLimiterFlags() RateLimiter {
	return RateLimiter{BaseDelay: 5 * time.Millisecond, MaxDelay: 1000 * time.Second, QPS: 10, BucketSize: 100}
}

// AddFlags registers the flags.
func (r *RateLimiter) AddFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&r.BaseDelay, "rate-limiter-base-delay", r.BaseDelay, "How long an item of a work queue waits before it is tried for a second time. The delay doubles with every failure.")
	fs.DurationVar(&r.MaxDelay, "rate-limiter-max-delay", r.MaxDelay, "How long an item of a work queue waits at most before it is tried again.")
	fs.IntVar(&r.QPS, "rate-limiter-qps", r.QPS, "Retries per second, on average, of a work queue. Has no effect on the queues that the feature gate ControllerPriorityQueue is for.")
	fs.IntVar(&r.BucketSize, "rate-limiter-bucket-size", r.BucketSize, "Retries that a work queue may make at once. Has no effect on the queues that the feature gate ControllerPriorityQueue is for.")
}

// Validate reports values with which nothing would ever be tried again.
func (r *RateLimiter) Validate() field.ErrorList {
	errs := positiveDuration("rate-limiter-base-delay", r.BaseDelay)
	if r.MaxDelay < r.BaseDelay {
		errs = append(errs, field.Invalid(Path("rate-limiter-max-delay"), r.MaxDelay.String(),
			"must not be shorter than --rate-limiter-base-delay, which is "+r.BaseDelay.String()))
	}
	for _, n := range []struct {
		flag  string
		value int
	}{{"rate-limiter-qps", r.QPS}, {"rate-limiter-bucket-size", r.BucketSize}} {
		if n.value <= 0 {
			errs = append(errs, field.Invalid(Path(n.flag), n.value, "must be greater than zero"))
		}
	}
	return errs
}

// NewRateLimiter returns a rate limiter for one queue. With perItem, which goes
// with priority queues, each item waits for itself alone; else the queue as a
// whole is limited too.
func NewRateLimiter[T comparable](r RateLimiter, perItem bool) workqueue.TypedRateLimiter[T] {
	item := workqueue.NewTypedItemExponentialFailureRateLimiter[T](r.BaseDelay, r.MaxDelay)
	if perItem {
		return item
	}
	return workqueue.NewTypedMaxOfRateLimiter(item,
		&workqueue.TypedBucketRateLimiter[T]{Limiter: rate.NewLimiter(rate.Limit(r.QPS), r.BucketSize)})
}
