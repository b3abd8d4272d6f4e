package command

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"ashlar/app"
	"ashlar/app/config"
	"ashlar/internal/await"
)

// A server says what keeps it from taking the memory that its configuration allows it, and is silent otherwise.
func TestWarnOfServedMemory(t *testing.T) {
	const most = math.MaxInt64
	usual := servedMemory{rows: 128 << 20, caches: 280 << 20, answers: 1 << 30} // the defaults, with one EVM network
	small := servedMemory{rows: 32 << 20, caches: 256 << 20, answers: 64 << 20} // as docs/guides/sizing.md has it
	for _, test := range []struct {
		name            string
		memory          servedMemory
		available, heap int64
		says            []string
	}{
		{"enough", usual, 2 << 30, most, nil},
		{"not known", usual, 0, most, nil},
		{"256 MiB", usual, 256 << 20, most, []string{
			`memory="1791.0 MiB" available="256.0 MiB" cache="128.0 MiB" caches_of_networks="280.0 MiB" limits.memory="1024.0 MiB"`, "lower cache, networks.NAME.state_cache or limits.memory"}},
		{"512 MiB", usual, 512 << 20, most, []string{`available="512.0 MiB"`}},
		{"small", small, 512 << 20, 400 << 20, nil},
		{"small without a limit of the heap", small, 512 << 20, most, []string{`memory="687.0 MiB"`, "set GOMEMLIMIT"}},
		{"answers beyond the limit of the heap", usual, 1 << 30, 400 << 20, []string{`memory="1511.0 MiB"`}},
		{"small GOMEMLIMIT", usual, 8 << 30, 300 << 20, []string{"raise GOMEMLIMIT", `limit="300.0 MiB" expected="359.0 MiB"`}},
	} {
		var out strings.Builder
		test.memory.warn(slog.New(slog.NewTextHandler(&out, nil)), test.available, test.heap)
		if (out.Len() == 0) != (test.says == nil) {
			t.Errorf("%s: the log is %q", test.name, out.String())
		}
		for _, says := range test.says {
			if !strings.Contains(out.String(), says) {
				t.Errorf("%s: %q, want %q in it", test.name, out.String(), says)
			}
		}
	}
}

// lines receives the lines of a log, as long as there is room.
type lines chan string

func (l lines) Write(text []byte) (int, error) {
	select {
	case l <- string(text):
	default:
	}
	return len(text), nil
}

// TestServersWarnOfMemory: both kinds of server say at the start that their caches do not fit.
func TestServersWarnOfMemory(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(300 << 20))
	before, log := slog.Default(), make(lines, 100)
	slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
	defer slog.SetDefault(before)
	c := config.Default()
	c.Data, c.Listen = t.TempDir(), "127.0.0.1:0"
	demoOf(t, app.Families().Default(), c.Data, "demo", 0)
	for name, run := range map[string]func(context.Context) error{
		"serve": func(ctx context.Context) error {
			return Serve(ctx, func() (config.Config, error) { return c, nil }, nil)
		},
		"demo": func(ctx context.Context) error {
			return Demo{Listen: "127.0.0.1:0", Blocks: 1, Interval: time.Hour}.Run(ctx, io.Discard)
		},
	} {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- run(ctx) }()
		for line := ""; !strings.Contains(line, `limit="300.0 MiB" expected="359.0 MiB"`); {
			line = await.Receive(t, name+"'s warning", log)
		}
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) { // the demo may not have begun to serve
			t.Errorf("%s: %v", name, err)
		}
	}
}
