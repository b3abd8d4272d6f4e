package archive

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// The universe of a grower's keys: numbers of accounts, and of slots of each.
const (
	grownAccounts = 24
	grownSlots    = 30
)

// traces makes traces of few addresses, with what the steps of the block change. As for a chain that is executed, the
// first block has none, and there are blocks whose changes cannot be said.
func (g *grower) traces(state *stateModel, delta *evm.Delta, transactions int) *evm.Traces {
	traces := new(evm.Traces)
	if len(g.blocks) == 0 {
		return traces
	}
	address := func() common.Address { return common.Address{byte(g.within.IntN(8))} }
	for range transactions {
		for range 1 + g.within.IntN(3) {
			traces.List = append(traces.List, evm.Trace{From: address(), To: address(), Roles: evm.Sender | evm.Receiver})
		}
		traces.Ends = append(traces.Ends, len(traces.List))
	}
	if g.within.IntN(8) > 0 {
		traces.Changes = g.changes(state, delta, transactions)
	}
	return traces
}

// changes makes what happened within a block between the states before and after it. Some keys change that are the same
// after it.
func (g *grower) changes(state *stateModel, delta *evm.Delta, transactions int) *evm.Changes {
	before := g.before()
	c := &evm.Changes{Transactions: transactions, Codes: make(map[common.Hash][]byte)}
	for i := range grownAccounts {
		address := g.nth("account", i)
		hasStorage := before.accounts[address] != nil && before.accounts[address].Root != types.EmptyRootHash
		first, last := accountWithin(before.accounts[address], hasStorage), accountWithin(state.accounts[address], hasStorage)
		if first != last || g.within.IntN(6) == 0 {
			h := historyBetween(g, first, last, transactions, func() evm.Account { return g.accountWithin(first, last, hasStorage) })
			c.Accounts = append(c.Accounts, evm.AccountChanges{Address: address, KeyChanges: h})
			g.addCodes(c.Codes, h, first, last)
		}
		places := slices.SortedFunc(maps.Keys(delta.Slots[address]), common.Hash.Cmp)
		for range g.within.IntN(3) {
			if slot := g.nth("slot", g.within.IntN(grownSlots)); !slices.Contains(places, slot) {
				places = append(places, slot)
			}
		}
		for _, slot := range places {
			first, last := before.slots[address][slot], state.slots[address][slot]
			h := historyBetween(g, first, last, transactions, func() common.Hash {
				return [...]common.Hash{first, last, {}, common.Hash(g.bytesWithin(32)), {31: g.bytesWithin(1)[0]}}[g.within.IntN(5)]
			})
			c.Slots = append(c.Slots, evm.SlotChanges{Address: address, Slot: slot, KeyChanges: h})
		}
	}
	return c
}

// historyBetween makes the history of a value that is first before the block and last after it. value makes values between
// them, which may be one of these.
func historyBetween[V comparable](g *grower, first, last V, transactions int, value func() V) evm.KeyChanges[V] {
	h := evm.KeyChanges[V]{Back: first == last}
	least := 1
	if h.Back {
		least = 2
	}
	steps := g.within.Perm(transactions + 2)
	steps = steps[:min(least+g.within.IntN(3), len(steps))]
	slices.Sort(steps)
	previous := first
	for i, step := range steps {
		next := last
		if left := len(steps) - 1 - i; left > 0 {
			for next = value(); next == previous || left == 1 && next == last; {
				next = value()
			}
		}
		h.Values = append(h.Values, evm.Step[V]{Step: step, Value: next})
		previous = next
	}
	return h
}

func accountWithin(account *types.StateAccount, hasStorage bool) evm.Account {
	if account == nil {
		return evm.Account{}
	}
	return evm.Account{Exists: true, HasStorage: hasStorage, Nonce: account.Nonce, Balance: *account.Balance, CodeHash: common.Hash(account.CodeHash)}
}

// accountWithin makes a value of an account. One that has storage is there throughout the block: else its changes could not be
// said.
func (g *grower) accountWithin(first, last evm.Account, hasStorage bool) evm.Account {
	switch g.within.IntN(5) {
	case 0:
		if first.Exists || !hasStorage {
			return first
		}
	case 1:
		if last.Exists || !hasStorage {
			return last
		}
	case 2:
		if !hasStorage {
			return evm.Account{}
		}
	}
	made := evm.Account{Exists: true, HasStorage: hasStorage, Nonce: g.within.Uint64N(300), CodeHash: types.EmptyCodeHash}
	made.Balance.SetBytes(g.bytesWithin(g.within.IntN(33)))
	switch choice := g.within.IntN(4); {
	case choice == 0 && first.Exists:
		made.CodeHash = first.CodeHash
	case choice == 1 && last.Exists:
		made.CodeHash = last.CodeHash
	case choice == 2:
		made.CodeHash = crypto.Keccak256Hash(codeWithin(g.within.IntN(20)))
	}
	return made
}

// codeWithin returns a code that accounts have within a block. The state has some of these, too.
func codeWithin(n int) []byte { return fmt.Appendf(nil, "code %d", n) }

// addCodes adds the codes that an account has only within the block.
func (g *grower) addCodes(to map[common.Hash][]byte, h evm.KeyChanges[evm.Account], first, last evm.Account) {
	for n := range 20 {
		code := codeWithin(n)
		hash := crypto.Keccak256Hash(code)
		for _, step := range h.Values {
			if step.Value.CodeHash == hash && hash != first.CodeHash && hash != last.CodeHash {
				to[hash] = code
			}
		}
	}
}

func (g *grower) bytesWithin(n int) []byte {
	value := bytes.Repeat([]byte{0}, n)
	for i := range value {
		value[i] = byte(g.within.Uint32())
	}
	return value
}

// valueAt returns the last value of a history up to a step.
func valueAt[V comparable](h evm.KeyChanges[V], step int) (value V, changed bool) {
	for _, s := range h.Values {
		if s.Step <= step {
			value, changed = s.Value, true
		}
	}
	return value, changed
}

// slotPlace is where a slot is in the state.
type slotPlace struct{ address, slot common.Hash }

// wantedChanges are the changes of a block by what has changed.
type wantedChanges struct {
	*evm.Changes
	accounts map[common.Hash]evm.KeyChanges[evm.Account]
	slots    map[slotPlace]evm.KeyChanges[common.Hash]
}

func wantedOf(c *evm.Changes) wantedChanges {
	w := wantedChanges{c, make(map[common.Hash]evm.KeyChanges[evm.Account]), make(map[slotPlace]evm.KeyChanges[common.Hash])}
	for _, k := range c.Accounts {
		w.accounts[k.Address] = k.KeyChanges
	}
	for _, k := range c.Slots {
		w.slots[slotPlace{k.Address, k.Slot}] = k.KeyChanges
	}
	return w
}
