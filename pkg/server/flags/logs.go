package flags

import (
	"flag"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Logs says how to log. Logging belongs to the whole process, which is why
// nothing of it changes while flags are parsed, and Apply is called once, by
// the command.
type Logs struct {
	config *logsapi.LoggingConfiguration
	klog   []*klogValue
}

// NewLogs returns the defaults: text to stderr.
func NewLogs() *Logs {
	return &Logs{config: logsapi.NewLoggingConfiguration(), klog: klogValues()}
}

// AddFlags registers the flags of the logging library and those of klog.
func (l *Logs) AddFlags(fs *pflag.FlagSet) {
	logsapi.AddFlags(l.config, fs)
	for _, v := range l.klog {
		f := fs.VarPF(v, v.name, "", v.usage)
		if v.isBool {
			f.NoOptDefVal = "true"
		}
	}
}

// Validate reports what the logging library refuses.
func (l *Logs) Validate(gate featuregate.FeatureGate) field.ErrorList {
	errs := logsapi.Validate(l.config, gate, nil)
	for _, err := range errs {
		err.Field = "--" + logsFlag(err.Field)
	}
	if l.config.Options.Text.SplitStream && l.usesKlog() {
		errs = append(errs, field.Forbidden(Path("log-text-split-stream"), "cannot be combined with "+strings.Join(l.klogFlags(), ", ")))
	}
	return errs
}

// logsFlag returns the flag for a field of the logging configuration.
func logsFlag(path string) string {
	name, _, _ := strings.Cut(path, "[")
	switch name {
	case "format":
		return "logging-format"
	case "flushFrequency":
		return logsapi.LogFlushFreqFlagName
	case "verbosity":
		return "v"
	case "options.text.splitStream":
		return "log-text-split-stream"
	case "options.text.infoBufferSize":
		return "log-text-info-buffer-size"
	default:
		return name
	}
}

// Apply sets up logging for the whole process: klog, and controller-runtime
// through it.
func (l *Logs) Apply(gate featuregate.FeatureGate) error {
	for _, v := range l.klog {
		if err := v.apply(); err != nil {
			return err
		}
	}
	if err := logsapi.ValidateAndApply(l.config, gate); err != nil {
		return fmt.Errorf("set up logging: %w", err)
	}
	if l.usesKlog() {
		// The library's own writer knows nothing of these flags; klog's does.
		klog.ClearLogger()
	}
	log.SetLogger(klog.Background())
	return nil
}

func (l *Logs) usesKlog() bool { return len(l.klogFlags()) > 0 }

func (l *Logs) klogFlags() []string {
	var typed []string
	for _, v := range l.klog {
		if v.changed {
			typed = append(typed, "--"+v.name)
		}
	}
	return typed
}

// A klogValue is a flag of klog that takes effect when it is applied, not when
// it is parsed: klog's own values are those of the whole process.
type klogValue struct {
	name, usage string
	typ         string
	text        string
	isBool      bool
	changed     bool
	target      flag.Value
}

// klogValues returns klog's flags except those that the logging library has too.
func klogValues() []*klogValue {
	var (
		fs     flag.FlagSet
		values []*klogValue
	)
	klog.InitFlags(&fs)
	fs.VisitAll(func(f *flag.Flag) {
		if f.Name == "v" || f.Name == "vmodule" {
			return
		}
		p := pflag.PFlagFromGoFlag(f)
		values = append(values, &klogValue{
			name:   strings.ReplaceAll(f.Name, "_", "-"),
			usage:  dashed(f.Usage),
			typ:    p.Value.Type(),
			text:   f.DefValue,
			isBool: p.Value.Type() == "bool",
			target: f.Value,
		})
	})
	return values
}

// dashed spells the flags that a usage text mentions the way they are here.
func dashed(usage string) string {
	return strings.NewReplacer(
		"-legacy_stderr_threshold_behavior=false", "--legacy-stderr-threshold-behavior is false",
		"-alsologtostderr", "--alsologtostderr",
		"-logtostderr", "--logtostderr",
	).Replace(usage)
}

func (v *klogValue) String() string { return v.text }
func (v *klogValue) Type() string   { return v.typ }

// Set takes note of a value. Those that klog alone can judge are judged when
// they are applied.
func (v *klogValue) Set(text string) error {
	var err error
	switch v.typ {
	case "bool":
		_, err = strconv.ParseBool(text)
	case "uint64":
		_, err = strconv.ParseUint(text, 0, 64)
	}
	if err != nil {
		return fmt.Errorf("parse as %s: %w", v.typ, err)
	}
	v.text, v.changed = text, true
	return nil
}

func (v *klogValue) apply() error {
	if !v.changed {
		return nil
	}
	if err := v.target.Set(v.text); err != nil {
		return fmt.Errorf("set --%s to %q: %w", v.name, v.text, err)
	}
	return nil
}
