package cluster

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apiserver/pkg/registry/rest"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// table prints Clusters (spec: behaviour/09 9.1).
type table struct {
	now func() time.Time
}

var _ rest.TableConvertor = table{}

func (t table) ConvertToTable(_ context.Context, obj, tableOptions runtime.Object) (*metav1.Table, error) {
	out := &metav1.Table{}
	add := func(obj runtime.Object) error {
		c, ok := obj.(*clusterv1alpha1.Cluster)
		if !ok {
			return notCluster(obj)
		}
		out.Rows = append(out.Rows, metav1.TableRow{Cells: t.cells(c), Object: runtime.RawExtension{Object: c}})
		return nil
	}
	if meta.IsListType(obj) {
		if err := meta.EachListItem(obj, add); err != nil {
			return nil, err
		}
	} else if err := add(obj); err != nil {
		return nil, err
	}
	if list, err := meta.ListAccessor(obj); err == nil {
		out.ResourceVersion = list.GetResourceVersion()
		out.Continue = list.GetContinue()
		out.RemainingItemCount = list.GetRemainingItemCount()
	} else if one, err := meta.CommonAccessor(obj); err == nil {
		out.ResourceVersion = one.GetResourceVersion()
	}
	if o, ok := tableOptions.(*metav1.TableOptions); !ok || !o.NoHeaders {
		out.ColumnDefinitions = columns()
	}
	return out, nil
}

func columns() []metav1.TableColumnDefinition {
	const wide = 1
	column := func(name, description string, priority int32) metav1.TableColumnDefinition {
		return metav1.TableColumnDefinition{Name: name, Type: "string", Description: description, Priority: priority}
	}
	name := column("Name", "The name of the cluster.", 0)
	name.Format = "name"
	return []metav1.TableColumnDefinition{
		name,
		column("Version", "The version of the cluster's API server.", 0),
		column("Mode", "Who carries things to the cluster: Push is the control plane, Pull an agent.", 0),
		column("Ready", "Whether the cluster is healthy and accepts workloads.", 0),
		column("Age", "The time since the cluster was registered.", 0),
		column("Zones", "The zones that the cluster spans.", wide),
		column("Region", "Where the cluster is.", wide),
		column("Provider", "Who runs the cluster.", wide),
		column("API-Endpoint", "The URL of the cluster's API server.", wide),
		column("Proxy-URL", "The proxy through which the API server is reached.", wide),
	}
}

func (t table) cells(c *clusterv1alpha1.Cluster) []any {
	ready := string(metav1.ConditionUnknown)
	if condition := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ConditionReady); condition != nil {
		ready = string(condition.Status)
	}
	age := "<unknown>"
	if !c.CreationTimestamp.IsZero() {
		age = duration.HumanDuration(t.now().Sub(c.CreationTimestamp.Time))
	}
	return []any{
		c.Name, orNone(c.Status.KubernetesVersion), string(c.Spec.SyncMode), ready, age,
		orNone(strings.Join(c.Spec.Zones, ",")), orNone(c.Spec.Region), orNone(c.Spec.Provider),
		orNone(c.Spec.APIEndpoint), orNone(c.Spec.ProxyURL),
	}
}

func orNone(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}
