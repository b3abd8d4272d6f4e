package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"ashlar/chain"
	"ashlar/family"
	"ashlar/kv"
	"ashlar/retry"
	"ashlar/starknet"
	"ashlar/starknet/ingest"
	"ashlar/starknet/source/synthetic"
)

// demoChainID is the ID of the demo network's chain.
const demoChainID = "SN_DEMO"

// Demo implements [family.Presenter].
func (Family) Demo() (family.Demo, error) { return demo{}, nil }

// demo implements [family.Demo].
type demo struct{}

// Name implements [family.Demo].
func (demo) Name() string { return "demo-starknet" }

// Create implements [family.Demo].
func (demo) Create(ctx context.Context, p family.Place, blocks uint64) (err error) {
	a, store, err := create(ctx, p, kv.Options{}, demoChainID)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if a.Span() != nil {
		return nil
	}
	made := synthetic.New(synthetic.Default())
	past := []*starknet.Block{made.Next()}
	for uint64(len(past)) <= blocks {
		past = append(past, made.Next())
	}
	return a.Append(ctx, past...)
}

// Start implements [family.Demo]. As in a network that follows nodes, an error such as a full disk stops
// the blocks until its cause is gone.
func (demo) Start(_ context.Context, n family.Network, interval time.Duration) (func(context.Context) error, error) {
	served := n.(*network)
	s, err := newSequencer(served)
	if err != nil {
		return nil, err
	}
	served.making = s.making
	return func(ctx context.Context) error {
		return s.making.Keep(ctx, func(ctx context.Context) error { return family.AtIntervals(ctx, interval, s.append) })
	}, nil
}

// Introduce implements [family.Demo].
func (demo) Introduce(out io.Writer, url string, _ uint64) error {
	_, err := fmt.Fprintf(out, `The demo's Starknet network has events in place of logs, and a URL of its own. The first ten events of a kind:

  curl -s %s -H 'Content-Type: application/json' -d '{"jsonrpc":"2.0","id":1,"method":"rollup_getEvents","params":{"filter":{"from_block":{"block_number":0},"to_block":"latest","keys":[["%s"]],"chunk_size":10}}}'

`, url, synthetic.Selector(0))
	return err
}

// sequencer makes the blocks of the demo network.
type sequencer struct {
	follower *ingest.Follower
	made     *synthetic.Chain
	begun    *starknet.Block // the next block, if an error has interrupted it
	making   *retry.Task
}

// newSequencer continues the network at its head.
func newSequencer(n *network) (*sequencer, error) {
	head := n.follower.Tip().Forkchoice().Head.Ref()
	s := &sequencer{follower: n.follower, made: synthetic.New(synthetic.Default()), making: retry.New("make blocks", slog.With("network", n.name))}
	for last := (chain.Ref{}); last != head; {
		if last = s.made.Next().Ref(); last.Number > head.Number {
			return nil, fmt.Errorf("block %s is not of the demo's chain", head)
		}
	}
	return s, nil
}

// append makes the next block, of this moment. After an error it can be called again. It makes no further block
// before those that are deep enough are settled, so an error of the store does not make the tip grow.
func (s *sequencer) append(ctx context.Context) error {
	if s.begun == nil {
		s.begun = s.made.Next()
		s.begun.Timestamp = uint64(time.Now().Unix())
	}
	if err := s.follower.Append(ctx, s.begun); err != nil {
		return err
	}
	s.begun = nil
	s.making.Succeeded()
	return nil
}
