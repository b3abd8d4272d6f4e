// Package audit contains the parts of the consistency check that all chain families share.
// A family reads its blocks, checks them by its own rules and says which rows each block
// must have ([BlockCheck]). [Audit.CheckBlocks] compares these with the stored rows, so that
// missing, different and superfluous rows are found. Its memory does not grow with the chain
// ([Ledger]). Inconsistencies are reported as a [Finding], progress as a [Progress].
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

// ErrRange means that the archive does not have the blocks to be checked.
var ErrRange = errors.New("no such range of blocks")

// ErrRemoved means that rows were removed while they were checked, as another process can do in a cluster, so what was
// found means nothing.
var ErrRemoved = errors.New("blocks or states were removed while they were checked (want another check when the removal is complete)")

// Head stands for the last settled block at the end of a range.
const Head = ^uint64(0)

// Report is the result of a check.
type Report struct {
	Sound        bool     `json:"sound"`
	Finding      *Finding `json:"finding,omitempty"` // nil if sound
	From         uint64   `json:"from"`
	To           uint64   `json:"to"`
	Blocks       uint64   `json:"blocks"`
	Transactions uint64   `json:"transactions"`
	Rows         uint64   `json:"rows"` // read
}

// Archive describes an archive to a check.
type Archive struct {
	Store   kv.Store
	First   uint64      // first block
	Own     []*kv.Table // tables from which blocks are read, partitioned by rows.Chunk
	Derived []*kv.Table // tables whose rows follow from Own
	// Genesis says that block 0 is stored even if First is a later block.
	Genesis bool
	// Unfinished is a block before First: rows from there to First are left by an interrupted
	// addition, and nothing reads them. 0: there are none.
	Unfinished uint64
	// DescribeKey describes a row without its block, for error messages.
	DescribeKey func(t *kv.Table, partition []byte, sort uint64) string
}

// hasOwn reports whether blocks are read from a table.
func (a *Archive) hasOwn(t *kv.Table) bool { return slices.Contains(a.Own, t) }

// Audit is a check of the blocks of one archive. All parts of the check share it.
type Audit struct {
	Archive
	Settled  chain.Ref // last block in the archive
	From, To uint64    // the blocks to check; block 0 comes in addition if apart is true
	apart    bool      // block 0 is stored, and before the range that begins with First
	epoch    uint64    // of the store, when the check began
	progress *Progress

	blocks, transactions, rows atomic.Uint64 // checked so far
}

// New begins a check of a range of blocks in an archive. The range may end with [Head]. If the archive does not have it,
// New returns an ErrRange.
func New(ctx context.Context, archive Archive, from, to uint64, progress *Progress) (*Audit, error) {
	first := archive.First
	epoch, _, err := kv.Epoch(ctx, archive.Store)
	if err != nil {
		return nil, err
	}
	last, any, err := rows.Settled(ctx, archive.Store)
	switch {
	case err != nil:
		return nil, err
	case !any:
		return nil, fmt.Errorf("%w: the archive is empty", ErrRange)
	case first > last.Number:
		return nil, fmt.Errorf("%w: the first block is %d, the last settled %d", rows.ErrCorrupt, first, last.Number)
	}
	if to == Head {
		to = last.Number
	}
	if from < first || from > to || to > last.Number {
		return nil, fmt.Errorf("%w: from %d to %d (want blocks from %d to %d, the first not above the last)", ErrRange, from, to, first, last.Number)
	}
	apart := archive.Genesis && from == first && first > 0
	return &Audit{Archive: archive, Settled: last, From: from, To: to, apart: apart, epoch: epoch, progress: progress}, nil
}

// The moments of the ledger of blocks are the blocks of the range, in order. Block 0
// follows them if it is apart from them.

func (a *Audit) moments() int {
	n := int(a.To - a.From + 1)
	if a.apart {
		n++
	}
	return n
}

// blockAt returns the block of a moment.
func (a *Audit) blockAt(moment int) uint64 {
	if a.apart && moment == a.moments()-1 {
		return 0
	}
	return a.From + uint64(moment)
}

// momentOf returns the moment of a block, or false if the block is not checked.
func (a *Audit) momentOf(block uint64) (moment int, checked bool) {
	if a.apart && block == 0 {
		return a.moments() - 1, true
	}
	return int(block - a.From), block >= a.From && block <= a.To
}

// Report returns the report of an audit that ended with err, which may be nil. If err is not
// a [Finding], the check did not finish and Report returns err. If blocks were removed meanwhile, Report
// returns an ErrRemoved.
func (a *Audit) Report(ctx context.Context, err error) (r Report, other error) {
	if err != nil && !errors.As(err, &r.Finding) {
		return r, err
	}
	if epoch, removing, err := kv.Epoch(ctx, a.Store); err != nil {
		return r, err
	} else if removing || epoch != a.epoch {
		return r, ErrRemoved
	}
	r.Sound, r.From, r.To = err == nil, a.From, a.To
	r.Blocks, r.Transactions, r.Rows = a.blocks.Load(), a.transactions.Load(), a.rows.Load()
	return r, nil
}

// UnreadablePointers translates an error of opening an archive with these pointers: to a report with
// a finding about them, or to an error if there is nothing to check.
func UnreadablePointers(ctx context.Context, pointers string, err error) (Report, error) {
	switch {
	case ctx.Err() != nil:
		return Report{}, ctx.Err()
	case errors.Is(err, kv.ErrNotFound) || errors.Is(err, rows.ErrFormat) || rows.Incomplete(err) || errors.Is(err, ErrRange):
		return Report{}, err
	}
	f := &Finding{Table: "none", Key: "the pointers " + pointers, Expected: "pointers that can be read", Got: damage(err)}
	if errors.Is(err, rows.ErrCorrupt) {
		f.Got = err.Error()
	}
	return Report{Finding: f}, nil
}

// remoteReads is how many rows are read at once from a store on other machines, which take
// longer to answer than to compute.
const remoteReads = 32

// Workers is the number of goroutines to use for parallel work.
func (a *Audit) Workers() int {
	if _, remote := a.Store.(kv.Leased); remote {
		return remoteReads
	}
	return runtime.GOMAXPROCS(0)
}
