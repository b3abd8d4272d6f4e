package query

import (
	"context"
	"slices"

	"ashlar/evm/archive"
	"ashlar/evm/execute"

	"github.com/ethereum/go-ethereum/common"
)

// Call executes a message call at a block of the view, like [execute.Executor.Call].
func (v *View) Call(ctx context.Context, number uint64, message *execute.Message, options execute.CallOptions) ([]byte, error) {
	at, done, err := v.callAhead(ctx, number, message)
	if err != nil {
		return nil, err
	}
	defer done()
	return v.Executor().Call(ctx, at, message, options)
}

// EstimateGas returns the gas that a message needs at a block of the view, like
// [execute.Executor.EstimateGas].
func (v *View) EstimateGas(ctx context.Context, number uint64, message *execute.Message, options execute.CallOptions) (uint64, error) {
	at, done, err := v.callAhead(ctx, number, message)
	if err != nil {
		return 0, err
	}
	defer done()
	return v.Executor().EstimateGas(ctx, at, message, options)
}

// AccessList returns the accounts and slots that a message accesses at a block of the view,
// like [execute.Executor.AccessList].
func (v *View) AccessList(ctx context.Context, number uint64, message *execute.Message, options execute.CallOptions) (*execute.Accessed, error) {
	at, done, err := v.callAhead(ctx, number, message)
	if err != nil {
		return nil, err
	}
	defer done()
	return v.Executor().AccessList(ctx, at, message, options)
}

// callAhead is [View.CallAt] for a call whose reads are expected to be those of earlier calls like
// it: they are read at once, and what this call reads is recorded until done is called.
func (v *View) callAhead(ctx context.Context, number uint64, message *execute.Message) (at execute.At, done func(), err error) {
	record, done := v.watch(ctx, number, message)
	if at, err = v.callAt(ctx, number, message); err != nil {
		done()
		return at, nil, err
	}
	at.State = record(at.State)
	return at, done, nil
}

// callAt is [View.CallAt] for messages. What nodes know that they read is read at once.
func (v *View) callAt(ctx context.Context, number uint64, messages ...*execute.Message) (execute.At, error) {
	if !v.hasRemoteState(number, archive.OfState) {
		return v.CallAt(ctx, number)
	}
	read := slices.Clone(messages) // without the copy, the list of a call of stored state would be on the heap, too
	return gather(ctx, true, func(ctx context.Context) (execute.At, error) {
		at, err := v.CallAt(ctx, number)
		if err == nil {
			prefetchCalls(ctx, at.State, read...)
		}
		return at, err
	})
}

// CallAt returns the surroundings of a call at a block of the view.
func (v *View) CallAt(ctx context.Context, number uint64) (execute.At, error) {
	header, err := v.Header(ctx, number)
	if err != nil {
		return execute.At{}, err
	}
	return execute.At{Header: header.Header, State: v.State(number), Hashes: v}, nil
}

// BlockHash returns the hash of a block of the view. It implements [execute.BlockHashes].
func (v *View) BlockHash(ctx context.Context, number uint64) (common.Hash, error) {
	header, err := v.Header(ctx, number)
	if err != nil {
		return common.Hash{}, err
	}
	return header.Hash, nil
}

// CallBundles runs bundles of calls at a block of the view, like
// [execute.Executor.CallBundles].
func (v *View) CallBundles(ctx context.Context, number uint64, bundles []execute.Bundle, options execute.CallOptions, done func(bundle, call int, result execute.BundleResult) error) error {
	at, err := v.bundlesAt(ctx, number, bundles)
	if err != nil {
		return err
	}
	return v.Executor().CallBundles(ctx, at, bundles, options, done)
}

// TraceBundles traces bundles of calls at a block of the view, like
// [execute.Executor.TraceBundles].
func (v *View) TraceBundles(ctx context.Context, number uint64, bundles []execute.Bundle, options execute.CallOptions, run func(bundle, call int, trace execute.TraceFunc) error) error {
	at, err := v.bundlesAt(ctx, number, bundles)
	if err != nil {
		return err
	}
	return v.Executor().TraceBundles(ctx, at, bundles, options, run)
}

// bundlesAt is callAt for the calls of bundles.
func (v *View) bundlesAt(ctx context.Context, number uint64, bundles []execute.Bundle) (execute.At, error) {
	var messages []*execute.Message
	for i := range bundles {
		messages = append(messages, bundles[i].Calls...)
	}
	return v.callAt(ctx, number, messages...)
}
