package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/karmadactl/karmadactl/test/chaos/rig"
)

// A Scenario is one workload and what is measured of it.
type Scenario struct {
	Name  string
	Short string
	// Run measures, and leaves its figures in the Env. Everything that it started has ended when it returns, also when
	// ctx is done or something went wrong.
	Run func(ctx context.Context, e *Env) error
}

// scenarios is the list of all, in the order in which they run.
func scenarios() []Scenario {
	return []Scenario{
		{Name: "boot", Short: "from nothing to a ready control plane, and what it costs while it is idle", Run: boot},
		{Name: "join", Short: "from a member cluster's kubeconfig to a Cluster that is ready, and what an agent costs", Run: join},
		{Name: "CLI", Short: "what a user waits for: get of few objects of three members, and of many of fifty", Run: commands},
		{Name: "propagate", Short: "from Deployments and a policy to ready replicas on three members with status back", Run: propagate},
		{Name: "steady", Short: "what is written and used when nothing changes", Run: steady},
		{Name: "render", Short: "Works of bindings that were scheduled while nobody rendered", Run: render},
		{Name: "schedule", Short: "bindings that divide their replicas by the room of 3 and of 100 clusters, while nobody renders", Run: schedule},
		{Name: "override", Short: "one OverridePolicy, created and edited, over 500 objects on three members", Run: override},
		{Name: "policies", Short: "a new Deployment beside 1,000, 5,000 and 10,000 policies", Run: policies},
		{Name: "admission", Short: "what it costs to ask the webhook, at 200 requests a second", Run: admission},
	}
}

func scenarioNames() []string {
	var names []string
	for _, s := range scenarios() {
		names = append(names, s.Name)
	}
	return names
}

func chooseScenarios(list string) ([]Scenario, error) {
	all := scenarios()
	if list == "" {
		return all, nil
	}
	var chosen []Scenario
next:
	for name := range strings.SplitSeq(list, ",") {
		for _, s := range all {
			if s.Name == name {
				chosen = append(chosen, s)
				continue next
			}
		}
		return nil, fmt.Errorf("-scenario: there is no %q; there is %s", name, strings.Join(scenarioNames(), ", "))
	}
	return chosen, nil
}

// Settings say how thoroughly to measure.
type Settings struct {
	Runs int `json:"runs"`
	// Settle is how long a process is left alone before its idle state is measured, Idle how long that takes.
	Settle time.Duration `json:"settle"`
	Idle   time.Duration `json:"idle"`
	// Steady is how long a control plane with work is watched when nothing changes.
	Steady time.Duration `json:"steady"`
	// Sizes are the numbers of Deployments to propagate.
	Sizes []int `json:"sizes"`
	// Bindings is how many are rendered.
	Bindings int `json:"bindings"`
	// Placements is how many bindings are scheduled at once.
	Placements int `json:"placements"`
	// Control is the kubeconfig of a control plane that is there already, Members those of its members.
	Control string   `json:"-"`
	Members []string `json:"-"`
}

// An Env is what a scenario works with.
type Env struct {
	rig.Binaries
	// Dir is for the scenario's files; it is removed when all is done.
	Dir string
	Settings

	holder  *fleetHolder
	log     io.Writer
	figures []Figure
	notes   []string
}

// Say tells what goes on.
func (e *Env) Say(format string, args ...any) {
	fmt.Fprintf(e.log, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// Note keeps a remark that the reader of the figures needs.
func (e *Env) Note(format string, args ...any) {
	e.notes = append(e.notes, fmt.Sprintf(format, args...))
}

// Add adds a value to a figure; the first one makes the figure.
func (e *Env) Add(name string, unit Unit, value float64) {
	for i := range e.figures {
		if f := &e.figures[i]; f.Name == name {
			f.Values = append(f.Values, value)
			f.sum()
			return
		}
	}
	f := Figure{Name: name, Unit: unit, Values: []float64{value}, Target: targets()[name]}
	f.sum()
	e.figures = append(e.figures, f)
}

// pause waits, or returns the error of ctx.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
