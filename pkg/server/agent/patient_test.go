package agent

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A script is a control plane that answers as it is told, the last answer again
// and again.
type script struct {
	answers []any // a status code or an error
	asked   int
}

func (s *script) RoundTrip(*http.Request) (*http.Response, error) {
	answer := s.answers[min(s.asked, len(s.answers)-1)]
	s.asked++
	if err, ok := answer.(error); ok {
		return nil, err
	}
	code, _ := answer.(int)
	return &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader(""))}, nil
}

func TestPatient(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	other := errors.New("certificate has expired")
	cases := map[string]struct {
		reason  string
		method  string
		answers []any
		asked   int
		status  int // 0: an error
	}{
		"Well":       {"An answer is an answer.", http.MethodGet, []any{200}, 1, 200},
		"Restart":    {"A read outlasts a restart.", http.MethodGet, []any{refused, refused, 200}, 3, 200},
		"ComingUp":   {"An API server that has just come knows no rights yet.", http.MethodGet, []any{refused, 403, 503, 401, 200}, 5, 200},
		"Forbidden":  {"One that has been there all the time means it.", http.MethodGet, []any{403, 200}, 1, 403},
		"StillNot":   {"So does one that still says so after a while.", http.MethodGet, []any{refused, 403}, 21, 403},
		"Gone":       {"Patience ends, so that the failure is told.", http.MethodGet, []any{refused}, 62, 0},
		"OtherError": {"What waiting does not mend is told at once.", http.MethodGet, []any{other}, 1, 0},
		"Write":      {"Nobody knows whether a write was carried out.", http.MethodPut, []any{refused, 200}, 1, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1_000_000, 0)
			s := &script{answers: tc.answers}
			p := &patient{next: s, now: func() time.Time { return now }, wait: func(_ context.Context, d time.Duration) { now = now.Add(d) }}
			request, err := http.NewRequestWithContext(t.Context(), tc.method, "https://127.0.0.1/apis", nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := p.RoundTrip(request)
			status := 0
			if err == nil {
				status = response.StatusCode
			}
			if status != tc.status || s.asked != tc.asked {
				t.Errorf("got %d (%v) after %d requests, want %d after %d\n%s", status, err, s.asked, tc.status, tc.asked, tc.reason)
			}
		})
	}
}

func TestPatientIsTold(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &script{answers: []any{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}}
	p := &patient{next: s, now: time.Now, wait: func(context.Context, time.Duration) { cancel() }}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://127.0.0.1/apis", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.RoundTrip(request); err == nil || s.asked != 2 {
		t.Errorf("whoever is not waited for any more stops waiting: %v after %d requests", err, s.asked)
	}
}
