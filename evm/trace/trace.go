// Package trace makes tracers for transactions and calls: the struct logger, go-ethereum's
// native tracers, and tracers that clients write in JavaScript. A [Config] is what a
// client asks for; its methods run a transaction or a call under a new tracer and append
// the result as JSON.
//
// Tracing is bounded: each run has a time limit, and what a tracer collects is held
// against the room that its answer has while it is collected. A run ends when its
// context is done. Tracers in JavaScript run in processes of their own, see package script.
package trace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"sync/atomic"
	"time"

	"ashlar/evm/execute"

	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/eth/tracers"
	_ "github.com/ethereum/go-ethereum/eth/tracers/js" // registers JavaScript tracers
	"github.com/ethereum/go-ethereum/eth/tracers/logger"
	"github.com/ethereum/go-ethereum/eth/tracers/native"
	"github.com/ethereum/go-ethereum/params"
)

// DefaultTime is how long a run may take where the client does not say.
const DefaultTime = 5 * time.Second

// Room bounds an answer while it is made.
type Room interface {
	// Check returns the error that ends the answer if length bytes are too many.
	Check(length int) error
}

// ErrTime means that a run took longer than it may.
var ErrTime = errors.New("execution timeout")

// Error means that a client asked for a trace that cannot be made, or that a tracer
// failed. Its text is meant for the client.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Config is what a client asks of a trace. The zero value asks for the struct logger. It
// may be used for many runs, but by one goroutine at a time.
type Config struct {
	raw     []byte
	name    string // of a tracer, or its JavaScript; empty: the struct logger
	options json.RawMessage
	logger  logger.Config
	time    time.Duration
	chain   *params.ChainConfig
	scripts bool        // JavaScript may run
	calls   *callTracer // of the last run, for the next; nil: there is none

	attempts bool // callTracer gives creations that failed the address of their contract, too
}

// ParseConfig decodes a trace configuration as geth does: names of members in any case,
// unknown members ignored. Empty raw, or null, asks for the struct logger.
func ParseConfig(raw []byte, chain *params.ChainConfig) (*Config, error) {
	c := &Config{raw: slices.Clone(raw), time: DefaultTime, chain: chain}
	asked, err := CheckTypes(raw)
	if err != nil {
		return nil, err
	}
	if asked.Config != nil {
		c.logger = *asked.Config
	}
	if asked.Tracer != nil {
		c.name = *asked.Tracer
	}
	c.options = asked.TracerConfig
	if asked.Timeout != nil {
		limit, err := time.ParseDuration(*asked.Timeout)
		if err != nil {
			return nil, err
		}
		c.time = limit
	}
	return c, c.checkNesting()
}

// CheckTypes decodes a configuration without checking that there is such a tracer, or its options.
func CheckTypes(raw []byte) (asked tracers.TraceConfig, err error) {
	if len(raw) > 0 {
		err = json.Unmarshal(raw, &asked)
	}
	return asked, err
}

// maxNesting is how often muxTracer may combine itself. Each level is decoded anew, and is one
// more call for each instruction.
const maxNesting = 8

func (c *Config) checkNesting() error {
	options := c.options
	for level := 0; c.name == muxTracerName; level++ {
		var combined map[string]json.RawMessage
		if err := json.Unmarshal(options, &combined); err != nil {
			return nil // the tracer refuses its options
		}
		inner, ok := combined[muxTracerName]
		switch {
		case !ok:
			return nil
		case level == maxNesting:
			return fmt.Errorf("%s is nested too deep (want at most %d levels)", muxTracerName, maxNesting)
		}
		options = inner
	}
	return nil
}

// Native returns the configuration of a tracer that the library has, with its options
// as JSON.
func Native(name string, options string, chain *params.ChainConfig) *Config {
	return &Config{name: name, options: json.RawMessage(options), time: DefaultTime, chain: chain}
}

// CallsNamingAttempts returns the configuration of callTracer that gives a creation that failed
// an address, too: the one that its contract would have had.
func CallsNamingAttempts(chain *params.ChainConfig) *Config {
	c := Native(callTracerName, "{}", chain)
	c.attempts = true
	return c
}

