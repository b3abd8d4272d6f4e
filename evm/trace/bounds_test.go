package trace_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

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
	for _, options := range []string{
		`{}`, `{"tracer":"callTracer"}`, `{"tracer":"flatCallTracer"}`, `{"tracer":"erc7562Tracer"}`,
		`{"tracer":"muxTracer","tracerConfig":{"callTracer":{},"4byteTracer":{}}}`,
		`{"tracer":"prestateTracer","tracerConfig":{"disableCode":true}}`,
	} {
		room := &countedRoom{limit: 1000}
		if _, err := c.traced(t.Context(), options, room); !errors.Is(err, errFull) {
			t.Errorf("%s: %v, expected %v", options, err, errFull)
		}
		if room.largest > 10_000 {
			t.Errorf("%s: %d bytes were collected under a limit of %d", options, room.largest, room.limit)
		}
	}
}

// TestCombinedTracesEndAtTheirRoom: each tracer that muxTracer combines keeps frames for itself,
// so together they collect no more than one.
func TestCombinedTracesEndAtTheirRoom(t *testing.T) {
	c := deepest(t)
	combined := `{"callTracer":{},"flatCallTracer":{}}`
	for range 5 {
		combined = `{"callTracer":{},"flatCallTracer":{},"muxTracer":` + combined + `}`
	}
	all := new(countedRoom)
	all.limit = math.MaxInt
	if _, err := c.traced(t.Context(), `{"tracer":"muxTracer","tracerConfig":{"callTracer":{}}}`, all); err != nil {
		t.Fatal(err)
	}
	room := &countedRoom{limit: 2 * all.largest}
	if _, err := c.traced(t.Context(), `{"tracer":"muxTracer","tracerConfig":`+combined+`}`, room); !errors.Is(err, errFull) {
		t.Errorf("%v, expected %v", err, errFull)
	}
	if room.largest > 2*room.limit {
		t.Errorf("%d bytes were collected under a limit of %d", room.largest, room.limit)
	}
}

// TestEveryRoom: wherever the room ends, no tracer panics.
func TestEveryRoom(t *testing.T) {
	c := deepest(t)
	for _, name := range libraryTracers {
		options := fmt.Sprintf(`{"tracer":"muxTracer","tracerConfig":{%q:{}}}`, name)
		for limit := 0; limit < 20_000; limit += 97 {
			if _, err := c.traced(t.Context(), options, roomFor(limit)); err != nil && !errors.Is(err, errFull) {
				t.Fatalf("%s within %d bytes: %v", options, limit, err)
			}
		}
	}
}

// libraryTracers are native tracers of the library.
var libraryTracers = []string{
	"callTracer", "flatCallTracer", "prestateTracer", "4byteTracer", "erc7562Tracer", "noopTracer", "keccak256PreimageTracer",
}

// TestTracersStop: every tracer can be stopped, alone and among others.
func TestTracersStop(t *testing.T) {
	c := deepest(t)
	ended, end := context.WithCancel(t.Context())
	end()
	for _, name := range libraryTracers {
		for _, options := range []string{
			fmt.Sprintf(`{"tracer":%q}`, name),
			fmt.Sprintf(`{"tracer":"muxTracer","tracerConfig":{%q:{}}}`, name),
			fmt.Sprintf(`{"tracer":"muxTracer","tracerConfig":{"muxTracer":{%q:{}}}}`, name),
		} {
			config, err := trace.ParseConfig([]byte(options), c.Genesis.Config)
			if err != nil {
				t.Fatal(err)
			}
			err = c.replay(t.Context(), func(r *execute.Replay) error {
				_, err := config.AppendTransaction(ended, r, nil, roomFor(math.MaxInt))
				return err
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v, expected %v", options, err, context.Canceled)
			}
			if _, err := c.traced(t.Context(), options, roomFor(math.MaxInt)); err != nil {
				t.Errorf("%s: %v", options, err)
			}
		}
	}
}

// TestNestedTracers: a tracer that combines itself does so a few times only.
func TestNestedTracers(t *testing.T) {
	nested := func(levels int) []byte {
		return []byte(`{"tracer":"muxTracer","tracerConfig":` + strings.Repeat(`{"muxTracer":`, levels) + `{"callTracer":{}}` + strings.Repeat("}", levels+1))
	}
	if _, err := trace.ParseConfig(nested(8), nil); err != nil {
		t.Error(err)
	}
	for _, levels := range []int{9, 5000} {
		if _, err := trace.ParseConfig(nested(levels), nil); err == nil || !strings.Contains(err.Error(), "at most 8 levels") {
			t.Errorf("%d levels: %v", levels, err)
		}
	}
}

// countedRoom remembers the largest length it was asked about.
type countedRoom struct{ limit, largest int }

func (r *countedRoom) Check(length int) error {
	r.largest = max(r.largest, length)
	return roomFor(r.limit).Check(length)
}

// TestScriptsNeedWorkers: a script does not run where nothing bounds it.
func TestScriptsNeedWorkers(t *testing.T) {
	c := deepest(t)
	for _, options := range []string{`{"tracer":"{result: function() {}, fault: function() {}}"}`, `{"tracer":"muxTracer","tracerConfig":{"muxTracer":{"opcountTracer":{}}}}`} {
		config, err := trace.ParseConfig([]byte(options), c.Genesis.Config)
		if err != nil {
			t.Fatal(err)
		}
		err = c.replay(t.Context(), func(r *execute.Replay) error {
			_, err := config.AppendTransaction(t.Context(), r, nil, roomFor(math.MaxInt))
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "must run in a worker") {
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
