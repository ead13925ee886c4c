package controllermanager

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/controllers/agentcsrapproving"
	"github.com/karmadactl/karmadactl/pkg/controllers/agentrights"
	"github.com/karmadactl/karmadactl/pkg/controllers/cluster"
	"github.com/karmadactl/karmadactl/pkg/controllers/clusterstatus"
	"github.com/karmadactl/karmadactl/pkg/controllers/namespace"
	"github.com/karmadactl/karmadactl/pkg/controllers/rebalancer"
	"github.com/karmadactl/karmadactl/pkg/controllers/unifiedauth"
	"github.com/karmadactl/karmadactl/pkg/exempt"
	"github.com/karmadactl/karmadactl/pkg/features"
	"github.com/karmadactl/karmadactl/pkg/interpreter"
	"github.com/karmadactl/karmadactl/pkg/member"
	"github.com/karmadactl/karmadactl/pkg/metrics"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/pipeline/aggregate"
	"github.com/karmadactl/karmadactl/pkg/pipeline/apply"
	"github.com/karmadactl/karmadactl/pkg/pipeline/bind"
	"github.com/karmadactl/karmadactl/pkg/pipeline/bind/dependencies"
	"github.com/karmadactl/karmadactl/pkg/pipeline/match"
	"github.com/karmadactl/karmadactl/pkg/pipeline/observe"
	"github.com/karmadactl/karmadactl/pkg/pipeline/render"
	"github.com/karmadactl/karmadactl/pkg/server/flags"
	"github.com/karmadactl/karmadactl/pkg/template"
	"github.com/karmadactl/karmadactl/pkg/util/version"
)

// A setting is what controllers are set up with: the choices of the user, and
// what they share.
type setting struct {
	Completed
	// members are the push members, one connection each for all controllers.
	members  *member.Pool
	clusters *metrics.Clusters
	// templates are the objects of users in the control plane, which setupShared
	// makes; interpreter knows what their kinds mean.
	templates   *template.Store
	interpreter *interpreter.Interpreter
	// notes go from who applies Works to who writes their statuses.
	notes      *apply.Notes
	apis       exempt.APIs
	namespaces exempt.Namespaces
}

// newSetting makes what controllers share. Members are reached for as long as
// the manager runs.
func newSetting(mgr manager.Manager, c Completed) (*setting, error) {
	s := &setting{
		Completed:   c,
		interpreter: interpreter.New(interpreter.Options{ForQuotas: c.gate.Enabled(features.ResourceQuotaEstimate)}),
		notes:       apply.NewNotes(),
	}
	var invalid field.ErrorList
	if s.apis, s.namespaces, invalid = c.flags.Skipped.Parse(); len(invalid) > 0 {
		return nil, invalid.ToAggregate()
	}
	var err error
	if s.clusters, err = metrics.NewClusters(c.registerer); err != nil {
		return nil, err
	}
	_, resources := metrics.NewResources(c.registerer)
	_, pools := metrics.NewPools(c.registerer)
	if err := errors.Join(resources, pools, metrics.RegisterBuild(c.registerer, version.Get())); err != nil {
		return nil, err
	}

	ctx, cancel := context.WithCancel(context.Background())
	stop := manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		cancel()
		return nil
	})
	if err := mgr.Add(stop); err != nil {
		cancel()
		return nil, fmt.Errorf("end the connections to members with the manager: %w", err)
	}
	limits := member.Limits{QPS: c.flags.ClusterAPI.QPS, Burst: c.flags.ClusterAPI.Burst}
	s.members = member.NewPool(ctx, member.Push(secrets(mgr.GetClient(), mgr.GetAPIReader()), limits))
	return s, nil
}

// secrets reads the credentials of members: those that join made from the
// cache, which holds that namespace alone, and others live.
func secrets(cached client.Client, live client.Reader) member.Secrets {
	return func(ctx context.Context, in, name string) (*corev1.Secret, error) {
		secret, key := &corev1.Secret{}, client.ObjectKey{Namespace: in, Name: name}
		if in == names.ClusterNamespace {
			err := cached.Get(ctx, key, secret)
			if !apierrors.IsNotFound(err) {
				return secret, err
			}
			// It may be so new that the cache has not heard of it.
		}
		return secret, live.Get(ctx, key, secret)
	}
}

// rateLimiter returns the limiter of one controller's queue.
func (s *setting) rateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return flags.NewRateLimiter[reconcile.Request](s.flags.RateLimiter, s.gate.Enabled(features.ControllerPriorityQueue))
}

// setupShared adds what the stages of the pipeline share: the indices of the
// cache, and the templates.
func setupShared(mgr manager.Manager, s *setting) error {
	if err := binding.Index(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return err
	}
	var err error
	s.templates, err = template.Setup(mgr, s.apis.Has)
	return err
}

