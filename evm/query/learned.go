package query

import (
	"context"
	"sync"

	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/evm/execute"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
	"github.com/ethereum/go-ethereum/core/types"
)

const (
	learnedCalls = 1024 // kinds of calls that are remembered
	maxTouched   = 256  // accounts, slots and codes of each
)

// learned remembers what calls of the same function of the same contract have read, so that
// the next one reads it at once. What two calls in succession have both read is expected
// again; the rest, such as the balance of the account that was asked for, is not.
type learned struct {
	calls *lru.Cache[callKind, touches]
}

// callKind is a function of a contract.
type callKind struct {
	contract common.Address
	selector [4]byte
}

// touched is an account, a slot or a code that a call has read.
type touched struct {
	kind    touchedKind
	account common.Hash // or the hash of a code
	slot    common.Hash
}

type touchedKind uint8

const (
	touchedAccount touchedKind = iota
	touchedSlot
	touchedCode
)

// touches are what calls have read.
type touches struct {
	last     []touched // by the last one
	expected []touched
}

func newLearned() *learned {
	return &learned{calls: lru.NewCache[callKind, touches](learnedCalls)}
}

// kindOf returns the kind of a message; false if there is nothing to learn from it.
func kindOf(m *execute.Message) (kind callKind, ok bool) {
	if m.To == nil {
		return kind, false
	}
	kind.contract = *m.To
	copy(kind.selector[:], m.Data)
	return kind, true
}

// watch reads what calls like a message have read before, and records what this one reads
// from at.State until done is called.
func (v *View) watch(ctx context.Context, number uint64, m *execute.Message) (record func(evm.State) evm.State, done func()) {
	kind, ok := kindOf(m)
	if !ok || !v.history.Ahead() {
		return func(s evm.State) evm.State { return s }, func() {}
	}
	wants := v.history.Wants()
	wants.Header(number)
	wants.Account(number, evm.HashAddress(*m.To))
	wants.Account(number, evm.HashAddress(m.From))
	before, _ := v.chain.learned.calls.Get(kind)
	for _, t := range before.expected {
		t.want(wants, number)
	}
	wants.Read(ctx)
	var seen recording
	record = func(s evm.State) evm.State {
		seen.State = s
		return &seen
	}
	return record, func() { v.chain.learned.add(kind, before, seen.touched) }
}

// add records what a call has read.
func (l *learned) add(kind callKind, before touches, last []touched) {
	now := touches{last: last, expected: last}
	if before.last != nil {
		now.expected = nil
		known := make(map[touched]bool, len(before.last))
		for _, t := range before.last {
			known[t] = true
		}
		for _, t := range last {
			if known[t] {
				now.expected = append(now.expected, t)
			}
		}
	}
	l.calls.Add(kind, now)
}

func (t touched) want(wants *archive.Wants, number uint64) {
	switch t.kind {
	case touchedAccount:
		wants.Account(number, t.account)
	case touchedSlot:
		wants.Slot(number, t.account, t.slot)
	case touchedCode:
		wants.Code(t.account)
	}
}

// recording is a state that records what is read of it.
type recording struct {
	evm.State
	mu      sync.Mutex
	seen    map[touched]struct{}
	touched []touched
}

func (r *recording) add(t touched) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.seen[t]; ok || len(r.touched) == maxTouched {
		return
	}
	if r.seen == nil {
		r.seen = make(map[touched]struct{})
	}
	r.seen[t] = struct{}{}
	r.touched = append(r.touched, t)
}

// Account implements [evm.State].
func (r *recording) Account(ctx context.Context, address common.Hash) (*types.StateAccount, error) {
	r.add(touched{kind: touchedAccount, account: address})
	return r.State.Account(ctx, address)
}

// Slot implements [evm.State].
func (r *recording) Slot(ctx context.Context, address, slot common.Hash) (common.Hash, error) {
	r.add(touched{touchedSlot, address, slot})
	return r.State.Slot(ctx, address, slot)
}

// Code implements [evm.State].
func (r *recording) Code(ctx context.Context, hash common.Hash) ([]byte, error) {
	r.add(touched{kind: touchedCode, account: hash})
	return r.State.Code(ctx, hash)
}
