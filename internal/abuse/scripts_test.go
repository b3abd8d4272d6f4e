package abuse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ashlar/internal/node"
)

// harmlessScript counts instructions.
const harmlessScript = `{n: 0, step: function() { this.n++ }, fault: function() {}, result: function() { return this.n }}`

// TestScripts sends scripts that do not end, allocate and throw, and clients that leave in
// the middle of one. Each gets its error, and afterwards nothing runs and a script is answered.
func TestScripts(t *testing.T) {
	bin, err := node.BuildAshlar(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	service, at, err := (node.Ashlar{Bin: bin, Data: t.TempDir()}).Demo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer service.Kill()
	client := node.NewClient(at)
	trace := func(ctx context.Context, script, timeout string) (result json.RawMessage, err error) {
		call := map[string]string{"to": "0x0000000000000000000000000000000000000004", "data": "0x01"}
		return result, client.Call(ctx, &result, "debug_traceCall", call, "latest", map[string]string{"tracer": script, "timeout": timeout})
	}
	script := func(result string) string { return `{fault: function() {}, result: function() { ` + result + ` }}` }
	endless := script(`for (;;) {}`)
	for name, c := range map[string]struct{ script, want string }{
		"endless":            {endless, "execution timeout"},
		"endless to read":    {`{fault: function() {}, result: (function() { for (;;) {} })()}`, "execution timeout"},
		"endless search":     {script(`return /^(?=a)(a+)+$/.test("` + strings.Repeat("a", 40) + `b")`), "execution timeout"},
		"allocates texts":    {script(`var s = "0123456789abcdef"; for (;;) s += s`), ""},
		"allocates arrays":   {script(`var a = []; for (;;) a.push(new Array(1000).fill(1))`), ""},
		"throws":             {script(`throw "a fault"`), "a fault"},
		"throws at first":    {`(function() { throw "a fault" })()`, "a fault"},
		"recursive":          {script(`var f = function() { return f() + 1 }; return f()`), ""},
		"is not a tracer":    {`{}`, "must expose"},
		"is not JavaScript":  {`{{{`, "SyntaxError"},
		"reads files":        {script(`return require("fs").readFileSync("/etc/passwd")`), "require is not defined"},
		"opens a connection": {script(`return fetch("http://127.0.0.1")`), "fetch is not defined"},
	} {
		t.Run(name, func(t *testing.T) {
			timeout := "20s"
			if c.want == "execution timeout" {
				timeout = "300ms"
			}
			result, err := trace(t.Context(), c.script, timeout)
			var refused *node.Error
			if !errors.As(err, &refused) || !strings.Contains(refused.Message, c.want) {
				t.Errorf("%s, %v, expected an error with %q", result, err, c.want)
			}
		})
	}
	var leaving sync.WaitGroup
	for range 20 {
		leaving.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, _ = trace(ctx, endless, "300ms") // the client leaves
		})
	}
	leaving.Wait()
	if result, err := trace(t.Context(), harmlessScript, "20s"); err != nil {
		t.Errorf("a script after all: %s, %v", result, err)
	}
	for deadline := time.Now().Add(time.Minute); ; {
		before := childTimes(t, service.PID())
		time.Sleep(300 * time.Millisecond)
		if fmt.Sprint(before) == fmt.Sprint(childTimes(t, service.PID())) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a worker still runs")
		}
	}
	if err := service.Stop(); err != nil {
		t.Error(err)
	}
}

// childTimes returns the processor time of the children of a process, by their ID.
func childTimes(t *testing.T, parent int) map[string]string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(files) == 0 {
		t.Skip("processes are not listed in /proc")
	}
	times := make(map[string]string)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		id, _, _ := strings.Cut(string(text), " ")
		// After the name, in parentheses: state, parent, ..., times of user and system.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if fields[1] == fmt.Sprint(parent) {
			times[id] = fields[11] + " " + fields[12]
		}
	}
	return times
}
