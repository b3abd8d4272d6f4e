package query

import (
	"context"

	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/history/postings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types/bal"
	"github.com/ethereum/go-ethereum/rlp"
)

// This file is for stores whose reads take a round trip. It reads in parallel what a query is
// going to need. On an embedded store it does nothing.

const aheadListed = 1024 // accounts and slots of a block's access list

// ReadAhead reads the header and the body of a block, and its receipts if they are wanted.
func (v *View) ReadAhead(ctx context.Context, number uint64, receipts bool) {
	if !v.history.Ahead() || number > v.head.Number {
		return
	}
	wants := v.history.Wants()
	wants.Header(number)
	wants.Body(number)
	if receipts {
		wants.Receipts(number)
	}
	wants.Read(ctx)
}

// termsAhead returns how to read where several terms of a filter occur; nil if nothing is read ahead.
func (v *View) termsAhead(ctx context.Context) postings.Ahead[postings.Term] {
	return occurrencesAhead(ctx, v, (*archive.Wants).Postings)
}

// participantsAhead is termsAhead for the participants of traces.
func (v *View) participantsAhead(ctx context.Context) postings.Ahead[archive.Participant] {
	return occurrencesAhead(ctx, v, (*archive.Wants).TracePostings)
}

// occurrencesAhead returns how to read where several things occur, of which want adds one.
func occurrencesAhead[T comparable](ctx context.Context, v *View, want func(w *archive.Wants, of T, from, to uint64)) postings.Ahead[T] {
	if !v.history.Ahead() {
		return nil
	}
	return func(all []T, from, to uint64) {
		wants := v.history.Wants()
		for _, of := range all {
			want(wants, of, from, min(to, v.head.Number))
		}
		wants.Read(ctx)
	}
}

// readCountsAhead reads how many traces the blocks from <= b <= to have.
func (v *View) readCountsAhead(ctx context.Context, from, to uint64) {
	if !v.history.Ahead() {
		return
	}
	wants := v.history.Wants()
	for number := from; number <= min(to, v.head.Number); number++ {
		wants.TraceCounts(number)
	}
	wants.Read(ctx)
}

// readLogsAhead reads what the logs of some blocks are made of.
func (v *View) readLogsAhead(ctx context.Context, blocks []foundBlock) {
	if !v.history.Ahead() {
		return
	}
	wants := v.history.Wants()
	for _, block := range blocks {
		wants.Header(block.number)
		wants.Receipts(block.number)
		if !v.history.StoresHashes() {
			wants.Body(block.number)
		}
	}
	wants.Read(ctx)
}

// readInputAhead reads a block with its parent's header, and what it accesses according to
// its access list, if it has one.
func (v *View) readInputAhead(ctx context.Context, number uint64) {
	if !v.history.Ahead() || number > v.head.Number {
		return
	}
	wants := v.history.Wants()
	wants.Header(number - 1)
	wants.Header(number)
	wants.Body(number)
	if v.Executor().Config().AmsterdamTime != nil {
		wants.AccessList(number)
	}
	wants.Changes(number)
	wants.Read(ctx)
	header, err := v.Header(ctx, number)
	if err != nil || header.BlockAccessListHash == nil { // before Amsterdam
		return
	}
	encoded, err := v.history.AccessList(ctx, number)
	var list bal.BlockAccessList
	if err != nil || rlp.DecodeBytes(encoded, &list) != nil {
		return // an error recurs where the list is needed
	}
	wants, n := v.history.Wants(), 0
	var accounts []common.Hash
	for i := range list {
		account := evm.HashAddress(list[i].Address)
		accounts = append(accounts, account)
		wants.Account(number-1, account)
		n++
		for j := range list[i].StorageChanges {
			wants.Slot(number-1, account, evm.HashSlot(list[i].StorageChanges[j].Slot.Bytes32()))
			n++
		}
		for j := range list[i].StorageReads {
			wants.Slot(number-1, account, evm.HashSlot(list[i].StorageReads[j].Bytes32()))
			n++
		}
		if n > aheadListed {
			break
		}
	}
	wants.Read(ctx)
	stateAhead{v.history, number - 1}.readCodes(ctx, accounts)
}

const (
	// proofLevels is how many levels of a trie a proof reads at once, from the root down:
	// those of 16^9 accounts, and nearly all that occur.
	proofLevels = 9
	// proofSlots bounds the slots that are read with them.
	proofSlots = 64
)

// readProofAhead reads the levels of the trie of accounts on the path to an account, and
// those of its storage trie on the paths to slots.
func (v *View) readProofAhead(ctx context.Context, number uint64, account common.Hash, slots []common.Hash) {
	if !v.history.Ahead() {
		return
	}
	wants := v.history.Wants()
	wants.Header(number)
	wants.Account(number, account)
	wantPath(wants, number, common.Hash{}, account, 0, proofLevels)
	for _, slot := range slots[:min(len(slots), proofSlots)] {
		key := evm.HashSlot(slot)
		wants.Slot(number, account, key)
		wantPath(wants, number, account, key, 0, proofLevels)
	}
	wants.Read(ctx)
}

// readLevelsAhead reads all levels of a trie that are below a depth.
func (v *View) readLevelsAhead(ctx context.Context, number uint64, owner, key common.Hash, depth int) {
	if !v.history.Ahead() {
		return
	}
	wants := v.history.Wants()
	wantPath(wants, number, owner, key, depth, evm.KeyNibbles)
	wants.Read(ctx)
}

// wantPath adds the nodes of a trie on the path to a key from one depth to below another.
// The path may skip some of these depths.
func wantPath(wants *archive.Wants, number uint64, owner, key common.Hash, from, below int) {
	var path [evm.KeyNibbles]byte
	evm.AppendNibbles(path[:0], key[:])
	for depth := from; depth < below; depth++ {
		wants.Node(number, owner, path[:depth])
	}
}
