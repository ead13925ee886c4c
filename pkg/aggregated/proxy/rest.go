// Package proxy serves clusters/proxy: requests to the API servers of member
// clusters, on behalf of those who are known here (spec: behaviour/09 9.2).
//
// Whoever may use clusters/<name>/proxy reaches the member with the rights that
// a user of the same name and groups has there: the request is sent with the
// token of the cluster's impersonator, which may act as the users that the
// control plane has given access. Nothing that the requester sent to prove or to
// claim an identity goes along.
//
// A REST connects; a target is what a request wants, a hop passes it on, a trip
// carries it to one member, and everywhere serves clusters/*/proxy.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	restclient "k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/member"
)

// Subresource is the name of what this package serves.
const Subresource = "proxy"

// allClusters is the name that stands for all of them.
const allClusters = "*"

// Clusters reads Clusters, which must not be changed.
type Clusters interface {
	// Cluster returns one; the error of one that does not exist says so to clients.
	Cluster(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error)
	// Clusters returns all, in any order.
	Clusters(ctx context.Context) ([]clusterv1alpha1.Cluster, error)
}

// Options are what a REST needs to know of the control plane.
type Options struct {
	Clusters Clusters
	// Secrets reads Secrets of the control plane, without a cache.
	Secrets member.Secrets
	// ControlPlane is how this server reaches the control plane's API server. Its
	// credentials must be allowed to impersonate users.
	ControlPlane *restclient.Config
}

// How long to wait.
type patience struct {
	// answer is for the answer of a member to begin, where the member itself would
	// cut the request before: API servers take at most a minute.
	answer time.Duration
	// all is for each of many members to answer in full.
	all time.Duration
	// doubtful is for members that are known not to be well.
	doubtful time.Duration
}

func defaultPatience() patience {
	return patience{answer: 70 * time.Second, all: 30 * time.Second, doubtful: 3 * time.Second}
}

// REST serves clusters/proxy.
type REST struct {
	clusters Clusters
	members  *members
	plane    *plane
	patience patience
	stop     context.Context // ends requests that would go on for ever
	end      context.CancelFunc
}

var (
	_ rest.Storage   = &REST{}
	_ rest.Connecter = &REST{}
)

// NewREST returns the storage of clusters/proxy.
func NewREST(o Options) (*REST, error) {
	return newREST(o, defaultPatience())
}

func newREST(o Options, p patience) (*REST, error) {
	if o.Clusters == nil || o.Secrets == nil || o.ControlPlane == nil {
		return nil, errors.New("proxy to member clusters: Clusters, Secrets and ControlPlane are needed")
	}
	plane, err := newPlane(o.ControlPlane)
	if err != nil {
		return nil, fmt.Errorf("proxy to member clusters: %w", err)
	}
	stop, end := context.WithCancel(context.Background())
	return &REST{
		clusters: o.Clusters,
		members:  newMembers(newSecrets(o.Secrets, time.Now), p.answer),
		plane:    plane,
		patience: p,
		stop:     stop,
		end:      end,
	}, nil
}

// New returns an empty Cluster, which is what a proxy is part of.
func (r *REST) New() runtime.Object { return &clusterv1alpha1.Cluster{} }

// Stop ends watches, logs and connections, so that a server that stops does not
// have to wait for them. Others come to their own end.
func (r *REST) Stop() { r.end() }

// Destroy stops, and gives up connections.
func (r *REST) Destroy() {
	r.Stop()
	r.members.close()
}

// ConnectMethods returns the methods that are passed on (spec: behaviour/09 9.2).
func (r *REST) ConnectMethods() []string {
	return []string{
		http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodHead, http.MethodOptions,
	}
}

// NewConnectOptions says that there is a path after the name. It is read from
// the request as it was sent, and there is nothing else to decode.
func (r *REST) NewConnectOptions() (runtime.Object, bool, string) { return nil, true, "path" }

// Connect returns what passes a request on to the cluster of that name.
func (r *REST) Connect(ctx context.Context, name string, _ runtime.Object, responder rest.Responder) (http.Handler, error) {
	u, ok := request.UserFrom(ctx)
	if !ok || u.GetName() == "" {
		return nil, apierrors.NewUnauthorized("nobody knows who asks")
	}
	if name == allClusters {
		return r.handler(responder, func(w http.ResponseWriter, req *http.Request, t *target) error {
			return (&everywhere{REST: r, user: u, target: t, responder: responder}).serve(w, req)
		}), nil
	}
	c, err := r.cluster(ctx, name)
	if err != nil {
		return nil, err
	}
	return r.handler(responder, func(w http.ResponseWriter, req *http.Request, t *target) error {
		return r.forward(w, req, c, u, t, responder)
	}), nil
}

// handler serves requests whose target is known; an error is told to whoever
// asks.
func (r *REST) handler(responder rest.Responder, serve func(http.ResponseWriter, *http.Request, *target) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		t, err := targetOf(req)
		if err == nil {
			err = serve(w, req, t)
		}
		if err != nil {
			responder.Error(err)
		}
	})
}

func (r *REST) cluster(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error) {
	c, err := r.clusters.Cluster(ctx, name)
	if apierrors.IsNotFound(err) {
		r.members.forget(name)
	}
	return c, err
}

// forward passes a request on to one cluster, unless it deletes there what is
// protected.
func (r *REST) forward(w http.ResponseWriter, req *http.Request, c *clusterv1alpha1.Cluster, u user.Info, t *target, responder rest.Responder) error {
	if err := r.unlessProtected(req.Context(), c, u, t); err != nil {
		return err
	}
	h, err := r.toMember(req.Context(), c, u, t, responder)
	if err != nil {
		return err
	}
	h.serve(w, req)
	return nil
}
