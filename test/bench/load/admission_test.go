package load

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestAdmissionCalls(t *testing.T) {
	const before = `# TYPE apiserver_admission_webhook_admission_duration_seconds histogram
apiserver_admission_webhook_admission_duration_seconds_bucket{name="p",operation="CREATE",rejected="false",type="admit",le="0.005"} 1
apiserver_admission_webhook_admission_duration_seconds_bucket{name="p",operation="CREATE",rejected="false",type="admit",le="+Inf"} 1
apiserver_admission_webhook_admission_duration_seconds_sum{name="p",operation="CREATE",rejected="false",type="admit"} 0.001
apiserver_admission_webhook_admission_duration_seconds_count{name="p",operation="CREATE",rejected="false",type="admit"} 1
`
	const after = `# TYPE apiserver_admission_webhook_admission_duration_seconds histogram
apiserver_admission_webhook_admission_duration_seconds_bucket{name="p",operation="CREATE",rejected="false",type="admit",le="0.005"} 3
apiserver_admission_webhook_admission_duration_seconds_bucket{name="p",operation="CREATE",rejected="false",type="admit",le="+Inf"} 4
apiserver_admission_webhook_admission_duration_seconds_sum{name="p",operation="CREATE",rejected="false",type="admit"} 0.027
apiserver_admission_webhook_admission_duration_seconds_count{name="p",operation="CREATE",rejected="false",type="admit"} 4
apiserver_admission_webhook_admission_duration_seconds_bucket{name="p",operation="UPDATE",rejected="true",type="admit",le="0.005"} 1
apiserver_admission_webhook_admission_duration_seconds_bucket{name="p",operation="UPDATE",rejected="true",type="admit",le="+Inf"} 1
apiserver_admission_webhook_admission_duration_seconds_sum{name="p",operation="UPDATE",rejected="true",type="admit"} 0.002
apiserver_admission_webhook_admission_duration_seconds_count{name="p",operation="UPDATE",rejected="true",type="admit"} 1
`
	was, err := parseAdmissionCalls([]byte(before))
	if err != nil {
		t.Fatal(err)
	}
	is, err := parseAdmissionCalls([]byte(after))
	if err != nil {
		t.Fatal(err)
	}
	got := is["admit p"].Since(was["admit p"])
	if got.Count != 4 || got.Mean().Round(time.Microsecond) != 7*time.Millisecond || got.Within(5*time.Millisecond) != 0.75 {
		t.Errorf("%+v, mean %s, %.2f within 5 ms: want 4 calls, 7 ms, 0.75", got, got.Mean(), got.Within(5*time.Millisecond))
	}
}

func TestQuantile(t *testing.T) {
	var all []time.Duration
	for i := 100; i > 0; i-- {
		all = append(all, time.Duration(i))
	}
	for share, want := range map[float64]time.Duration{0.5: 50, 0.99: 99, 1: 100} {
		if got := Quantile(all, share); got != want {
			t.Errorf("%v of 1 to 100 are not above %d, got %d", share, want, got)
		}
	}
}

func TestAtRate(t *testing.T) {
	errOne := errors.New("one failed")
	took, err := AtRate(t.Context(), 20, 10000, func(context.Context, int) error { return nil })
	if err != nil || len(took) != 20 {
		t.Errorf("%d durations, %v", len(took), err)
	}
	_, err = AtRate(t.Context(), 20, 10000, func(_ context.Context, i int) error {
		if i == 7 {
			return errOne
		}
		return nil
	})
	if !errors.Is(err, errOne) {
		t.Errorf("error %v, want %v: a figure of what failed is none", err, errOne)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := AtRate(ctx, 1000, 1, func(context.Context, int) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v when it is cancelled", err)
	}
}
