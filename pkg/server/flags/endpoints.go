package flags

import (
	"net"
	"strconv"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Endpoints are the addresses, other than that of its service, which a role
// listens on. Each serves plain HTTP.
type Endpoints struct {
	// HealthProbe serves /healthz and /readyz; "0" or "" disables it.
	HealthProbe string
	// Metrics serves /metrics; "0" or "" disables it.
	Metrics string
	// Profiling serves /debug/pprof when EnableProfiling is set.
	Profiling       string
	EnableProfiling bool
}

// NewEndpoints returns the defaults, with the health probe of the role.
func NewEndpoints(healthProbe string) Endpoints {
	return Endpoints{HealthProbe: healthProbe, Metrics: ":8080", Profiling: ":6060"}
}

// AddFlags registers the flags.
func (e *Endpoints) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&e.HealthProbe, "health-probe-bind-address", e.HealthProbe, "The TCP address for health probes, /healthz and /readyz (e.g. 127.0.0.1:10357, :10357). \"0\" disables them.")
	fs.StringVar(&e.Metrics, "metrics-bind-address", e.Metrics, "The TCP address for metrics, /metrics (e.g. 127.0.0.1:8080, :8080). \"0\" disables them.")
	fs.BoolVar(&e.EnableProfiling, "enable-pprof", e.EnableProfiling, "Serve profiles of the running process, /debug/pprof. They show memory and command lines: do not offer them to the public.")
	fs.StringVar(&e.Profiling, "profiling-bind-address", e.Profiling, "The TCP address for profiles (e.g. 127.0.0.1:6060, :6060). Only with --enable-pprof.")
}

// Validate reports addresses that cannot be listened on, and those that two
// servers would want at once.
func (e *Endpoints) Validate() field.ErrorList {
	type server struct{ flag, address string }
	servers := []server{
		{"health-probe-bind-address", e.HealthAddress()},
		{"metrics-bind-address", e.MetricsAddress()},
		{"profiling-bind-address", e.ProfilingAddress()},
	}
	var (
		errs field.ErrorList
		used []server
	)
	for _, s := range servers {
		if s.address == disabled {
			continue
		}
		if problem := badAddress(s.address); problem != "" {
			errs = append(errs, field.Invalid(Path(s.flag), s.address, problem))
			continue
		}
		for _, other := range used {
			if collide(s.address, other.address) {
				errs = append(errs, field.Invalid(Path(s.flag), s.address, "is also the address of --"+other.flag))
			}
		}
		used = append(used, s)
	}
	return errs
}

// disabled is how controller-runtime is told not to listen. It takes the empty
// string for its own default where metrics are concerned.
const disabled = "0"

// HealthAddress returns the address of probes, "0" when they are disabled.
func (e *Endpoints) HealthAddress() string { return orDisabled(e.HealthProbe) }

// MetricsAddress returns the address of metrics, "0" when they are disabled.
func (e *Endpoints) MetricsAddress() string { return orDisabled(e.Metrics) }

// ProfilingAddress returns the address of profiles, "0" when they are disabled.
func (e *Endpoints) ProfilingAddress() string {
	if !e.EnableProfiling {
		return disabled
	}
	return orDisabled(e.Profiling)
}

func orDisabled(address string) string {
	if address == "" {
		return disabled
	}
	return address
}

func badAddress(address string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return "must have the form HOST:PORT or :PORT, or be \"0\" for none"
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return "must have a port from 0 to 65535"
	}
	return ""
}

// collide says whether one address keeps the other from being listened on.
// Port 0 means any free one.
func collide(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB || portA == "0" {
		return false
	}
	return hostA == hostB || everyHost(hostA) || everyHost(hostB)
}

func everyHost(host string) bool {
	return host == "" || net.ParseIP(host).IsUnspecified()
}