// AppendTransaction runs the next transaction of a replay and appends its trace to out.
func (c *Config) AppendTransaction(ctx context.Context, replay *execute.Replay, out []byte, room Room) ([]byte, error) {
	block, index := replay.Block(), replay.Next()
	tx, err := block.Transaction(index)
	if err != nil {
		return out, err
	}
	about := func() *tracers.Context {
		return &tracers.Context{BlockHash: block.Hash(), BlockNumber: new(big.Int).Set(block.Header().Number), TxIndex: index, TxHash: tx.Hash()}
	}
	return c.run(ctx, about, out, room, replay.Trace)
}

// AppendCall runs a call and appends its trace to out. call runs it under a tracer.
func (c *Config) AppendCall(ctx context.Context, out []byte, room Room, call func(ctx context.Context, tracer execute.Tracer) error) ([]byte, error) {
	return c.run(ctx, func() *tracers.Context { return new(tracers.Context) }, out, room, call)
}

func (c *Config) run(ctx context.Context, about func() *tracers.Context, out []byte, room Room, run func(context.Context, execute.Tracer) error) ([]byte, error) {
	result := out
	err := within(ctx, c.time, func(ctx context.Context, end context.CancelCauseFunc) error {
		t, err := c.tracer(about, out, room, end)
		if err != nil {
			return &Error{err}
		}
		if err := run(ctx, execute.Tracer{Hooks: t.hooks, Stop: t.stop}); err != nil {
			return err
		}
		if ctx.Err() != nil { // the run was over before the EVM noticed
			return context.Cause(ctx)
		}
		if t.slow {
			defer context.AfterFunc(ctx, func() { t.stop(context.Cause(ctx)) })()
		}
		if result, err = t.appendResult(out); err != nil {
			return &Error{err}
		}
		return room.Check(len(result))
	})
	if err != nil {
		c.calls = nil // it may still be stopped
		return out, err
	}
	return result, nil
}

