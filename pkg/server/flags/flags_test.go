package flags_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"

	"github.com/karmadactl/karmadactl/pkg/features"
	"github.com/karmadactl/karmadactl/pkg/server/flags"
)

func TestControllers(t *testing.T) {
	known := []string{"a", "b", "off"}
	cases := map[string]struct {
		reason  string
		args    []string
		enabled []string
		invalid []string
	}{
		"Default":        {reason: "By default all run that are not off by default.", enabled: []string{"a", "b"}},
		"One":            {reason: "Without a star only those run that are named.", args: []string{"--controllers=a"}, enabled: []string{"a"}},
		"StarAndOff":     {reason: "Naming one adds it to the star.", args: []string{"--controllers=*,off"}, enabled: []string{"a", "b", "off"}},
		"StarLast":       {reason: "The place of the star does not matter.", args: []string{"--controllers=off,*"}, enabled: []string{"a", "b", "off"}},
		"Without":        {reason: "A minus disables.", args: []string{"--controllers=*,-a"}, enabled: []string{"b"}},
		"WithoutAlone":   {reason: "A minus alone enables nothing.", args: []string{"--controllers=-a"}},
		"FirstWins":      {reason: "Of two entries for one name the first decides.", args: []string{"--controllers=*,-a,a"}, enabled: []string{"b"}},
		"FirstWinsToo":   {reason: "Of two entries for one name the first decides.", args: []string{"--controllers=a,-a"}, enabled: []string{"a"}},
		"Repeated":       {reason: "The flag may be given several times.", args: []string{"--controllers=*", "--controllers=-b"}, enabled: []string{"a"}},
		"Unknown":        {reason: "Unknown names are errors, all of them.", args: []string{"--controllers=*,nope,-never"}, enabled: []string{"a", "b"}, invalid: []string{"nope", "-never"}},
		"CaseSensitive":  {reason: "Names are exact.", args: []string{"--controllers=A"}, invalid: []string{"A"}},
		"Nothing":        {reason: "An empty list runs nothing.", args: []string{"--controllers="}},
		"MinusStarAlone": {reason: "There is no such entry as -*.", args: []string{"--controllers=-*"}, invalid: []string{"-*"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := flags.NewControllers(known, []string{"off"})
			parse(t, c.AddFlags, tc.args)
			var enabled []string
			for _, k := range known {
				if c.Enabled(k) {
					enabled = append(enabled, k)
				}
			}
			if diff := cmp.Diff(tc.enabled, enabled); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			var invalid []string
			for _, err := range c.Validate() {
				invalid = append(invalid, err.BadValue.(string))
				if !strings.Contains(err.Error(), `"off"`) {
					t.Errorf("the error %q does not say what is valid", err)
				}
			}
			if diff := cmp.Diff(tc.invalid, invalid); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	cases := map[string]struct {
		reason   string
		validate func(*testing.T) field.ErrorList
		fields   []string
	}{
		"LeaderElectionDefaults": {
			reason:   "The defaults are fine.",
			validate: leaderElection(),
		},
		"LeaseTooShort": {
			reason:   "A lease that runs out before the leader gives up has two leaders.",
			validate: leaderElection("--leader-elect-lease-duration=10s"),
			fields:   []string{"--leader-elect-lease-duration"},
		},
		"RenewTooShort": {
			reason:   "There must be time for a second attempt.",
			validate: leaderElection("--leader-elect-renew-deadline=2400ms"),
			fields:   []string{"--leader-elect-renew-deadline"},
		},
		"LeaderElectionAll": {
			reason: "Everything wrong is reported at once.",
			validate: leaderElection("--leader-elect-lease-duration=0s", "--leader-elect-retry-period=-1s",
				"--leader-elect-resource-namespace=No", "--leader-elect-resource-name="),
			fields: []string{"--leader-elect-lease-duration", "--leader-elect-retry-period", "--leader-elect-resource-namespace", "--leader-elect-resource-name"},
		},
		"LeaderElectionOff": {
			reason:   "What is not used is not judged.",
			validate: leaderElection("--leader-elect=false", "--leader-elect-lease-duration=0s"),
		},
		"EndpointsDefaults": {reason: "The defaults are fine.", validate: endpoints()},
		"EndpointsOff": {
			reason:   "Zero and nothing disable a server; what is disabled cannot collide.",
			validate: endpoints("--health-probe-bind-address=0", "--metrics-bind-address=", "--profiling-bind-address=nonsense"),
		},
		"EndpointsBad": {
			reason:   "An address needs a port that exists.",
			validate: endpoints("--health-probe-bind-address=localhost", "--metrics-bind-address=:70000", "--enable-pprof", "--profiling-bind-address=[::1"),
			fields:   []string{"--health-probe-bind-address", "--metrics-bind-address", "--profiling-bind-address"},
		},
		"EndpointsCollide": {
			reason:   "Two servers cannot have one address; every host includes each.",
			validate: endpoints("--health-probe-bind-address=127.0.0.1:9000", "--metrics-bind-address=:9000"),
			fields:   []string{"--metrics-bind-address"},
		},
		"EndpointsApart": {
			reason: "The same port on two hosts is no collision, nor are free ports.",
			validate: endpoints("--health-probe-bind-address=127.0.0.1:9000", "--metrics-bind-address=127.0.0.2:9000",
				"--enable-pprof", "--profiling-bind-address=127.0.0.1:0"),
		},
		"LimitsNegative": {
			reason: "A burst cannot be negative; no limit at all is fine.",
			validate: func(t *testing.T) field.ErrorList {
				l := flags.KubeAPILimits()
				parse(t, l.AddFlags, []string{"--kube-api-qps=-1", "--kube-api-burst=-1"})
				return l.Validate()
			},
			fields: []string{"--kube-api-burst"},
		},
		"LimitsNotANumber": {
			reason: "Floats may be no number.",
			validate: func(t *testing.T) field.ErrorList {
				l := flags.ClusterAPILimits()
				parse(t, l.AddFlags, []string{"--cluster-api-qps=NaN"})
				return l.Validate()
			},
			fields: []string{"--cluster-api-qps"},
		},
		"RateLimiter": {
			reason: "Values with which nothing would be tried again are all reported.",
			validate: func(t *testing.T) field.ErrorList {
				r := flags.NewRateLimiterFlags()
				parse(t, r.AddFlags, []string{"--rate-limiter-base-delay=0s", "--rate-limiter-max-delay=-1s", "--rate-limiter-qps=0", "--rate-limiter-bucket-size=-1"})
				return r.Validate()
			},
			fields: []string{"--rate-limiter-base-delay", "--rate-limiter-max-delay", "--rate-limiter-qps", "--rate-limiter-bucket-size"},
		},
		"Skipped": {
			reason: "Both lists are parsed.",
			validate: func(t *testing.T) field.ErrorList {
				s := flags.NewSkipped()
				parse(t, s.AddFlags, []string{"--skipped-propagating-apis=a/b/c/d;/v1", "--skipped-propagating-namespaces=("})
				return s.Validate()
			},
			fields: []string{"--skipped-propagating-apis", "--skipped-propagating-namespaces"},
		},
		"FeatureGates": {
			reason: "Every unknown gate is reported, and known ones are not.",
			validate: func(t *testing.T) field.ErrorList {
				gate, err := features.New()
				if err != nil {
					t.Fatal(err)
				}
				var f flags.FeatureGates
				parse(t, func(fs *pflag.FlagSet) { f.AddFlags(fs, gate) }, []string{"--feature-gates=Flying=true,Failover=true", "--feature-gates=Diving=false"})
				return f.Validate(gate)
			},
			fields: []string{"--feature-gates", "--feature-gates"},
		},
		"Logs": {
			reason: "Errors of the logging library are told by flag.",
			validate: func(t *testing.T) field.ErrorList {
				gate, err := features.New()
				if err != nil {
					t.Fatal(err)
				}
				l := flags.NewLogs()
				parse(t, l.AddFlags, []string{"--logging-format=xml", "--log-flush-frequency=0s", "--log-text-split-stream", "--log-file=x"})
				return l.Validate(gate)
			},
			fields: []string{"--log-flush-frequency", "--logging-format", "--log-text-split-stream", "--log-text-split-stream"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range tc.validate(t) {
				got = append(got, err.Field)
			}
			if diff := cmp.Diff(tc.fields, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func leaderElection(args ...string) func(*testing.T) field.ErrorList {
	return func(t *testing.T) field.ErrorList {
		l := flags.NewLeaderElection("some-role")
		parse(t, func(fs *pflag.FlagSet) {
			l.AddFlags(fs)
			l.AddNameFlag(fs)
		}, args)
		return l.Validate()
	}
}

func endpoints(args ...string) func(*testing.T) field.ErrorList {
	return func(t *testing.T) field.ErrorList {
		e := flags.NewEndpoints(":10357")
		parse(t, e.AddFlags, args)
		return e.Validate()
	}
}

func TestError(t *testing.T) {
	one := field.ErrorList{field.Required(flags.Path("a"), "why")}
	cases := map[string]struct {
		reason string
		errs   field.ErrorList
		want   string
	}{
		"None": {reason: "Nothing wrong is no error."},
		"One":  {reason: "One error fits on a line.", errs: one, want: "invalid flag: --a: Required value: why"},
		"Two": {
			reason: "Several have a line each.",
			errs:   append(one, field.Required(flags.Path("b"), "why not")),
			want:   "2 invalid flags:\n  --a: Required value: why\n  --b: Required value: why not",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := flags.Error(tc.errs); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestLimitsApply(t *testing.T) {
	type limits struct {
		QPS   float32
		Burst int
	}
	cases := map[string]struct {
		reason string
		limits flags.Limits
		args   []string
		want   limits
	}{
		"NoLimit":  {reason: "The control plane is not limited by default; client-go takes zero for its own default.", limits: flags.KubeAPILimits(), want: limits{QPS: -1}},
		"Zero":     {reason: "Zero is no limit, too.", limits: flags.KubeAPILimits(), args: []string{"--kube-api-qps=0"}, want: limits{QPS: -1}},
		"Derived":  {reason: "A burst that is not given follows from the rate.", limits: flags.KubeAPILimits(), args: []string{"--kube-api-qps=5.5"}, want: limits{QPS: 5.5, Burst: 9}},
		"Both":     {reason: "What is given is taken.", limits: flags.KubeAPILimits(), args: []string{"--kube-api-qps=40", "--kube-api-burst=60"}, want: limits{QPS: 40, Burst: 60}},
		"Cluster":  {reason: "Members are protected by default.", limits: flags.ClusterAPILimits(), want: limits{QPS: 40, Burst: 60}},
		"NoMember": {reason: "That can be turned off.", limits: flags.ClusterAPILimits(), args: []string{"--cluster-api-qps=-1"}, want: limits{QPS: -1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			parse(t, tc.limits.AddFlags, tc.args)
			config := &rest.Config{QPS: 7, Burst: 7}
			tc.limits.Apply(config)
			if diff := cmp.Diff(tc.want, limits{config.QPS, config.Burst}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestKubeconfig(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const good = `{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],"contexts":[{"name":"c","context":{"cluster":"c"}}]}`
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBECONFIG", write("other", good)) // must not be fallen back to

	cases := map[string]struct {
		reason string
		file   string
		host   string
		err    string
	}{
		"File":    {reason: "The file that is given is read.", file: write("good", good), host: "https://127.0.0.1:1"},
		"Missing": {reason: "A file that is not there is named.", file: filepath.Join(dir, "none"), err: "none"},
		"Broken":  {reason: "A file that is none is an error.", file: write("broken", "{"), err: "read kubeconfig"},
		"NoFile":  {reason: "Nothing that happens to be in the environment is taken instead.", err: "must be given"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			k := flags.Kubeconfig{File: tc.file}
			config, err := k.RESTConfig()
			switch {
			case tc.err != "":
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("error %v does not say %q\n%s", err, tc.err, tc.reason)
				}
			case err != nil:
				t.Errorf("%v\n%s", err, tc.reason)
			case config.Host != tc.host:
				t.Errorf("host %q, want %q\n%s", config.Host, tc.host, tc.reason)
			}
		})
	}
}

func TestRateLimiter(t *testing.T) {
	r := flags.NewRateLimiterFlags()
	r.BaseDelay, r.MaxDelay, r.BucketSize = time.Second, 3*time.Second, 2

	item := flags.NewRateLimiter[string](r, true)
	var got []time.Duration
	for range 3 {
		got = append(got, item.When("a"))
	}
	got = append(got, item.When("b"))
	want := []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, time.Second}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("each item has a delay of its own, which doubles up to the maximum (-want +got):\n%s", diff)
	}

	r.BaseDelay, r.MaxDelay, r.QPS = time.Nanosecond, time.Nanosecond, 1
	all := flags.NewRateLimiter[int](r, false)
	for i := range r.BucketSize {
		if d := all.When(i); d > time.Nanosecond {
			t.Errorf("retry %d is within the bucket, and waits %s", i, d)
		}
	}
	if d := all.When(99); d <= time.Nanosecond {
		t.Error("beyond the bucket the whole queue is slowed down")
	}
}

func TestSkippedDefaults(t *testing.T) {
	s := flags.NewSkipped()
	parse(t, s.AddFlags, []string{"--skipped-propagating-apis=batch"})
	apis, namespaces, errs := s.Parse()
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, group := range []string{"batch", "work.karmada.io"} {
		if !apis.Has(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Any"}) {
			t.Errorf("%s is not skipped: the flag adds to what always is", group)
		}
	}
	if !namespaces.Has("kube-system") || namespaces.Has("default") {
		t.Error("by default kube-* is skipped, and nothing else of users")
	}
}

func TestParsingChangesNothingOfTheProcess(t *testing.T) {
	l := flags.NewLogs()
	parse(t, l.AddFlags, []string{"--log-file=/nowhere", "--logtostderr=false", "--stderrthreshold=3", "--add-dir-header"})
	fs := pflag.NewFlagSet("again", pflag.ContinueOnError)
	flags.NewLogs().AddFlags(fs)
	for name, want := range map[string]string{"log-file": "", "logtostderr": "true", "stderrthreshold": "2", "add-dir-header": "false"} {
		if got := fs.Lookup(name).DefValue; got != want {
			t.Errorf("--%s of the process has become %q: flags of one role must not change logging of all", name, got)
		}
	}
}

func TestLogFlagsThatCannotBeParsed(t *testing.T) {
	for _, arg := range []string{"--logtostderr=perhaps", "--log-file-max-size=-1", "--v=loud", "--log-flush-frequency=often"} {
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		flags.NewLogs().AddFlags(fs)
		if err := fs.Parse([]string{arg}); err == nil {
			t.Errorf("%s was accepted", arg)
		}
	}
}

func parse(t *testing.T, add func(*pflag.FlagSet), args []string) {
	t.Helper()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	add(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatalf("parse %v: %v", args, err)
	}
}
