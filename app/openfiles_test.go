package app

import (
	"strings"
	"testing"
)

// Connections leave files to the stores. A process with a high limit accepts as many as are configured.
func TestConnectionsWithinOpenFiles(t *testing.T) {
	for _, test := range []struct {
		files              uint64
		configured, stores int
		want               int
	}{
		{0, 30_000, 2, 30_000}, // not known
		{128, 30_000, 2, 64},
		{1024, 30_000, 2, 512},
		{1024, 100, 2, 100},
		{20_000, 30_000, 2, 17_750},
		{20_000, 20_000, 2, 17_750}, // chosen
		{32_250, 30_000, 2, 30_000},
		{1 << 20, 30_000, 2, 30_000},
		{1<<64 - 1, 30_000, 2, 30_000}, // infinite
	} {
		out := captureLog(t)
		if got := connectionsWithin(t.Context(), test.files, test.configured, test.stores); got != test.want {
			t.Errorf("%d of %d connections with %d files and %d stores, expected %d", got, test.configured, test.files, test.stores, test.want)
		}
		if said := strings.Contains(out.String(), "accepting fewer connections than configured"); said != (test.want < test.configured) {
			t.Errorf("%+v: said %t", test, said)
		}
		if warned := strings.Contains(out.String(), `"level":"WARN"`); warned != (test.configured == 20_000) {
			t.Errorf("%+v: a warning %t", test, warned)
		}
	}
}
