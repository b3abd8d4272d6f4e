package blocktests

import (
	"bytes"
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"ashlar/evm/execute"
	"ashlar/evm/trace"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
)

const (
	randomSeeds  = 3 // chains of each fork
	randomBlocks = 8 // of a chain
)

// TestTracesOfRandomBlocks imports random chains, and compares what transactions and calls do in a state that is taken from
// stored changes with what they do after all transactions before them have run.
func TestTracesOfRandomBlocks(t *testing.T) {
	for _, network := range []string{"Byzantium", "ConstantinopleFix", "Istanbul", "Berlin", "London", "Paris", "Shanghai", "Cancun", "Prague", "Osaka"} {
		for seed := range uint64(randomSeeds) {
			t.Run(fmt.Sprintf("%s %d", network, seed), func(t *testing.T) {
				t.Parallel()
				checkRandomChain(t, network, seed)
			})
		}
	}
}

// checkRandomChain makes a chain, imports it and compares traces of it.
func checkRandomChain(t *testing.T, network string, seed uint64) {
	config, err := chainConfig(network, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := newRandomWorld(config, rand.New(rand.NewPCG(seed, uint64(len(network)))))
	genesis := w.genesis()
	_, blocks, _ := core.GenerateChainWithGenesis(genesis, beacon.New(ethash.NewFaker()), randomBlocks, w.fill)
	target := targetOf(t, genesis, blocks)
	with := 0
	for _, block := range blocks {
		changes, err := target.archive.Changes(t.Context(), block.NumberU64())
		if err != nil {
			t.Fatal(err)
		}
		if changes != nil {
			with++
		}
		if err := target.compareSkips(t.Context(), block, w); err != nil {
			t.Errorf("block %d: %v", block.NumberU64(), err)
		}
	}
	if with == 0 {
		t.Error("no block has stored changes")
	}
	t.Logf("%d of %d blocks have stored changes", with, len(blocks))
}

// compareSkips compares what transactions and a probe of the whole state do after [execute.Replay.Skip] with what they do when
// all transactions have run.
func (t *target) compareSkips(ctx context.Context, block *types.Block, w *randomWorld) error {
	stored := storedBlock{t.archive, block.NumberU64()}
	count := block.Transactions().Len()
	if count == 0 {
		return nil
	}
	for name, run := range w.watchers(t.executor) {
		inOrder := make([][]byte, count+1)
		after := func(stored execute.StoredBlock, skips ...int) error {
			return t.replay(ctx, block, stored, func(replay *execute.Replay) error {
				for _, i := range skips {
					if err := replay.Skip(i); err != nil {
						return err
					}
					if !run.calls && i == count {
						continue
					}
					got, err := run.do(ctx, replay)
					if err != nil {
						return err
					}
					if stored == nil {
						inOrder[i] = got
					} else if !bytes.Equal(got, inOrder[i]) {
						return fmt.Errorf("after skips to %v: got %s\nin order %s", skips, got, inOrder[i])
					}
				}
				return nil
			})
		}
		for i := range count + 1 {
			if err := after(nil, i); err != nil {
				return fmt.Errorf("%s %d in order: %w", name, i, err)
			}
		}
		for i := range count + 1 {
			if err := after(stored, i); err != nil {
				return fmt.Errorf("%s %d: %w", name, i, err)
			}
			if err := after(unchangedBlock{stored}, count-i); err != nil { // each replay takes what the one before has run
				return fmt.Errorf("%s %d without stored changes: %w", name, count-i, err)
			}
			if j := i + 1 + w.IntN(count); !run.calls && i < count && j <= count {
				if err := after(stored, i, j); err != nil { // a call ends a replay
					return fmt.Errorf("%s %d and %d: %w", name, i, j, err)
				}
			}
		}
	}
	return nil
}

// unchangedBlock is what an archive has that does not store changes.
type unchangedBlock struct{ storedBlock }

func (unchangedBlock) Changes(context.Context) (execute.StoredChanges, error) { return nil, nil }

// watcher is what runs at a place in a block.
type watcher struct {
	calls bool // a call, which can follow the last transaction, too
	do    func(ctx context.Context, replay *execute.Replay) ([]byte, error)
}

// watchers returns the tracers to compare, by name.
func (w *randomWorld) watchers(executor *execute.Executor) map[string]watcher {
	config := func(text string) *trace.Config {
		c, err := trace.ParseConfig([]byte(text), executor.Config())
		if err != nil {
			panic(err)
		}
		return c
	}
	const calls, state = `{"tracer":"callTracer","tracerConfig":{"withLog":true}}`, `{"tracer":"prestateTracer"}`
	all := map[string]watcher{}
	for name, text := range map[string]string{"calls": calls, "state": state, "steps": `{"enableMemory":true,"enableReturnData":true}`} {
		all[name] = watcher{do: func(ctx context.Context, replay *execute.Replay) ([]byte, error) {
			return config(text).AppendTransaction(ctx, replay, nil, anyRoom{})
		}}
	}
	all["parity"] = watcher{do: func(ctx context.Context, replay *execute.Replay) ([]byte, error) {
		replayed, err := trace.Kinds{Trace: true, StateDiff: true, VMTrace: true}.Transaction(ctx, replay, executor.Config(), 0, anyRoom{})
		if err != nil {
			return nil, err
		}
		return replayed.Append(nil, nil), nil
	}}
	for name, text := range map[string]string{"state of a probe": state, "calls of a probe": calls} {
		all[name] = watcher{calls: true, do: func(ctx context.Context, replay *execute.Replay) ([]byte, error) {
			message := &execute.Message{From: common.Address{19: 0x99}, Data: w.probe()}
			return config(text).AppendCall(ctx, nil, anyRoom{}, func(ctx context.Context, tracer execute.Tracer) error {
				return replay.TraceCall(ctx, message, execute.CallOptions{}, tracer)
			})
		}}
	}
	return all
}

// ether is a large balance.
func ether(n int64) *big.Int { return new(big.Int).Mul(big.NewInt(n), big.NewInt(1e18)) }
