package load

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// A Write is one kind of request that changes something.
type Write struct {
	Group, Resource, Subresource, Verb string
}

func (w Write) String() string {
	s := w.Resource
	if w.Group != "" {
		s += "." + w.Group
	}
	if w.Subresource != "" {
		s += "/" + w.Subresource
	}
	return w.Verb + " " + s
}

// Writes counts successful requests that change something, as an API server
// itself does: in its metric apiserver_request_total.
type Writes map[Write]float64

// Writes reads the counters of an API server as they are now.
func (t *Target) Writes(ctx context.Context) (Writes, error) {
	data, err := t.raw.Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the metrics of %s: %w", t.Name, err)
	}
	return parseWrites(data)
}

func parseWrites(data []byte) (Writes, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	w := Writes{}
	for _, m := range families["apiserver_request_total"].GetMetric() {
		if !strings.HasPrefix(label(m, "code"), "2") || label(m, "dry_run") != "" {
			continue
		}
		switch verb := label(m, "verb"); verb {
		case "POST", "PUT", "PATCH", "DELETE", "APPLY", "DELETECOLLECTION":
			w[Write{Group: label(m, "group"), Resource: label(m, "resource"), Subresource: label(m, "subresource"), Verb: verb}] += m.GetCounter().GetValue()
		}
	}
	return w, nil
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// Since returns what was written after before, without what goes on all the
// time and is no work on objects: events, leases, the status of clusters, and
// reviews, which write nothing.
func (w Writes) Since(before Writes) Writes {
	diff := Writes{}
	for kind, n := range w {
		if n -= before[kind]; n > 0 && !isBackground(kind) {
			diff[kind] = n
		}
	}
	return diff
}

// EventsSince returns how many events were recorded after before.
func (w Writes) EventsSince(before Writes) float64 {
	sum := 0.0
	for kind, n := range w {
		if kind.Resource == "events" {
			sum += n - before[kind]
		}
	}
	return sum
}

func isBackground(w Write) bool {
	switch w.Resource {
	case "events", "leases", "subjectaccessreviews", "tokenreviews", "selfsubjectaccessreviews", "localsubjectaccessreviews", "selfsubjectreviews":
		return true
	case "clusters":
		return w.Subresource == "status"
	}
	return false
}

// Total is the number of all.
func (w Writes) Total() float64 {
	sum := 0.0
	for _, n := range w {
		sum += n
	}
	return sum
}

// Kinds lists what was written, most first.
func (w Writes) Kinds() []Write {
	var kinds []Write
	for kind := range w {
		kinds = append(kinds, kind)
	}
	slices.SortFunc(kinds, func(a, b Write) int {
		return cmp.Or(cmp.Compare(w[b], w[a]), cmp.Compare(a.String(), b.String()))
	})
	return kinds
}