// within gives run a context that ends after the limit, and a function that ends it with
// a reason. What ended it takes the place of the error of run.
func within(caller context.Context, limit time.Duration, run func(ctx context.Context, end context.CancelCauseFunc) error) error {
	ctx, end := context.WithCancelCause(caller)
	defer end(nil)
	timeout := func() { end(&Error{ErrTime}) }
	if limit <= 0 {
		timeout()
	}
	// A timer takes a fraction of what a second context takes, and a block has many runs.
	defer time.AfterFunc(limit, timeout).Stop()
	err := run(ctx, end)
	switch {
	case caller.Err() != nil:
		return caller.Err()
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return err
}

// tracer watches one run.
type tracer struct {
	hooks        *tracing.Hooks
	stop         func(reason error)
	appendResult func(out []byte) ([]byte, error)
	slow         bool // to append the result takes time and memory, as it is made then
}

// stopper is what stops a tracer from another goroutine.
type stopper struct{ reason atomic.Pointer[error] }

// stop ends the trace with reason as its error. It is safe for concurrent use.
func (s *stopper) stop(reason error) { s.reason.Store(&reason) }

// stopped returns the reason to stop, or nil.
func (s *stopper) stopped() error {
	if reason := s.reason.Load(); reason != nil {
		return *reason
	}
	return nil
}

// tracer makes what the configuration asks for. Its result goes behind out, if room
// permits; else end is called while it runs.
func (c *Config) tracer(about func() *tracers.Context, out []byte, room Room, end context.CancelCauseFunc) (*tracer, error) {
	if c.name == "" {
		l := newStructLogger(&c.logger, out, room, end)
		return &tracer{hooks: l.hooks(), stop: l.stop, appendResult: l.appendResult}, nil
	}
	if c.name == callTracerName {
		if c.calls == nil {
			t, err := newCallTracer(c.options)
			if err != nil {
				return nil, err
			}
			t.attempts = c.attempts
			c.calls = t
		}
		c.calls.begin(len(out), room, end)
		return &c.calls.tracer, nil
	}
	if c.name == prestateTracerName {
		t, err := newPrestateTracer(c.options, c.chain, len(out), room, end)
		if err != nil {
			return nil, err
		}
		return &tracer{hooks: t.hooks(), stop: t.stop, appendResult: t.appendResult}, nil
	}
	m := &meter{allowance: allowance{room: room, end: end}, length: len(out)}
	made, err := c.made(about(), m)
	if err != nil {
		return nil, err
	}
	return &tracer{
		hooks: made.Hooks,
		stop:  made.Stop,
		appendResult: func(out []byte) ([]byte, error) {
			result, err := made.GetResult()
			if err != nil {
				return out, err
			}
			return append(out, result...), nil
		},
		slow: true,
	}, nil
}

// muxTracerName is the tracer that combines others.
const muxTracerName = "muxTracer"

// made makes one of the library's tracers, which m counts.
func (c *Config) made(about *tracers.Context, m *meter) (*tracers.Tracer, error) {
	if c.IsScript() && !c.scripts {
		return nil, errors.New("a script must run in a worker")
	}
	return ofLibrary(c.name, c.options, about, c.chain, m)
}

// ofLibrary makes a tracer of the library, and those that it combines. m counts what they keep.
//
// Only scripts are stopped, others end with the EVM: keccak256PreimageTracer has no function
// to stop it, which muxTracer would call, and a stopped callTracer panics at the end of a
// transaction whose beginning it has not seen.
func ofLibrary(name string, options json.RawMessage, about *tracers.Context, chain *params.ChainConfig, m *meter) (*tracers.Tracer, error) {
	if name != muxTracerName {
		if err := checkOptions(name, options); err != nil {
			return nil, err
		}
		made, err := tracers.DefaultDirectory.New(name, about, options, chain)
		if err != nil {
			return nil, err
		}
		if !tracers.DefaultDirectory.IsJS(name) {
			made.Stop = func(error) {}
		}
		made.Hooks = m.watch(name, made.Hooks)
		return made, nil
	}
	var combined map[string]json.RawMessage
	if len(options) > 0 {
		if err := json.Unmarshal(options, &combined); err != nil {
			return nil, err
		}
	}
	names := slices.Sorted(maps.Keys(combined))
	all := make([]*tracers.Tracer, 0, len(names))
	for _, name := range names {
		made, err := ofLibrary(name, combined[name], about, chain, m)
		if err != nil {
			return nil, err
		}
		all = append(all, made)
	}
	return native.NewMuxTracer(names, all)
}

// checkOptions rejects options with which a tracer of the library panics.
func checkOptions(name string, options json.RawMessage) error {
	if name != erc7562TracerName || len(options) == 0 {
		return nil
	}
	var asked struct{ StackTopItemsSize int }
	if err := json.Unmarshal(options, &asked); err != nil {
		return nil // the tracer rejects its options
	}
	if asked.StackTopItemsSize < 0 {
		return fmt.Errorf("invalid stackTopItemsSize %d (want a number that is not negative)", asked.StackTopItemsSize)
	}
	return nil
}

// IsScript reports whether the tracer is JavaScript: the client's own, one of the library's, or
// one of those that muxTracer combines. It must run in a worker, see package script.
func (c *Config) IsScript() bool { return isScript(c.name, c.options) }

func isScript(name string, options json.RawMessage) bool {
	if name == "" {
		return false
	}
	if name != muxTracerName {
		return tracers.DefaultDirectory.IsJS(name)
	}
	var combined map[string]json.RawMessage
	if err := json.Unmarshal(options, &combined); err != nil {
		return false // the tracer refuses its options
	}
	for name, options := range combined {
		if isScript(name, options) {
			return true
		}
	}
	return false
}

// AllowScripts lets the configuration run JavaScript in this process.
func (c *Config) AllowScripts() { c.scripts = true }

// Raw is the configuration as it was parsed.
func (c *Config) Raw() []byte { return c.raw }

// Time is how long a run may take.
func (c *Config) Time() time.Duration { return c.time }
