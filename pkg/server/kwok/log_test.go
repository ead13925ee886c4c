package kwok

import (
	"context"
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
)

func TestKwokLogger(t *testing.T) {
	cases := map[string]struct {
		reason    string
		verbosity int
		stopped   bool
		want      []string
	}{
		"Quiet": {
			reason: "What goes wrong is logged, each pod's changes are not.",
			want:   []string{`"level"=0 "msg"="odd" "logger"="kwok" "node"="n"`, `"msg"="failed" "error"="boom" "logger"="kwok" "a"="1" "b"="2"`},
		},
		"Verbose": {
			reason:    "Changes are, when asked for.",
			verbosity: changeVerbosity,
			want: []string{
				`"level"=4 "msg"="Patch pod" "logger"="kwok"`,
				`"level"=0 "msg"="odd" "logger"="kwok" "node"="n"`,
				`"msg"="failed" "error"="boom" "logger"="kwok" "a"="1" "b"="2"`,
			},
		},
		"Stopped": {
			reason:  "Requests that were cut off at the end are nobody's trouble.",
			stopped: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			sink := funcr.New(func(prefix, args string) { got = append(got, args) }, funcr.Options{Verbosity: tc.verbosity})
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			ctx = withKwokLogger(ctx, sink.WithValues("logger", "kwok"))
			if tc.stopped {
				cancel()
			}
			l := kwoklog.FromContext(ctx)
			l.Debug("Skip pod")
			l.Info("Patch pod")
			l.Warn("odd", "node", "n")
			l.Error("failed", "err", errors.New("boom"), "b", "2", "a", "1")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestKwokLoggerSilent(t *testing.T) {
	// The zero logger of Options must not panic, nor print.
	o := valid()
	o.Logger = logr.Logger{}
	o, err := o.complete()
	if err != nil {
		t.Fatal(err)
	}
	kwoklog.FromContext(withKwokLogger(context.Background(), o.Logger)).Error("x", "err", errors.New("y"))
}
