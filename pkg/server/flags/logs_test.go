package flags_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karmadactl/karmadactl/pkg/features"
	"github.com/karmadactl/karmadactl/pkg/server/flags"
)

// TestLogsApply is the only test that sets up logging, which a process does
// once; it puts back what it changes.
func TestLogsApply(t *testing.T) {
	gate, err := features.New()
	if err != nil {
		t.Fatal(err)
	}
	restore := klog.CaptureState()
	t.Cleanup(func() {
		restore.Restore()
		if err := logsapi.ResetForTest(gate); err != nil {
			t.Error(err)
		}
		var fs flag.FlagSet
		klog.InitFlags(&fs)
		for name, value := range map[string]string{"logtostderr": "true", "log_file": "", "stderrthreshold": "2"} {
			if err := fs.Set(name, value); err != nil {
				t.Error(err)
			}
		}
	})

	file := filepath.Join(t.TempDir(), "log")
	bad := flags.NewLogs()
	parse(t, bad.AddFlags, []string{"--log-backtrace-at=nowhere"})
	if err := bad.Apply(gate); err == nil || !strings.Contains(err.Error(), "--log-backtrace-at") {
		t.Errorf("what klog refuses is told by flag, got: %v", err)
	}

	l := flags.NewLogs()
	parse(t, l.AddFlags, []string{"--log-file=" + file, "--logtostderr=false", "--stderrthreshold=FATAL", "-v=2"})
	if err := l.Apply(gate); err != nil {
		t.Fatal(err)
	}
	klog.Background().V(2).Info("From klog")
	klog.Background().V(3).Info("Too much")
	crlog.Log.Info("From controller-runtime")
	klog.Flush()

	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("klog's own flags must work, --log-file among them: %v", err)
	}
	for want, there := range map[string]bool{"From klog": true, "From controller-runtime": true, "Too much": false} {
		if strings.Contains(string(content), want) != there {
			t.Errorf("the log holds %q: %v, want %v; it is:\n%s", want, !there, there, content)
		}
	}
}
