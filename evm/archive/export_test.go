package archive

import (
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"ashlar/evm"
	"ashlar/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"
)

// This file shares the random chains with the tests of packages that use this one.

// Chain is a random chain, see grower.
type Chain struct{ *grower }

// GrowChain makes a random chain with blocks up to last.
func GrowChain(t testing.TB, seed, last uint64) Chain {
	g := newGrower(t, seed)
	for range last + 1 {
		g.block()
	}
	return Chain{g}
}

// As returns the chain for archives of a format, as older versions created them.
func (c Chain) As(format string) Chain {
	g := *c.grower
	g.format = format
	return Chain{&g}
}

// Between returns the archive that begins with the state of a block, 0 for the genesis, and
// ends with another.
func (c Chain) Between(t *testing.T, first, last uint64) kv.Store {
	t.Helper()
	var a *Archive
	if first > 0 {
		a = startedAt(t, c.grower, first)
	} else {
		var err error
		if a, err = Create(t.Context(), openStore(t, vfs.NewMem()), testGenesis(), TraceIndex); err != nil {
			t.Fatal(err)
		}
		if c.format != "" {
			setFormat(t, a.store, c.format)
			if a, err = Open(t.Context(), a.store); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Append(t.Context(), c.blocks[0]); err != nil {
			t.Fatal(err)
		}
	}
	c.Append(t, a, last)
	return a.store
}

// Append appends the blocks up to last.
func (c Chain) Append(t *testing.T, a *Archive, last uint64) {
	t.Helper()
	for settled, _ := a.Settled(); settled.Number < last; settled, _ = a.Settled() {
		n := min(settled.Number+1+c.random.Uint64N(6), last)
		if err := a.Append(t.Context(), c.blocks[settled.Number+1:n+1]...); err != nil {
			t.Fatal(err)
		}
	}
}

// CheckStates checks the state of all blocks that the archive has one of, and its tries where it has
// their nodes.
func (c Chain) CheckStates(t *testing.T, a *Archive) {
	t.Helper()
	settled, _ := a.Settled()
	for number := a.Extent().State; number <= settled.Number; number++ {
		checkFlatState(t, c.grower, a, int(number))
		if number >= a.Extent().Tries {
			checkTries(t, c.grower, a, int(number))
		}
	}
}

// SetWholeEvery changes how often branches are stored whole again.
func SetWholeEvery(t *testing.T, blocks uint64) {
	before := wholeEvery
	wholeEvery = blocks
	t.Cleanup(func() { wholeEvery = before })
}

// CheckRead reads an account, a slot of it and the root of the trie as of a block, and compares them
// with the chain.
func (c Chain) CheckRead(ctx context.Context, a *Archive, number uint64, random *rand.Rand) error {
	state := c.states[number]
	address := c.nth("account", random.IntN(grownAccounts))
	slot := c.nth("slot", random.IntN(grownSlots))
	account, err := a.StateAt(number).Account(ctx, address)
	if err != nil {
		return err
	}
	if want := state.accounts[address]; !sameAccount(account, want) {
		return fmt.Errorf("block %d: account %x is %v, want %v", number, address, account, want)
	}
	value, err := a.StateAt(number).Slot(ctx, address, slot)
	if err == nil && value != state.slots[address][slot] {
		err = fmt.Errorf("block %d: slot %x of %x is %x, want %x", number, slot, address, value, state.slots[address][slot])
	}
	if err != nil {
		return err
	}
	_, err = a.StateAt(number).Node(ctx, common.Hash{}, nil, c.blocks[number].Block.Root())
	return err
}

// AddOlder adds the blocks from a number on that are before the first one of the archive in a store.
func (c Chain) AddOlder(ctx context.Context, store kv.Store, from uint64) error {
	a, err := Open(ctx, store)
	if err != nil {
		return err
	}
	added, err := a.AddOlder(ctx, from)
	if err != nil {
		return err
	}
	for number := from; number < a.Extent().Blocks; number++ {
		delta := c.blocks[number]
		total := big.NewInt(7 * int64(number+1)) // each block has 7
		if err := added.Put(ctx, &evm.Delta{Block: delta.Block, Senders: delta.Senders, Receipts: delta.Receipts}, total); err != nil {
			return err
		}
	}
	return added.Finish(ctx)
}
