package schedule

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/estimate"
)

const (
	// estimatorTimeout is how long a decision waits for estimators by default
	// (spec: behaviour/04 4.1).
	estimatorTimeout = 3 * time.Second
	// estimatorRest is how long an estimator is not asked that let a decision
	// wait for nothing: others stand in line behind it.
	estimatorRest = 10 * time.Second
)

// An Estimator tells how many replicas clusters have room for. The general one,
// which is always asked, is not one of these.
type Estimator interface {
	// Name is that of its answers, and in metrics.
	Name() string
	// Estimate answers for as many of the clusters as it can, by name. After an
	// error, or once ctx is done, nothing that it says counts.
	Estimate(ctx context.Context, r estimate.Request, clusters []*clusterv1alpha1.Cluster) (map[string]estimate.Answer, error)
}

var errResting = errors.New("it did not answer in time a moment ago")

// A panel asks several estimators at the same time. One that fails does not count,
// and does not hold up the others (spec: behaviour/04 4.8).
type panel struct {
	all     []Estimator
	timeout time.Duration
	now     func() time.Time
	skipped func(estimator, reason string)

	mu      sync.Mutex
	resting map[string]time.Time // until when
}

// Why an estimator was not heard, as metrics call it.
const (
	skippedError   = "error"
	skippedTimeout = "timeout"
	skippedResting = "resting"
)

// ask returns the answers by cluster, and why estimators gave none, by their names.
func (p *panel) ask(ctx context.Context, r estimate.Request, clusters []*clusterv1alpha1.Cluster) (map[string][]estimate.Answer, map[string]error) {
	if p == nil || len(p.all) == 0 || len(clusters) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	type reply struct {
		from    int
		answers map[string]estimate.Answer
		err     error
	}
	replies := make(chan reply, len(p.all)) // nobody waits for who is late
	silent := map[string]error{}
	open := map[int]bool{}
	for i, e := range p.all {
		if p.rests(e.Name()) {
			silent[e.Name()] = errResting
			p.skipped(e.Name(), skippedResting)
			continue
		}
		open[i] = true
		go func() {
			answers, err := e.Estimate(ctx, r, clusters)
			replies <- reply{i, answers, err}
		}()
	}
	heard := make([]map[string]estimate.Answer, len(p.all))
	for len(open) > 0 {
		select {
		case one := <-replies:
			delete(open, one.from)
			if one.err != nil || ctx.Err() != nil {
				p.miss(ctx, silent, one.from, one.err)
				continue
			}
			heard[one.from] = one.answers
		case <-ctx.Done():
			for i := range open {
				p.miss(ctx, silent, i, nil)
			}
			clear(open)
		}
	}
	answers := make(map[string][]estimate.Answer, len(clusters))
	for i, by := range heard { // in their order, so that the result does not depend on who was first
		for _, c := range clusters {
			if a, ok := by[c.Name]; ok {
				a.By = p.all[i].Name()
				answers[c.Name] = append(answers[c.Name], a)
			}
		}
	}
	return answers, silent
}

// miss notes that an estimator was not heard.
func (p *panel) miss(ctx context.Context, silent map[string]error, i int, err error) {
	name, reason := p.all[i].Name(), skippedError
	if late := ctx.Err(); errors.Is(late, context.DeadlineExceeded) {
		reason, err = skippedTimeout, fmt.Errorf("no answer within %s", p.timeout)
		p.mu.Lock()
		p.resting[name] = p.now().Add(estimatorRest)
		p.mu.Unlock()
	} else if err == nil {
		err = late
	}
	silent[name] = err
	p.skipped(name, reason)
}

func (p *panel) rests(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now().Before(p.resting[name])
}
