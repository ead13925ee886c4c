package main

import (
	"slices"
)

// A Unit is what a figure counts.
type Unit string

// The units of figures. Less is better in all of them.
const (
	Seconds Unit = "s"
	Millis  Unit = "ms"
	MiB     Unit = "MiB"
	Cores   Unit = "cores"
	Ratio   Unit = "x"
	Count   Unit = ""
)

const mebi = 1 << 20

// A Figure is something measured once or more often.
type Figure struct {
	Name   string    `json:"name"`
	Unit   Unit      `json:"unit"`
	Values []float64 `json:"values"`
	Min    float64   `json:"min"`
	Median float64   `json:"median"`
	Max    float64   `json:"max"`
	Target *Target   `json:"target,omitempty"`
	// Met says whether the median is within the target. It is nil when there is none.
	Met *bool `json:"met,omitempty"`
}

// sum brings everything that follows from the values up to date.
func (f *Figure) sum() {
	f.Min, f.Max, f.Median = slices.Min(f.Values), slices.Max(f.Values), median(f.Values)
	if f.Target != nil {
		met := f.Median <= f.Target.Limit
		f.Met = &met
	}
}

// median returns the middle of values, of which there is at least one.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// A Target is what a figure should be at most.
type Target struct {
	Limit float64 `json:"limit"`
	// Goal is what would be better still; 0 when there is none.
	Goal float64 `json:"goal,omitempty"`
}

// Names of the figures that have a target.
const (
	coldInit    = "cold init"
	warmStart   = "warm start"
	planeRSS    = "idle RSS, all"
	planeCPU    = "idle CPU, all"
	memberReady = "member ready"
	memberRSS   = "member idle RSS"
	versionVs   = "version / kubectl"
	helpVs      = "--help / kubectl"

	registerTime   = "register until ready, 100 nodes"
	agentRSS       = "agent idle RSS, karmada-agent"
	agentAnonymous = "agent idle anonymous, karmada-agent"
	agentCPU       = "agent idle CPU, karmada-agent"

	steadyCPU      = "steady CPU"
	steadyWrites   = "steady writes"
	renderEach     = "each Work"
	scheduleEach   = "each binding, 3 members"
	scheduleWide   = "each binding, 100 clusters"
	overrideCreate = "OverridePolicy created"
	overrideEdit   = "OverridePolicy edited"
)

// targets are what the project holds itself to, on two cores.
func targets() map[string]*Target {
	return map[string]*Target{
		coldInit:    {Limit: 6},
		warmStart:   {Limit: 4},
		planeRSS:    {Limit: 450, Goal: 350},
		planeCPU:    {Limit: 0.05},
		memberReady: {Limit: 6},
		memberRSS:   {Limit: 450},
		versionVs:   {Limit: 1},
		helpVs:      {Limit: 1},

		getFew:       {Limit: 0.3},
		getManyFirst: {Limit: 1},

		joinFigure(0):    {Limit: 2},
		joinFigure(100):  {Limit: 2},
		joinFigure(5000): {Limit: 5},
		agentRSS:         {Limit: 100},
		agentAnonymous:   {Limit: 40},
		agentCPU:         {Limit: 0.005},

		"500 Deployments: ready and status back / floor":   {Limit: 2, Goal: 1.3},
		"2000 Deployments: ready and status back / floor":  {Limit: 2, Goal: 1.3},
		"500 Deployments: CPU of the control plane":        {Limit: 50},
		"500 Deployments: writes per object":               {Limit: 21, Goal: 17},
		"2000 Deployments: writes per object":              {Limit: 21, Goal: 17},
		steadyCPU:                                          {Limit: 0.1},
		steadyWrites:                                       {Limit: 0},
		renderEach:                                         {Limit: 2, Goal: 1},                     // 500 and 1,000 Works a second
		scheduleEach:                                       {Limit: 1000. / 220, Goal: 1000. / 680}, // 220 and 680 bindings a second
		"a single binding on 3 members: p99":               {Limit: 50},
		"a single binding on 100 clusters: p99":            {Limit: 50},
		overrideCreate:                                     {Limit: 10},
		overrideEdit:                                       {Limit: 10},
		"from a Deployment to its binding, 10000 policies": {Limit: 10},

		"admit propagationpolicy.karmada.io, at the webhook: p99":                 {Limit: 5},
		"validating propagationpolicy.karmada.io, at the webhook: p99":            {Limit: 5},
		"validating overridepolicy.karmada.io, at the webhook: p99":               {Limit: 5},
		"admit work.karmada.io, at the webhook: p99":                              {Limit: 5},
		"admit propagationpolicy.karmada.io, by the API server: % above 5ms":      {Limit: 1},
		"validating propagationpolicy.karmada.io, by the API server: % above 5ms": {Limit: 1},
	}
}
