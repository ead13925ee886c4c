package load

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// A Webhook is one that an API server asks when requests come in.
type Webhook struct {
	Name string
	// Type is admit for one that changes objects, validating for one that checks them, as the API server's metrics say.
	Type   string
	url    string
	client *http.Client
}

// Webhooks reads the configurations of an API server. Those of Services are left out: they cannot be reached from here.
func (t *Target) Webhooks(ctx context.Context) ([]Webhook, error) {
	var all []Webhook
	add := func(kind, name string, c admissionregistrationv1.WebhookClientConfig) {
		if c.URL == nil {
			return
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(c.CABundle)
		all = append(all, Webhook{Name: name, Type: kind, url: *c.URL, client: &http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true, // as API servers do
		}}})
	}
	var (
		mutating   admissionregistrationv1.MutatingWebhookConfigurationList
		validating admissionregistrationv1.ValidatingWebhookConfigurationList
	)
	for resource, into := range map[string]any{"mutatingwebhookconfigurations": &mutating, "validatingwebhookconfigurations": &validating} {
		list, err := t.dynamic.Resource(admissionregistrationv1.SchemeGroupVersion.WithResource(resource)).List(ctx, metav1.ListOptions{})
		if err == nil {
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(list.UnstructuredContent(), into)
		}
		if err != nil {
			return nil, fmt.Errorf("read the webhooks of %s: %w", t.Name, err)
		}
	}
	for _, c := range mutating.Items {
		for _, h := range c.Webhooks {
			add("admit", h.Name, h.ClientConfig)
		}
	}
	for _, c := range validating.Items {
		for _, h := range c.Webhooks {
			add("validating", h.Name, h.ClientConfig)
		}
	}
	return all, nil
}

// Review asks a webhook whether an object may be created. A refusal is an error.
func (w Webhook) Review(ctx context.Context, u *unstructured.Unstructured) error {
	raw, err := u.MarshalJSON()
	if err != nil {
		return fmt.Errorf("write %s: %w", u.GetName(), err)
	}
	gvk := u.GroupVersionKind()
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: types.UID(u.GetName()), Operation: admissionv1.Create, Namespace: u.GetNamespace(), Name: u.GetName(),
			Kind: metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}, Object: runtime.RawExtension{Raw: raw},
		},
	})
	if err != nil {
		return fmt.Errorf("write a review: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("ask %s: %w", w.Name, err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := w.client.Do(req)
	if err != nil {
		return fmt.Errorf("ask %s: %w", w.Name, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("ask %s: %w", w.Name, err)
	}
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(data, &answer); err != nil || answer.Response == nil {
		return fmt.Errorf("%s answers %s: %.200s", w.Name, resp.Status, data)
	}
	if r := answer.Response; !r.Allowed {
		return fmt.Errorf("%s refuses %s: %s", w.Name, u.GetName(), r.Result.Message)
	}
	return nil
}

// Try creates an object without storing it: it is admitted as any other.
func (t *Target) Try(ctx context.Context, u *unstructured.Unstructured) error {
	r, err := t.resource(u)
	if err != nil {
		return err
	}
	if _, err := r.Create(ctx, u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		return fmt.Errorf("try to create %s %s on %s: %w", u.GetKind(), u.GetName(), t.Name, err)
	}
	return nil
}

// AtRate does something count times, so many times a second whether or not the one before is done, and returns how long
// each took from when it was due: who comes late has waited.
func AtRate(ctx context.Context, count, perSecond int, do func(ctx context.Context, i int) error) ([]time.Duration, error) {
	took, errs := make([]time.Duration, count), make([]error, count)
	var group sync.WaitGroup
	begin := time.Now()
	for i := range count {
		due := begin.Add(time.Duration(i) * time.Second / time.Duration(perSecond))
		timer := time.NewTimer(time.Until(due))
		select {
		case <-ctx.Done():
			timer.Stop()
			group.Wait()
			return nil, ctx.Err()
		case <-timer.C:
		}
		group.Go(func() {
			errs[i] = do(ctx, i)
			took[i] = time.Since(due)
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return took, nil
}

// Quantile is what a share of durations is not above.
func Quantile(all []time.Duration, share float64) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, int(math.Ceil(share*float64(len(sorted))))-1)]
}

// A Histogram counts durations up to each bound, in seconds, as an API server's metrics do.
type Histogram struct {
	Count, Sum float64
	Buckets    map[float64]float64 // how many are not above
}

// AdmissionCalls reads how long calls of webhooks took so far, as the API server itself measures, by type and name.
func (t *Target) AdmissionCalls(ctx context.Context) (map[string]Histogram, error) {
	data, err := t.raw.Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the metrics of %s: %w", t.Name, err)
	}
	return parseAdmissionCalls(data)
}

func parseAdmissionCalls(data []byte) (map[string]Histogram, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	calls := map[string]Histogram{}
	for _, m := range families["apiserver_admission_webhook_admission_duration_seconds"].GetMetric() {
		key := label(m, "type") + " " + label(m, "name")
		calls[key] = calls[key].plus(m.GetHistogram())
	}
	return calls, nil
}

func (h Histogram) plus(m *dto.Histogram) Histogram {
	sum := Histogram{Count: h.Count + float64(m.GetSampleCount()), Sum: h.Sum + m.GetSampleSum(), Buckets: maps.Clone(h.Buckets)}
	if sum.Buckets == nil {
		sum.Buckets = map[float64]float64{}
	}
	for _, b := range m.GetBucket() {
		sum.Buckets[b.GetUpperBound()] += float64(b.GetCumulativeCount())
	}
	return sum
}

// Since is what was added after before.
func (h Histogram) Since(before Histogram) Histogram {
	diff := Histogram{Count: h.Count - before.Count, Sum: h.Sum - before.Sum, Buckets: map[float64]float64{}}
	for bound, n := range h.Buckets {
		diff.Buckets[bound] = n - before.Buckets[bound]
	}
	return diff
}

// Mean is the mean duration.
func (h Histogram) Mean() time.Duration { return time.Duration(h.Sum / h.Count * float64(time.Second)) }

// Within is the share of those that are not above a bound, which has to be one of the buckets.
func (h Histogram) Within(bound time.Duration) float64 { return h.Buckets[bound.Seconds()] / h.Count }