func setupAgentCSRApproving(mgr manager.Manager, s *setting) error {
	return errors.Join(
		agentcsrapproving.Setup(mgr, agentcsrapproving.Options{AllowRBACGenerator: s.flags.AgentRBACGenerator}),
		agentrights.Setup(mgr),
	)
}

func setupCluster(mgr manager.Manager, s *setting) error {
	f := s.flags.Cluster
	return cluster.Setup(mgr, cluster.Options{
		RateLimiter:        s.rateLimiter(),
		MonitorPeriod:      f.MonitorPeriod,
		MonitorGracePeriod: f.MonitorGracePeriod,
		StartupGracePeriod: f.StartupGracePeriod,
	})
}

func setupClusterStatus(mgr manager.Manager, s *setting) error {
	f := s.flags.Cluster
	return clusterstatus.Setup(mgr, clusterstatus.Options{
		Pool:             s.members,
		Mine:             clusterstatus.Pushed,
		Frequency:        f.StatusUpdateFrequency,
		SuccessThreshold: f.SuccessThreshold,
		FailureThreshold: f.FailureThreshold,
		ResourceModeling: f.ResourceModeling,
		CustomizedModels: s.gate.Enabled(features.CustomizedClusterResourceModeling),
		Metrics:          s.clusters,
		RateLimiter:      s.rateLimiter(),
	})
}

func setupExecution(mgr manager.Manager, s *setting) error {
	return apply.Setup(mgr, apply.Options{
		Pool:        s.members,
		Interpreter: s.interpreter,
		Notes:       s.notes,
		Concurrency: s.flags.Concurrency.Work,
		RateLimiter: s.rateLimiter(),
		Registerer:  s.registerer,
	})
}

func setupWorkStatus(mgr manager.Manager, s *setting) error {
	return observe.Setup(mgr, observe.Options{
		Pool:        s.members,
		Interpreter: s.interpreter,
		News:        s.notes,
		Concurrency: s.flags.Concurrency.Work,
		RateLimiter: s.rateLimiter(),
	})
}

func setupDetector(mgr manager.Manager, s *setting) error {
	queues := s.gate.Enabled(features.ControllerPriorityQueue)
	return bind.Setup(mgr, bind.Options{
		Templates:                s.templates,
		Matcher:                  match.NewIndex(),
		Interpreter:              s.interpreter,
		ExemptNamespace:          s.namespaces.Has,
		Gate:                     s.gate,
		TemplateConcurrency:      s.flags.Concurrency.ResourceTemplate,
		PolicyConcurrency:        s.flags.Concurrency.PropagationPolicy,
		ClusterPolicyConcurrency: s.flags.Concurrency.ClusterPropagationPolicy,
		TemplateRateLimiter:      flags.NewRateLimiter[bind.Key](s.flags.RateLimiter, queues),
		PolicyRateLimiter:        s.rateLimiter,
		Registerer:               s.registerer,
	})
}

func setupDependencies(mgr manager.Manager, s *setting) error {
	return dependencies.Setup(mgr, dependencies.Options{
		Templates:   s.templates,
		Interpreter: s.interpreter,
		Exempt:      s.apis.Has,
		ReleaseOnly: !s.gate.Enabled(features.PropagateDeps),
		Concurrency: s.flags.Concurrency.DependentResource,
		RateLimiter: s.rateLimiter(),
	})
}

func setupBinding(mgr manager.Manager, s *setting) error {
	return render.Setup(mgr, render.Options{
		Templates:   s.templates,
		Interpreter: s.interpreter,
		InjectState: s.gate.Enabled(features.StatefulFailoverInjection),
		Concurrency: s.flags.Concurrency.ResourceBinding,
		RateLimiter: s.rateLimiter(),
	})
}

func setupBindingStatus(mgr manager.Manager, s *setting) error {
	return aggregate.Setup(mgr, aggregate.Options{
		Templates:   s.templates,
		Interpreter: s.interpreter,
		Concurrency: s.flags.Concurrency.ResourceBinding,
		RateLimiter: s.rateLimiter(),
	})
}

func setupNamespace(mgr manager.Manager, s *setting) error {
	return namespace.Setup(mgr, namespace.Options{
		Exempt:      s.namespaces,
		Concurrency: s.flags.Concurrency.Namespace,
		RateLimiter: s.rateLimiter(),
	})
}

func setupUnifiedAuth(mgr manager.Manager, s *setting) error {
	return unifiedauth.Setup(mgr, unifiedauth.Options{RateLimiter: s.rateLimiter()})
}

func setupWorkloadRebalancer(mgr manager.Manager, s *setting) error {
	return rebalancer.Setup(mgr, rebalancer.Options{RateLimiter: s.rateLimiter()})
}
