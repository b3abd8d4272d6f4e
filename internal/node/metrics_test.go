package node

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestMetric(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			t.Errorf("asked for %s, want /metrics", r.URL.Path)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "# HELP go_goroutines Number.\ngo_goroutines_more 1\ngo_goroutines 49\npause{quantile=\"0\"} 0\npause{quantile=\"1\"} 2.5e-05\n")
	}))
	defer server.Close()
	operator := strings.TrimPrefix(server.URL, "http://")
	for series, want := range map[string]float64{"go_goroutines": 49, `pause{quantile="1"}`: 2.5e-05} {
		if got, err := Metric(t.Context(), operator, series); err != nil || got != want {
			t.Errorf("%s is %v, %v, want %v", series, got, err, want)
		}
	}
	if got, err := Metric(t.Context(), operator, "pause"); err == nil {
		t.Errorf("a series that is not there is %v", got)
	}
	status = http.StatusServiceUnavailable
	if got, err := Metric(t.Context(), operator, "go_goroutines"); err == nil {
		t.Errorf("a service that is not ready has %v goroutines", got)
	}
}
