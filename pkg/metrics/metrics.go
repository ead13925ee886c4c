// Package metrics holds the metrics that several components expose, with the
// names and labels that dashboards know (spec: behaviour/15 15.1). Metrics of
// one stage alone live with that stage.
//
// Each group is a value that is registered with the registry handed in. To ask
// for a group twice, as roles in one process do, gives the same metrics.
package metrics

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/karmadactl/karmadactl/pkg/util/version"
)

// Labels and their values that several metrics share.
const (
	clusterLabel = "member_cluster"
	resultLabel  = "result"

	resultSuccess = "success"
	resultError   = "error"
)

// result is the value of resultLabel for the outcome of something.
func result(err error) string {
	if err != nil {
		return resultError
	}
	return resultSuccess
}

// register registers a collector, or finds the one that is registered already.
func register[C prometheus.Collector](r prometheus.Registerer, c C) (C, error) {
	err := r.Register(c)
	if err == nil {
		return c, nil
	}
	var already prometheus.AlreadyRegisteredError
	if errors.As(err, &already) {
		if existing, ok := already.ExistingCollector.(C); ok {
			return existing, nil
		}
	}
	return c, fmt.Errorf("register metric: %w", err)
}

// RegisterBuild registers karmada_build_info, which says what is running.
func RegisterBuild(r prometheus.Registerer, v version.Info) error {
	_, err := register(r, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "karmada_build_info",
		Help: "A metric with a constant '1' value, labelled by what the running program was built from.",
		ConstLabels: prometheus.Labels{
			"git_version":      v.GitVersion,
			"git_commit":       v.GitCommit,
			"git_short_commit": v.GitShortCommit,
			"git_tree_state":   v.GitTreeState,
			"build_date":       v.BuildDate,
			"go_version":       v.GoVersion,
			"compiler":         v.Compiler,
			"platform":         v.Platform,
		},
	}, func() float64 { return 1 }))
	return err
}
