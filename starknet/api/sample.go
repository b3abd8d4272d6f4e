package api

import (
	"context"
	"errors"

	"ashlar/jsonrpc"
	"ashlar/starknet"
	"ashlar/starknet/archive"
)

const (
	// sampleBlocks is how many of the newest blocks are searched for data of examples.
	sampleBlocks = 128
	// sampleTransactions is how many transactions of each are looked at.
	sampleTransactions = 16
)

// sample is data of the network that examples are made of.
type sample struct {
	block       uint64         // the newest with an event; else with a transaction; else the head
	transaction starknet.Felt  // of the block, or zero
	emitter     *starknet.Felt // of an event of the transaction; nil where it has none
}

func (s *sample) blockID() any { return map[string]any{"block_number": s.block} }

// filter returns a filter for the events of the block.
func (s *sample) filter() any {
	filter := map[string]any{"from_block": s.blockID(), "to_block": s.blockID(), "chunk_size": 10}
	if s.emitter != nil {
		filter["address"] = s.emitter.String()
	}
	return filter
}

// example returns a maker of examples that picks something of the network's sample.
func (a *API) example(pick func(*sample) any) func(context.Context) (any, error) {
	return a.samples.Example(a.findSample, pick)
}

// errFound ends a walk over events.
var errFound = errors.New("found")

// findSample searches the newest blocks, from the head down.
func (a *API) findSample(ctx context.Context) (*sample, error) {
	view, err := a.view()
	if err != nil {
		return nil, err
	}
	span := view.Span()
	best := &sample{block: span.Last.Number}
	for number, left := span.Last.Number, sampleBlocks; left > 0; number, left = number-1, left-1 {
		all, err := view.Transactions(ctx, number)
		if err != nil {
			return nil, err
		}
		for i := range min(all.Len(), sampleTransactions) {
			found := &sample{block: number, transaction: all.Hash(i)}
			receipt, err := view.FindReceipt(ctx, found.transaction)
			if err != nil {
				return nil, err
			}
			err = view.EventsOf(ctx, receipt, func(event *archive.Event) error {
				emitter := event.From
				found.emitter = &emitter
				return errFound
			})
			if errors.Is(err, errFound) {
				return found, nil
			}
			if err != nil {
				return nil, err
			}
			if best.transaction.IsZero() {
				best = found
			}
		}
		if number == span.First {
			break
		}
	}
	return best, nil
}

// errorsOf returns the errors that clients receive.
func errorsOf(errs ...error) (documented []*jsonrpc.Error) {
	for _, err := range errs {
		var known *jsonrpc.Error
		if errors.As(err, &known) {
			documented = append(documented, known)
		}
	}
	return documented
}
