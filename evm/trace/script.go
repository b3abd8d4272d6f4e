package trace

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/eth/tracers"
	"golang.org/x/sync/semaphore"
)

const (
	// maxScriptBytes bounds the text of a script: its parser calls itself for every
	// nested level.
	maxScriptBytes = 64 << 10
	// scriptMemory is how much the program may grow while scripts run.
	scriptMemory = 128 << 20
	// scriptStack is how much the stacks of the program may grow meanwhile. Go ends a
	// program whose stack is too large, and unwinding a deep one takes long.
	scriptStack = 8 << 20
	// scriptSample is how often that is looked at.
	scriptSample = 2 * time.Millisecond
)

// Reasons why a script is ended.
var (
	ErrMemory = fmt.Errorf("execution aborted (memory limit of %d MiB)", scriptMemory>>20)
	ErrStack  = fmt.Errorf("execution aborted (stack limit of %d MiB)", scriptStack>>20)
)

// scripts bounds how many scripts run at the same moment, because their growth cannot be
// told apart.
var scripts = semaphore.NewWeighted(2)

// libraryScripts are the library's own tracers in JavaScript.
var libraryScripts = map[string]bool{
	"4byteTracerLegacy": true, "bigramTracer": true, "callTracerLegacy": true, "evmdisTracer": true, "noopTracerLegacy": true,
	"opcountTracer": true, "prestateTracerLegacy": true, "trigramTracer": true, "unigramTracer": true,
}

//go:embed script.js
var scriptSource string

// methods are those that a script may have, in the form of a wrapper.
var methods = map[string]string{
	"result": `result: function (ctx, db) { return tracer().result(ctx, db) }`,
	"fault":  `fault: function (log, db) { return tracer().fault(log, db) }`,
	"step":   `step: function (log, db) { return tracer().step(log, db) }`,
	"enter":  `enter: function (frame) { return tracer().enter(frame) }`,
	"exit":   `exit: function (frame) { return tracer().exit(frame) }`,
}

// newScript makes the tracer of a script. The script is first evaluated by itself, to
// learn its methods, then again when the tracer is used.
func (c *Config) newScript(ctx context.Context, about *tracers.Context) (*tracers.Tracer, error) {
	if len(c.name) > maxScriptBytes {
		return nil, fmt.Errorf("tracer of %d bytes (want at most %d)", len(c.name), maxScriptBytes)
	}
	probe, err := c.wrapped(about, `{result: function () { var made = tracer(); return `+
		`["result", "fault", "step", "enter", "exit"].filter(function (name) { return typeof made[name] == "function" }) }, fault: function () {}}`)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { probe.Stop(context.Cause(ctx)) })()
	raw, err := probe.GetResult()
	if err != nil {
		return nil, errors.New(strings.TrimSuffix(err.Error(), "    in server-side tracer function 'result'"))
	}
	var has []string
	if err := json.Unmarshal(raw, &has); err != nil {
		return nil, err
	}
	var members []string
	for _, name := range has {
		members = append(members, methods[name])
	}
	switch {
	case !slices.Contains(has, "result"):
		return nil, errors.New("trace object must expose a function result()")
	case !slices.Contains(has, "fault"):
		return nil, errors.New("trace object must expose a function fault()")
	case slices.Contains(has, "enter") != slices.Contains(has, "exit"):
		return nil, errors.New("trace object must expose either both or none of enter() and exit()")
	}
	return c.wrapped(about, "{"+strings.Join(members, ", ")+"}")
}

// wrapped makes a tracer of an object whose functions use the script.
func (c *Config) wrapped(about *tracers.Context, object string) (*tracers.Tracer, error) {
	options := "{}"
	if len(c.options) > 0 {
		options = string(c.options)
	}
	source, err := json.Marshal(c.name)
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(options)
	if err != nil {
		return nil, err
	}
	code := fmt.Sprintf("(function () { var tracer = %s(%s, %s); return %s })()", strings.TrimSpace(scriptSource[strings.Index(scriptSource, "(function"):]), source, config, object)
	return tracers.DefaultDirectory.New(code, about, nil, c.chain)
}

// watchMemory waits for the turn of a script and, until the returned function is called,
// ends it when the program has grown too much.
func watchMemory(ctx context.Context, end context.CancelCauseFunc) (stop func(), err error) {
	if err := scripts.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	done, stopped := make(chan struct{}), make(chan struct{})
	before := holding()
	go func() {
		defer close(stopped)
		tick := time.NewTicker(scriptSample)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			if reason := before.exceeded(); reason != nil {
				end(&Error{reason})
				return
			}
		}
	}()
	return func() {
		close(done)
		<-stopped
		scripts.Release(1)
	}, nil
}

// held is the memory that the program holds.
type held struct{ objects, stacks uint64 }

func holding() held {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(samples)
	return held{samples[0].Value.Uint64(), samples[1].Value.Uint64()}
}

// exceeded returns why a script must end, with what was held before it began.
func (before held) exceeded() error {
	now := holding()
	if now.stacks > before.stacks+scriptStack {
		return ErrStack
	}
	if now.objects > before.objects+scriptMemory && now.objects < before.objects+2*scriptMemory {
		runtime.GC() // others may have left something behind
		now = holding()
	}
	if now.objects > before.objects+scriptMemory {
		return ErrMemory
	}
	return nil
}
