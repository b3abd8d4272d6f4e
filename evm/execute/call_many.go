package execute

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
)

// Bundle is a list of calls that see the same block.
type Bundle struct {
	Calls []*Message
	Block BlockOverrides
}

// BundleResult is the outcome of a call of a bundle. Err is a [*RevertError] or a
// [*CallError] if it failed.
type BundleResult struct {
	Output []byte
	Err    error
}

// CallBundles runs bundles of calls, each call on the state that the one before left, and
// calls done after each. The first bundle sees the block at, each other one a block with
// the next number and a time that is later by a second; overrides stay in force. An error
// means that a call was not run. options.Block is ignored.
func (e *Executor) CallBundles(ctx context.Context, at At, bundles []Bundle, options CallOptions, done func(bundle, call int, result BundleResult) error) error {
	return e.simulateBundles(ctx, at, bundles, options, passingResults(done))
}

// TraceBundles runs bundles as [Executor.CallBundles] does, under tracers: it calls run for each call, with a
// function that runs the call and must be used once.
func (e *Executor) TraceBundles(ctx context.Context, at At, bundles []Bundle, options CallOptions, run func(bundle, call int, trace TraceFunc) error) error {
	return e.simulateBundles(ctx, at, bundles, options, passingTraces(run))
}

// TraceFunc runs a call under a tracer, until ctx is done. The tracer says how the call ended; an error means
// that it was not run.
type TraceFunc func(ctx context.Context, tracer Tracer) error

// bundledCall runs a call of a bundle in a simulation. Its changes last.
type bundledCall func(s *simulation, bundle, call int, asked *Message) error

func (e *Executor) simulateBundles(ctx context.Context, at At, bundles []Bundle, options CallOptions, run bundledCall) error {
	options.Block = BlockOverrides{}
	return e.simulateLasting(ctx, at, options, func(s *simulation) error { return s.bundles(bundles, options.State, run) })
}

// CallBundles runs bundles on the state before the transaction that runs next, as
// [Executor.CallBundles] does. The replay is over then.
func (r *Replay) CallBundles(ctx context.Context, bundles []Bundle, options CallOptions, done func(bundle, call int, result BundleResult) error) error {
	return r.simulateBundles(ctx, bundles, options, passingResults(done))
}

// TraceBundles runs bundles on the state before the transaction that runs next, as
// [Executor.TraceBundles] does. The replay is over then.
func (r *Replay) TraceBundles(ctx context.Context, bundles []Bundle, options CallOptions, run func(bundle, call int, trace TraceFunc) error) error {
	return r.simulateBundles(ctx, bundles, options, passingTraces(func(bundle, call int, trace TraceFunc) error {
		return run(bundle, call, func(ctx context.Context, tracer Tracer) error {
			tracer.Hooks = r.numbered(tracer.Hooks)
			return trace(ctx, tracer)
		})
	}))
}

func (r *Replay) simulateBundles(ctx context.Context, bundles []Bundle, options CallOptions, run bundledCall) error {
	options.Block = BlockOverrides{}
	return r.simulate(ctx, r.run.header, options, func(s *simulation) error { return s.bundles(bundles, options.State, run) })
}

// bundles runs bundles in a state with overrides.
func (s *simulation) bundles(bundles []Bundle, overrides StateOverrides, run bundledCall) error {
	var inForce BlockOverrides
	s.hasHash = true
	for i := range bundles {
		inForce.override(&bundles[i].Block)
		rules := s.rules
		if err := s.surround(&inForce); err != nil {
			return err
		}
		if s.rules != rules {
			if err := s.precompile(overrides, nil); err != nil {
				return err
			}
		}
		for j, asked := range bundles[i].Calls {
			if err := run(s, i, j, asked); err != nil {
				return err
			}
		}
		next := s.block.Time + 1
		number, _ := uint256.FromBig(s.block.BlockNumber)
		inForce.Time, inForce.Number = &next, number.AddUint64(number, 1)
	}
	return nil
}

// passingResults passes the result of each call to done.
func passingResults(done func(bundle, call int, result BundleResult) error) bundledCall {
	return func(s *simulation, bundle, call int, asked *Message) error {
		result, err := s.bundled(asked)
		if err != nil {
			return err
		}
		return done(bundle, call, result)
	}
}

// passingTraces calls run for each call, with what traces it.
func passingTraces(run func(bundle, call int, trace TraceFunc) error) bundledCall {
	return func(s *simulation, bundle, call int, asked *Message) error {
		return run(bundle, call, func(ctx context.Context, tracer Tracer) error { return s.trace(ctx, asked, tracer) })
	}
}

// bundled runs a call whose changes remain.
func (s *simulation) bundled(asked *Message) (result BundleResult, err error) {
	message, err := s.message(asked)
	if err != nil {
		return result, err
	}
	s.statedb.SetTxContext(common.Hash{}, 0, 1)
	ran, err := s.run(message.SkipExecutionGasCapCheck(), nil)
	if err != nil {
		return result, callErrorf("err: %w (supplied gas %d)", err, message.GasLimit)
	}
	s.statedb.Finalise(s.rules)
	return BundleResult{Output: ran.ReturnData, Err: outcomeError(ran)}, nil
}

// override takes over what is set in others.
func (o *BlockOverrides) override(by *BlockOverrides) {
	take(&o.Number, by.Number)
	take(&o.Difficulty, by.Difficulty)
	take(&o.Time, by.Time)
	take(&o.GasLimit, by.GasLimit)
	take(&o.FeeRecipient, by.FeeRecipient)
	take(&o.PrevRandao, by.PrevRandao)
	take(&o.BaseFeePerGas, by.BaseFeePerGas)
	take(&o.BlobBaseFee, by.BlobBaseFee)
}

func take[T any](field **T, by *T) {
	if by != nil {
		*field = by
	}
}
