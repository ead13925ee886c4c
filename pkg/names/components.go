package names

// Names of the components, which are also the names of their binaries, of
// their Deployments and Services, and (where they elect a leader) of their
// leases (spec: behaviour/01 1.3, cli/components.md 0).
const (
	ControllerManager     = "karmada-controller-manager"
	Scheduler             = "karmada-scheduler"
	Webhook               = "karmada-webhook"
	Agent                 = "karmada-agent"
	Descheduler           = "karmada-descheduler"
	SchedulerEstimator    = "karmada-scheduler-estimator"
	Search                = "karmada-search"
	MetricsAdapter        = "karmada-metrics-adapter"
	AggregatedAPIServer   = "karmada-aggregated-apiserver"
	KubeControllerManager = "kube-controller-manager"
	APIServer             = "karmada-apiserver"
	Etcd                  = "karmada-etcd"
)

// DefaultScheduler is the scheduler name of a policy that names none.
const DefaultScheduler = "default-scheduler"
