package main

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestLogFormats: durations have their unit in both formats.
func TestLogFormats(t *testing.T) {
	for format, want := range map[string]string{"text": "took=1.5s", "json": `"took":"1.5s"`} {
		var out strings.Builder
		handler, err := logHandler(&out, format, "info")
		if err != nil {
			t.Fatal(err)
		}
		slog.New(handler).Info("done", "took", 1500*time.Millisecond)
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: %s, expected %s", format, out.String(), want)
		}
	}
}
