package trace_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"ashlar/evm/execute"
	"ashlar/evm/trace"
	"ashlar/internal/jsondiff"

	"github.com/ethereum/go-ethereum/eth/tracers/logger"
)

// TestStructLoggerIsGeths: the default tracer writes what go-ethereum's does.
func TestStructLoggerIsGeths(t *testing.T) {
	ran := 0
	eachRecorded(t, func(name string, text []byte) {
		ran++
		var c recorded
		if err := json.Unmarshal(text, &c); err != nil {
			t.Fatal(err)
		}
		for _, options := range []string{`{"limit":3000000}`, `{"enableMemory":true,"enableReturnData":true,"limit":300000}`, `{"disableStack":true,"disableStorage":true}`, `{"limit":5000}`} {
			var config logger.Config
			if err := json.Unmarshal([]byte(options), &config); err != nil {
				t.Fatal(err)
			}
			theirs := logger.NewStructLogger(&config)
			err := c.replay(t.Context(), func(r *execute.Replay) error {
				return r.Trace(t.Context(), execute.Tracer{Hooks: theirs.Hooks(), Stop: theirs.Stop})
			})
			if err != nil {
				t.Fatal(err)
			}
			want, err := theirs.GetResult()
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.traced(t.Context(), options, roomFor(math.MaxInt))
			if err != nil {
				t.Fatal(err)
			}
			a, err := jsondiff.Decode(want)
			if err != nil {
				t.Fatal(err)
			}
			b, err := jsondiff.Decode(got)
			if err != nil {
				t.Fatal(err)
			}
			if differences := jsondiff.Values(a, b); len(differences) > 0 {
				t.Errorf("%s with %s: geth against Ashlar: %v", name, options, differences[0])
			}
		}
	})
	if ran == 0 {
		t.Error("no recorded case was found")
	}
}

// deepest is the recorded transaction with the longest trace.
func deepest(t *testing.T) (found recorded) {
	t.Helper()
	longest := 0
	eachRecorded(t, func(_ string, text []byte) {
		if len(text) > longest {
			longest, found = len(text), recorded{}
			if err := json.Unmarshal(text, &found); err != nil {
				t.Fatal(err)
			}
		}
	})
	return found
}

// TestTracesEndAtTheirRoom: no tracer collects much more than its answer may hold.
func TestTracesEndAtTheirRoom(t *testing.T) {
	c := deepest(t)
	for _, options := range []string{`{}`, `{"tracer":"callTracer"}`, `{"tracer":"flatCallTracer"}`} {
		room := &countedRoom{limit: 1000}
		if _, err := c.traced(t.Context(), options, room); !errors.Is(err, errFull) {
			t.Errorf("%s: %v, expected %v", options, err, errFull)
		}
		if room.largest > 10_000 {
			t.Errorf("%s: %d bytes were collected under a limit of %d", options, room.largest, room.limit)
		}
	}
}

// countedRoom remembers the largest length it was asked about.
type countedRoom struct{ limit, largest int }

func (r *countedRoom) Check(length int) error {
	r.largest = max(r.largest, length)
	return roomFor(r.limit).Check(length)
}

