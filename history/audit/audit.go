// Package audit is what the checks of every family of chain have in common. A
// family reads its blocks, checks them by its own rules and says which rows each
// must have ([BlockCheck]); here these are compared with the rows that are there
// ([Audit.CheckBlocks]), so that none is missing, none is another, and none is too
// many. That takes memory that does not grow with the chain ([Ledger]). What is
// wrong is said as a [Finding], and how far a check is as its [Progress].
package audit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"

	"ashlar/chain"
	"ashlar/history/rows"
	"ashlar/kv"
)

// ErrRange says that the archive does not have the blocks that are to be checked.
var ErrRange = errors.New("no such range of blocks")

// Head, as the end of a range, is the last settled block.
const Head = ^uint64(0)

// Report says what was checked.
type Report struct {
	Sound        bool     `json:"sound"`
	Finding      *Finding `json:"finding,omitempty"` // what is wrong, where it is not sound
	From         uint64   `json:"from"`
	To           uint64   `json:"to"`
	Blocks       uint64   `json:"blocks"`
	Transactions uint64   `json:"transactions"`
	Rows         uint64   `json:"rows"` // read
}

// Family is what a check must know of a family's tables.
type Family struct {
	Own     []*kv.Table // those that a block is read from, by chunks of blocks
	Derived []*kv.Table // those whose rows follow from these
	// DescribeKey names a row for people, its block aside.
	DescribeKey func(t *kv.Table, partition []byte, sort uint64) string
	// Place is how far a row lies in a table in the order of its keys, of 1<<16;
	// asked for tables that are not by chunks. Nil: see [Leading].
	Place func(t *kv.Table, partition []byte) uint64
}

// hasOwn says whether a table is one of those that a block is read from.
func (f *Family) hasOwn(t *kv.Table) bool { return slices.Contains(f.Own, t) }

// Audit is a check of the blocks of one archive, which all its parts share.
type Audit struct {
	Family
	Store    kv.Store
	First    uint64    // the first block that is held
	Settled  chain.Ref // the last
	From, To uint64    // the blocks to check
	progress *Progress

	blocks, transactions, rows atomic.Uint64 // checked
}

// New begins a check of a range of blocks in an archive whose first block is
// known. The range may end with [Head]; one that is not held is an [ErrRange].
func New(ctx context.Context, store kv.Store, family Family, first, from, to uint64, progress *Progress) (*Audit, error) {
	last, any, err := rows.Settled(ctx, store)
	switch {
	case err != nil:
		return nil, err
	case !any:
		return nil, fmt.Errorf("%w: the archive has no block yet", ErrRange)
	case first > last.Number:
		return nil, fmt.Errorf("%w: the first block is %d, the last settled %d", rows.ErrCorrupt, first, last.Number)
	}
	if to == Head {
		to = last.Number
	}
	if from < first || from > to || to > last.Number {
		return nil, fmt.Errorf("%w: blocks %d to %d of an archive that has blocks %d to %d", ErrRange, from, to, first, last.Number)
	}
	return &Audit{Family: family, Store: store, First: first, Settled: last, From: from, To: to, progress: progress}, nil
}

// Report is what an audit that ended with an error, or none, has to say. An error
// that is no [Finding] is returned: it kept the check from its end.
func (a *Audit) Report(err error) (r Report, other error) {
	if err != nil && !errors.As(err, &r.Finding) {
		return r, err
	}
	r.Sound, r.From, r.To = err == nil, a.From, a.To
	r.Blocks, r.Transactions, r.Rows = a.blocks.Load(), a.transactions.Load(), a.rows.Load()
	return r, nil
}

// Unpointed is what an error of opening an archive with these pointers means: a
// finding about them, or an error where there is nothing to check.
func Unpointed(ctx context.Context, pointers string, err error) (Report, error) {
	switch {
	case ctx.Err() != nil:
		return Report{}, ctx.Err()
	case errors.Is(err, kv.ErrNotFound) || errors.Is(err, rows.ErrFormat) || errors.Is(err, ErrRange):
		return Report{}, err
	}
	f := &Finding{Table: "none", Key: "the pointers " + pointers, Expected: "pointers that can be read", Got: damage(err)}
	if errors.Is(err, rows.ErrCorrupt) {
		f.Got = err.Error()
	}
	return Report{Finding: f}, nil
}

// Workers is how many goroutines share a piece of work.
func Workers() int { return runtime.GOMAXPROCS(0) }
