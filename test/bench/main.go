// Command bench measures what docs and release notes say about speed and size. It never judges: a figure beside its
// target is for a reader, and no test depends on one.
//
//	make build
//	go run ./test/bench                                   # every scenario
//	go run ./test/bench -scenario boot -runs 5 -json boot.json
//	go run ./test/bench -compare test/bench/baseline/boot.json
//
// A scenario is one file and one line in the table in scenario.go. What it measures is printed as a table, or as JSON
// with -o json; -json FILE writes the JSON to a file as well.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/karmadactl/karmadactl/test/chaos/rig"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	cancel()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

type options struct {
	scenarios string
	bin       string
	output    string
	sizes     string
	members   string
	json      string
	compare   string
	settings  Settings
}

func run(ctx context.Context, args []string, out, errOut io.Writer) error {
	var o options
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(errOut)
	fs.StringVar(&o.scenarios, "scenario", "", "scenarios to run, separated by commas; default is every one: "+strings.Join(scenarioNames(), ", "))
	fs.IntVar(&o.settings.Runs, "runs", 3, "how often what takes a moment is measured")
	fs.DurationVar(&o.settings.Settle, "settle", 20*time.Second, "how long a process is left alone before its idle state is measured")
	fs.DurationVar(&o.settings.Idle, "idle", 30*time.Second, "how long the idle state is measured")
	fs.DurationVar(&o.settings.Steady, "steady", 5*time.Minute, "how long a control plane with work is watched when nothing changes")
	fs.StringVar(&o.sizes, "sizes", "500", "how many Deployments to propagate; several numbers, separated by commas, one after the other")
	fs.IntVar(&o.settings.Bindings, "bindings", 12000, "how many bindings to render")
	fs.IntVar(&o.settings.Placements, "placements", 5000, "how many bindings to schedule at once")
	fs.StringVar(&o.settings.Control, "control", "", "kubeconfig of a control plane to measure instead of a new one, with clusters member1, member2 and member3")
	fs.StringVar(&o.members, "members", "", "kubeconfigs of those three clusters, separated by commas")
	fs.StringVar(&o.bin, "bin", "", "directory of karmadactl and karmada; default is $KARMADA_BIN, else _output/bin")
	fs.StringVar(&o.output, "o", "table", "what to print: table or json")
	fs.StringVar(&o.json, "json", "", "write the JSON to this file, too")
	fs.StringVar(&o.compare, "compare", "", "print the difference to an earlier result, the JSON of which is in this file")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if err := o.complete(fs.Args()); err != nil {
		return err
	}
	chosen, err := chooseScenarios(o.scenarios)
	if err != nil {
		return err
	}
	var before *Report
	if o.compare != "" {
		if before, err = loadReport(o.compare); err != nil {
			return err
		}
	}
	binaries, err := rig.FindBinaries(o.bin)
	if err != nil {
		return err
	}
	report, err := measure(ctx, binaries, o.settings, chosen, errOut)
	// What was measured before something went wrong is worth showing.
	return errors.Join(err, show(report, before, o, out))
}

func (o *options) complete(rest []string) error {
	var errs []error
	for one := range strings.SplitSeq(o.sizes, ",") {
		n, err := strconv.Atoi(one)
		if err != nil || n < 1 {
			errs = append(errs, fmt.Errorf("-sizes=%s: want numbers, separated by commas", o.sizes))
			break
		}
		o.settings.Sizes = append(o.settings.Sizes, n)
	}
	if o.members != "" {
		o.settings.Members = strings.Split(o.members, ",")
	}
	if o.settings.Control != "" && len(o.settings.Members) != len(fleetMembers()) || o.settings.Control == "" && o.members != "" {
		errs = append(errs, fmt.Errorf("-control needs -members with %d kubeconfigs, and the other way round", len(fleetMembers())))
	}
	if len(rest) > 0 {
		errs = append(errs, fmt.Errorf("unexpected argument %q", rest[0]))
	}
	if o.settings.Runs < 1 {
		errs = append(errs, fmt.Errorf("-runs=%d: want at least 1", o.settings.Runs))
	}
	if o.settings.Idle < time.Second {
		errs = append(errs, fmt.Errorf("-idle=%s: want at least 1s", o.settings.Idle))
	}
	if o.settings.Bindings < 1 {
		errs = append(errs, fmt.Errorf("-bindings=%d: want at least 1", o.settings.Bindings))
	}
	if o.settings.Placements < 1 {
		errs = append(errs, fmt.Errorf("-placements=%d: want at least 1", o.settings.Placements))
	}
	if o.output != "table" && o.output != "json" {
		errs = append(errs, fmt.Errorf("-o %s: want table or json", o.output))
	}
	return errors.Join(errs...)
}

// measure runs scenarios one after the other, in a directory that goes afterwards.
func measure(ctx context.Context, b rig.Binaries, s Settings, chosen []Scenario, errOut io.Writer) (report Report, err error) {
	report = Report{Machine: describeMachine(), Build: describeBuild(ctx, b), Started: time.Now().UTC().Truncate(time.Second), Settings: s}
	base, err := os.MkdirTemp("", "karmada-bench-")
	if err != nil {
		return report, fmt.Errorf("make a directory to work in: %w", err)
	}
	holder := &fleetHolder{}
	defer func() {
		if holder.destroy != nil {
			err = errors.Join(err, holder.destroy(context.WithoutCancel(ctx)))
		}
		err = errors.Join(err, os.RemoveAll(base))
	}()
	for _, scenario := range chosen {
		e := &Env{Binaries: b, Dir: base, Settings: s, holder: holder, log: errOut}
		result := Result{Scenario: scenario.Name, LoadBefore: loadAverage()}
		if wasBusy(result.LoadBefore) {
			e.Note("the machine was busy before this began: times are longer than on one that is not")
		}
		err := scenario.Run(ctx, e)
		result.Figures, result.Notes, result.LoadAfter = e.figures, e.notes, loadAverage()
		report.Results = append(report.Results, result)
		if err != nil {
			return report, fmt.Errorf("scenario %s: %w", scenario.Name, err)
		}
	}
	return report, nil
}

func show(report Report, before *Report, o options, out io.Writer) error {
	var errs []error
	if o.json != "" {
		errs = append(errs, saveReport(o.json, report))
	}
	if o.output == "json" {
		return errors.Join(append(errs, writeJSON(out, report))...)
	}
	errs = append(errs, writeTable(out, report))
	if before != nil {
		errs = append(errs, writeComparison(out, *before, report))
	}
	return errors.Join(errs...)
}