// TestScriptsEnd: JavaScript that does not end is ended, by its own time or when the
// client leaves.
func TestScriptsEnd(t *testing.T) {
	c := deepest(t)
	endless := `{step: function() { while (true) {} }, fault: function() {}, result: function() {}}`
	options, err := json.Marshal(map[string]string{"tracer": endless, "timeout": "50ms"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.traced(t.Context(), string(options), roomFor(math.MaxInt)); !errors.Is(err, trace.ErrTime) {
		t.Errorf("by its time: %v, expected %v", err, trace.ErrTime)
	}
	ctx, leave := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer leave()
	options, err = json.Marshal(map[string]string{"tracer": endless, "timeout": "1h"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.traced(ctx, string(options), roomFor(math.MaxInt)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("when the client leaves: %v, expected %v", err, context.DeadlineExceeded)
	}
}

// TestScriptsEndAnywhere: a script that does not end is ended wherever it runs: while it
// is made, set up, called, and asked for its result.
func TestScriptsEndAnywhere(t *testing.T) {
	c := deepest(t)
	const rest = `fault: function() {}`
	for name, script := range map[string]string{
		"made":   `{x: (function() { while (true) {} })(), result: function() {}, ` + rest + `}`,
		"set up": `{setup: function() { while (true) {} }, result: function() {}, ` + rest + `}`,
		"enter":  `{enter: function() { while (true) {} }, exit: function() {}, result: function() {}, ` + rest + `}`,
		"result": `{result: function() { while (true) {} }, ` + rest + `}`,
	} {
		options, err := json.Marshal(map[string]string{"tracer": script, "timeout": "50ms"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.traced(t.Context(), string(options), roomFor(math.MaxInt)); !errors.Is(err, trace.ErrTime) {
			t.Errorf("%s: %v, expected %v", name, err, trace.ErrTime)
		}
	}
}

// TestScriptsAreBounded: a script that allocates ends with an error, and the program
// stays small.
func TestScriptsAreBounded(t *testing.T) {
	c := deepest(t)
	const rest = `, fault: function() {}}`
	for name, test := range map[string]struct{ script, want string }{
		"an array":   {`{result: function() { var all = []; while (true) all.push({}) }` + rest, trace.ErrMemory.Error()},
		"a text":     {`{result: function() { var text = "text"; while (true) text += text + "x" }` + rest, trace.ErrMemory.Error()},
		"steps":      {`{all: [], step: function(log) { for (var i = 0; i < 100000; i++) this.all.push([i]) }, result: function() {}` + rest, trace.ErrMemory.Error()},
		"recursion":  {`{result: function again() { [1].forEach(again) }` + rest, trace.ErrStack.Error()},
		"repetition": {`{result: function() { return "x".repeat(1 << 30) }` + rest, "RangeError"},
		"nested":     {`{result: function() { return JSON.parse(Array(1 << 17).join("[")) }` + rest, "RangeError"},
		"new code":   {`{result: function() { return (function() {}).constructor("return 1")() }` + rest, "TypeError"},
		"evaluation": {`{result: function() { return eval("1") }` + rest, "TypeError"},
		"a buffer":   {`{result: function() { return new ArrayBuffer(Math.pow(2, 45)) }` + rest, "RangeError"},
		"bytes":      {`{result: function() { return new Uint8Array(Math.pow(2, 45)) }` + rest, "RangeError"},
		"filling":    {`{result: function() { return Array(1e9).fill(7) }` + rest, "RangeError"},
		"joining":    {`{result: function() { return Array(4e9).join("x") }` + rest, "RangeError"},
		"searching":  {`{result: function() { return [].indexOf.call({length: 1e15}, 1) }` + rest, "RangeError"},
		"copying":    {`{result: function() { return Array.from({length: 1e9}) }` + rest, "RangeError"},
		"a long one": {"{" + strings.Repeat(" ", 65<<10) + "}", "want at most 65536"},
	} {
		options, err := json.Marshal(map[string]string{"tracer": test.script, "timeout": "20s"})
		if err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		before := peak(func() {})
		highest := peak(func() { _, err = c.traced(t.Context(), string(options), roomFor(math.MaxInt)) })
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, expected %q", name, err, test.want)
		}
		if grown := int64(highest) - int64(before); grown > 1<<30 {
			t.Errorf("%s: the program grew by %d MiB", name, grown>>20)
		}
	}
}

// peak runs something and returns the most memory that was in use meanwhile.
func peak(run func()) (highest uint64) {
	done, sampled := make(chan struct{}), make(chan uint64)
	go func() {
		most := uint64(0)
		for {
			sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
			metrics.Read(sample)
			most = max(most, sample[0].Value.Uint64()+sample[1].Value.Uint64())
			select {
			case <-done:
				sampled <- most
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	run()
	close(done)
	return <-sampled
}

// TestMuxTakesNoScripts: muxTracer would run a script without its bounds.
func TestMuxTakesNoScripts(t *testing.T) {
	for _, options := range []string{
		`{"tracer":"muxTracer","tracerConfig":{"{result: function() {}, fault: function() {}}":{}}}`,
		`{"tracer":"muxTracer","tracerConfig":{"muxTracer":{"noSuchTracer":{}}}}`,
	} {
		if _, err := trace.ParseConfig([]byte(options), deepest(t).Genesis.Config); err == nil || !strings.Contains(err.Error(), "want the name of a native tracer") {
			t.Errorf("%s: %v", options, err)
		}
	}
}

// TestWrongTracers: what cannot be a tracer is refused in words.
func TestWrongTracers(t *testing.T) {
	c := deepest(t)
	for options, want := range map[string]string{
		`{"tracer":"noSuchTracer"}`:            "noSuchTracer is not defined",
		`{"tracer":"{"}`:                       "SyntaxError",
		`{"tracer":"{result: function() {}}"}`: "must expose a function fault",
		`{"tracer":"{setup: function() { throw 1 }, result: function() {}, fault: function() {}}"}`: "1",
	} {
		_, err := c.traced(t.Context(), options, roomFor(math.MaxInt))
		var failed *trace.Error
		if !errors.As(err, &failed) || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v, expected an error with %q", options, err, want)
		}
	}
}
