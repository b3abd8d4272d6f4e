package api

import (
	"testing"

	"ashlar/jsonrpc"
)

// The documentation says what to do about every error that ends a simulation.
func TestRejectionsAreExplained(t *testing.T) {
	for _, r := range rejections {
		if e, ok := jsonrpc.Explain(r.code, r.kind.Error()); !ok || e.Remedy == "" {
			t.Errorf("%d %v has no explanation", r.code, r.kind)
		}
	}
}
