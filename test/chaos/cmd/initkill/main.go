// Command initkill kills `karmadactl init` with SIGKILL at random points, as often as it is told to, and finds out
// each time whether the next init completes the installation and deinit removes it without a trace.
//
//	go run ./test/chaos/cmd/initkill -kills 100
//
// It prints a line for each kill, and the seed with which the same points come again. It exits with 1 when an
// installation did not survive; then its directory is kept, without processes, for somebody to look into.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/karmadactl/karmadactl/test/chaos"
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
	kills  int
	seed   uint64
	within time.Duration
	bin    string
	json   string
}

func run(ctx context.Context, args []string, out, errOut io.Writer) error {
	var o options
	fs := flag.NewFlagSet("initkill", flag.ContinueOnError)
	fs.SetOutput(errOut)
	fs.IntVar(&o.kills, "kills", 100, "how many times to kill init")
	fs.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "where the random points come from; with -within the same seed gives the same points")
	fs.DurationVar(&o.within, "within", 0, "kill within this time of the start; 0 measures how long an init takes here")
	fs.StringVar(&o.bin, "bin", "", "directory of karmadactl and karmada; default is $KARMADA_BIN, else _output/bin")
	fs.StringVar(&o.json, "json", "", "write the outcome to this file, too")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	binaries, err := rig.FindBinaries(o.bin)
	if err != nil {
		return err
	}
	base, err := os.MkdirTemp("", "karmada-chaos-")
	if err != nil {
		return fmt.Errorf("make a directory to work in: %w", err)
	}
	k := &killer{options: o, binaries: binaries, base: base, out: out}
	err = k.run(ctx)
	if k.keep {
		return err
	}
	return errors.Join(err, os.RemoveAll(base))
}

// An Outcome is what all kills came to.
type Outcome struct {
	Seed     uint64        `json:"seed"`
	Within   time.Duration `json:"within"`
	Kills    int           `json:"kills"`
	Finished int           `json:"finishedBefore"` // inits that had ended before they could be killed
	Failures []Failure     `json:"failures"`
}

// A Failure is an installation that did not survive.
type Failure struct {
	Kill  int           `json:"kill"`
	After time.Duration `json:"after"`
	Last  string        `json:"lastLine"`
	Error string        `json:"error"`
	Dir   string        `json:"dir"`
}

type killer struct {
	options
	binaries rig.Binaries
	base     string
	out      io.Writer
	outcome  Outcome
	keep     bool
}

func (k *killer) run(ctx context.Context) error {
	if k.within == 0 {
		if err := k.measure(ctx); err != nil {
			return fmt.Errorf("an init that nobody kills: %w", err)
		}
	}
	fmt.Fprintf(k.out, "%d kills within %s, seed %d (again: -seed=%d -within=%s)\n", k.kills, k.within, k.seed, k.seed, k.within)
	k.outcome = Outcome{Seed: k.seed, Within: k.within, Failures: []Failure{}}
	random := rand.New(rand.NewPCG(k.seed, 0))
	for n := 1; n <= k.kills && ctx.Err() == nil; n++ {
		if err := k.one(ctx, n, time.Duration(random.Int64N(int64(k.within)))); err != nil {
			return err
		}
	}
	return k.report(ctx)
}

// measure finds out how long an init takes that nobody kills.
func (k *killer) measure(ctx context.Context) error {
	p, err := rig.NewPlane(k.binaries, filepath.Join(k.base, "measure"))
	if err != nil {
		return err
	}
	begin := time.Now()
	_, err = p.Init(ctx)
	k.within = time.Since(begin).Round(time.Millisecond)
	if err == nil {
		err = chaos.Removed(ctx, p)
	}
	return errors.Join(err, p.Destroy(context.WithoutCancel(ctx)))
}

// one kills one init. The error is one of this program: what happens to the installation is part of the outcome.
func (k *killer) one(ctx context.Context, n int, after time.Duration) error {
	p, err := rig.NewPlane(k.binaries, filepath.Join(k.base, fmt.Sprintf("kill-%03d", n)))
	if err != nil {
		return err
	}
	begin := time.Now()
	strike, err := chaos.StrikeInit(ctx, p, chaos.Point{After: after}, syscall.SIGKILL)
	if err != nil {
		return errors.Join(err, p.Destroy(context.WithoutCancel(ctx)))
	}
	failure := chaos.Survives(ctx, p)
	if ctx.Err() != nil { // interrupted: what came of it says nothing
		return p.Destroy(context.WithoutCancel(ctx))
	}
	k.outcome.Kills++
	if strike.Finished {
		k.outcome.Finished++
	}
	verdict := "survived"
	if failure != nil {
		verdict = "FAILED"
	}
	fmt.Fprintf(k.out, "%3d  %-8s killed after %-7s %s (%s)\n", n, verdict, after.Round(time.Millisecond), strike, time.Since(begin).Round(100*time.Millisecond))
	if failure == nil {
		return p.Destroy(ctx)
	}
	fmt.Fprintf(k.out, "     %v\n", failure)
	k.keep = true
	k.outcome.Failures = append(k.outcome.Failures, Failure{Kill: n, After: after, Last: strike.LastLine, Error: failure.Error(), Dir: p.Dir})
	return rig.KillAll(context.WithoutCancel(ctx), p.Dir)
}

func (k *killer) report(ctx context.Context) error {
	o := k.outcome
	fmt.Fprintf(k.out, "%d kills (%d of them too late), %d survived, %d failed\n", o.Kills, o.Finished, o.Kills-len(o.Failures), len(o.Failures))
	if k.json != "" {
		data, err := json.MarshalIndent(o, "", "  ")
		if err == nil {
			err = os.WriteFile(k.json, append(data, '\n'), 0o644)
		}
		if err != nil {
			return fmt.Errorf("write the outcome: %w", err)
		}
	}
	if len(o.Failures) > 0 {
		return fmt.Errorf("%d of %d installations did not survive; they are kept below %s", len(o.Failures), o.Kills, k.base)
	}
	return ctx.Err()
}
