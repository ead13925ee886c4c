package bind

import (
	"context"
	"errors"
	"fmt"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/policy"
	"github.com/karmadactl/karmadactl/pkg/template"
)

// A feed fills the queue of templates. It tells the matcher of all policies
// before the first template is worked on: a choice among some of them would stick.
type feed struct {
	cache     cache.Cache
	templates Templates
	matcher   Matcher
	ledger    *ledger
	queue     *inbox

	mu     sync.Mutex
	synced []toolscache.InformerSynced
}

var _ source.TypedSyncingSource[Key] = (*feed)(nil)

// Start implements source.TypedSource.
func (f *feed) Start(ctx context.Context, q workqueue.TypedRateLimitingInterface[Key]) error {
	f.queue.open(q)
	policies := toolscache.ResourceEventHandlerFuncs{
		AddFunc:    f.setPolicy,
		UpdateFunc: func(_, obj any) { f.setPolicy(obj) },
		DeleteFunc: f.deletePolicy,
	}
	bindings := toolscache.ResourceEventHandlerFuncs{AddFunc: f.followBound, DeleteFunc: f.bindAgain}
	err := errors.Join(
		f.watch(ctx, &policyv1alpha1.PropagationPolicy{}, policies),
		f.watch(ctx, &policyv1alpha1.ClusterPropagationPolicy{}, policies),
		f.watch(ctx, &workv1alpha2.ResourceBinding{}, bindings),
		f.watch(ctx, &workv1alpha2.ClusterResourceBinding{}, bindings),
	)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, f.templates.Subscribe(f.template))
	return nil
}

func (f *feed) watch(ctx context.Context, o client.Object, h toolscache.ResourceEventHandler) error {
	i, err := f.cache.GetInformer(ctx, o, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch %T: %w", o, err)
	}
	r, err := i.AddEventHandler(h)
	if err != nil {
		return fmt.Errorf("watch %T: %w", o, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.synced = append(f.synced, r.HasSynced)
	return nil
}

// WaitForSync implements source.TypedSyncingSource. Templates themselves are not
// waited for: a kind that cannot be listed stops no other.
func (f *feed) WaitForSync(ctx context.Context) error {
	f.mu.Lock()
	synced := f.synced
	f.mu.Unlock()
	if !toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		return fmt.Errorf("wait for policies and bindings: %w", ctx.Err())
	}
	return nil
}

func (f *feed) setPolicy(obj any) {
	if p, ok := obj.(policy.Object); ok {
		know(f.matcher, f.templates, p)
	}
}

// know tells those of a policy who have to know it.
func know(m Matcher, t Templates, p policy.Object) {
	m.Set(p)
	for _, s := range p.PropagationSpec().ResourceSelectors {
		t.Follow(gvkOf(s))
	}
}

func (f *feed) deletePolicy(obj any) {
	if unknown, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	if p, ok := obj.(policy.Object); ok {
		f.matcher.Delete(p.GetNamespace(), p.GetName())
	}
}

func (f *feed) followBound(obj any) {
	if b, ok := obj.(binding.Object); ok {
		f.templates.Follow(binding.GVK(b.BindingSpec().Resource))
	}
}

// bindAgain has a template worked on whose binding is gone: when it is still
// there, somebody has deleted the binding, or its successor waited for that.
func (f *feed) bindAgain(obj any) {
	if unknown, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	b, ok := obj.(binding.Object)
	if !ok {
		return
	}
	k := keyOfRef(b.BindingSpec().Resource)
	if t, known := f.templates.Cached(k.GroupVersionKind, k.Namespace, k.Name); t != nil || !known {
		f.queue.put(k, 0)
	}
}

// template takes in what happened to a template.
func (f *feed) template(e template.Event) {
	switch {
	case e.New == nil:
		// Its binding goes with it, by its owner reference.
		f.ledger.forget(keyOf(e.Old))
	case e.Old == nil && e.Initial:
		f.queue.put(keyOf(e.New), later)
	case e.Old == nil:
		f.ledger.touch(keyOf(e.New))
		f.queue.put(keyOf(e.New), 0)
	case matters(e.Old, e.New):
		if userChanged(e.Old, e.New) {
			f.ledger.touch(keyOf(e.New))
		}
		if !f.ledger.isOurs(keyOf(e.New), e.New.GetResourceVersion()) {
			f.queue.put(keyOf(e.New), 0)
		}
	}
}
