package query

import (
	"context"
	"errors"
	"fmt"

	"ashlar/chain"
	"ashlar/evm/archive"
	"ashlar/history/paging"
	"ashlar/history/postings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// Log is a log with its position. It is valid only during the call that it is passed to.
type Log struct {
	archive.Log
	Block       chain.Ref
	Time        uint64 // of the block
	Transaction int    // index in the block
	Index       uint64 // index of the log in the block
	// InBlock is the number of matching logs in the block; 0 if logs were not counted in
	// advance.
	InBlock int

	stored []byte // hash of the transaction beside its receipt; nil in archives of older versions
	body   func() (*archive.Body, error)
	hashed int // index of the transaction whose hash is in hash, -1 for none
	hash   common.Hash
	hasher crypto.KeccakState // created when first needed
}

// Body returns the body of the log's block. It is valid as long as the log.
func (l *Log) Body() (*archive.Body, error) { return l.body() }

// StoredHash returns the hash of the log's transaction if it is stored beside the receipt, else
// nil. It belongs to the log.
func (l *Log) StoredHash() []byte { return l.stored }

// TransactionHash returns the hash of the log's transaction. If it is not stored, it is
// computed, which costs more than everything else about a log.
func (l *Log) TransactionHash() (common.Hash, error) {
	if l.stored != nil {
		return common.Hash(l.stored), nil
	}
	if l.hashed == l.Transaction {
		return l.hash, nil
	}
	body, err := l.body()
	if err != nil {
		return common.Hash{}, err
	}
	if l.Transaction >= body.Len() {
		return common.Hash{}, fmt.Errorf("%w: block %d has receipt %d but no such transaction", archive.ErrCorrupt, l.Block.Number, l.Transaction)
	}
	raw, err := body.Transaction(l.Transaction)
	if err != nil {
		return common.Hash{}, fmt.Errorf("block %d: %w", l.Block.Number, err)
	}
	if l.hasher == nil {
		l.hasher = crypto.NewKeccakState()
	}
	l.hasher.Reset()
	_, _ = l.hasher.Write(raw) // never fails
	_, _ = l.hasher.Read(l.hash[:])
	l.hashed = l.Transaction
	return l.hash, nil
}

// Logs calls visit with every matching log in the order of the chain, until visit returns an
// error. If there are more than limit, it returns a *chain.TooManyLogs without calling visit: logs
// are counted by their postings before any is loaded. The filter's blocks must not be above
// the view's head.
func (v *View) Logs(ctx context.Context, filter *Filter, limit int, visit func(*Log) error) error {
	if filter.To > v.head.Number {
		return ErrUnknownBlock
	}
	if err := v.history.CheckRange(filter.From, filter.To); err != nil {
		return err
	}
	err := v.logs(ctx, filter, limit, visit)
	if pruned := v.history.CheckRange(filter.From, filter.To); pruned != nil { // rows may have been removed meanwhile
		return pruned
	}
	return err
}

func (v *View) logs(ctx context.Context, filter *Filter, limit int, visit func(*Log) error) error {
	wanted := filter.criteria()
	logs := v.loader(ctx, filter.To)
	defer logs.close()
	counted := logs.receipts // shared, so that each block's receipts are read once
	if filter.From != filter.To {
		counted = v.history.ReadReceipts(ctx, filter.To)
		defer counted.Close()
	}
	found, err := v.findLogs(ctx, filter, wanted, limit, counted)
	if err != nil || len(found.blocks) == 0 {
		return err
	}
	return logs.load(wanted, found, visit)
}

// foundLogs are the positions of matching logs.
type foundLogs struct {
	blocks    []foundBlock
	positions []uint32 // of all blocks, concatenated
}

type foundBlock struct {
	number uint64
	end    int // of its positions in foundLogs.positions
}

// scan returns how to read the view's postings.
func (v *View) scan(ctx context.Context) postings.Scan[postings.Term] {
	return func(term postings.Term, from, to uint64) postings.Postings { return v.Postings(ctx, term, from, to) }
}

// candidates iterates over logs that may match.
type candidates = paging.Candidates

// findLogs finds the positions of the matching logs. It does not close receipts.
func (v *View) findLogs(ctx context.Context, filter *Filter, wanted *criteria, limit int, receipts *archive.ReceiptsReader) (found foundLogs, err error) {
	extent := v.history.Extent()
	from, err := v.candidates(ctx, wanted, filter.From, filter.To, receipts, true)
	if err != nil {
		return found, err
	}
	found, err = count(from, filter, limit)
	if err = errors.Join(err, from.Close()); err == nil {
		err = v.checkMoved(extent, filter.From)
	}
	return found, err
}

func count(from candidates, filter *Filter, limit int) (found foundLogs, err error) {
	for block := filter.From; block <= filter.To; block++ {
		var ok bool
		block, found.positions, ok, err = from.Next(block, found.positions)
		if !ok || err != nil {
			return found, err
		}
		if len(found.positions) > limit {
			tooMany := &chain.TooManyLogs{Limit: limit, From: filter.From}
			if block > filter.From {
				tooMany.To, tooMany.Fits = block-1, true
			}
			return found, tooMany
		}
		found.blocks = append(found.blocks, foundBlock{block, len(found.positions)})
	}
	return found, nil
}

// allLogs iterates over all logs, as counted in the receipts.
type allLogs struct {
	receipts *archive.ReceiptsReader
	to       uint64
}

func (a *allLogs) Next(block uint64, dst []uint32) (uint64, []uint32, bool, error) {
	for ; block <= a.to; block++ {
		receipts, err := a.receipts.Receipts(block)
		if err != nil {
			return 0, dst, false, err
		}
		n, err := receipts.LogCount()
		if err != nil {
			return 0, dst, false, err
		}
		if n == 0 {
			continue
		}
		for position := range uint32(n) {
			dst = append(dst, position)
		}
		return block, dst, true, nil
	}
	return 0, dst, false, nil
}

func (a *allLogs) Close() error { return nil } // the creator closes receipts

// enoughTopics drops candidates that have too few topics. If the filter's last positions
// accept any topic, postings do not show whether a log has that many topics, so the receipts
// are read.
type enoughTopics struct {
	candidates
	receipts *archive.ReceiptsReader
	wanted   *criteria
}

func (e *enoughTopics) Next(block uint64, dst []uint32) (uint64, []uint32, bool, error) {
	kept := len(dst)
	for ; ; block++ {
		at, positions, ok, err := e.candidates.Next(block, dst)
		if !ok || err != nil {
			return 0, dst, false, err
		}
		block = at
		receipts, err := e.receipts.Receipts(block)
		if err != nil {
			return 0, dst, false, err
		}
		logs := blockLogs{receipts: receipts}
		dst = positions[:kept]
		for _, position := range positions[kept:] {
			log, err := logs.at(uint64(position))
			if err != nil {
				return 0, dst, false, fmt.Errorf("block %d: %w", block, err)
			}
			if e.wanted.hasTopics(&log) {
				dst = append(dst, position)
			}
		}
		if len(dst) > kept {
			return block, dst, true, nil
		}
	}
}

// loader loads logs in ascending order. It must be closed.
type loader struct {
	receipts *archive.ReceiptsReader
	bodies   *archive.BodyReader
	stamps   *archive.StampReader
	log      Log
	logs     blockLogs     // of the current block; empty before the first
	body     *archive.Body // of the current block; nil until needed
	ahead    func([]foundBlock)
}

// loader returns a loader for logs in blocks up to last.
func (v *View) loader(ctx context.Context, last uint64) *loader {
	l := &loader{receipts: v.history.ReadReceipts(ctx, last), bodies: v.history.ReadBodies(ctx, last), stamps: v.history.ReadStamps(ctx, last)}
	l.ahead = func(blocks []foundBlock) { v.readLogsAhead(ctx, blocks) }
	l.log.body = func() (_ *archive.Body, err error) {
		if l.body == nil {
			l.body, err = l.bodies.Body(l.log.Block.Number)
		}
		return l.body, err
	}
	return l
}

// load calls visit with the found logs. It skips those that do not match, which were found
// because of colliding terms.
func (l *loader) load(wanted *criteria, found foundLogs, visit func(*Log) error) error {
	begin := 0
	for i, block := range found.blocks {
		if i%paging.AheadBlocks == 0 {
			l.ahead(found.blocks[i:min(i+paging.AheadBlocks, len(found.blocks))])
		}
		l.log.InBlock = block.end - begin
		for _, position := range found.positions[begin:block.end] {
			log, err := l.at(block.number, uint64(position))
			if err != nil {
				return err
			}
			if !wanted.match(&log.Log) {
				continue
			}
			if err := visit(log); err != nil {
				return err
			}
		}
		begin = block.end
	}
	return nil
}

// at returns the log at a position of a block, which must be after that of the last call.
// The log is valid until the next call.
func (l *loader) at(block, position uint64) (*Log, error) {
	if l.logs.receipts == nil || l.log.Block.Number != block {
		receipts, err := l.receipts.Receipts(block)
		if err != nil {
			return nil, err
		}
		stamp, err := l.stamps.Stamp(block)
		if err != nil {
			return nil, err
		}
		l.log.Block, l.log.Time = chain.Ref{Number: block, Hash: stamp.Hash}, stamp.Time
		l.body, l.log.hashed = nil, -1
		l.logs = blockLogs{receipts: receipts}
	}
	var err error
	if l.log.Log, err = l.logs.at(position); err != nil {
		return nil, fmt.Errorf("block %d: %w", block, err)
	}
	l.log.Transaction, l.log.Index, l.log.stored = l.logs.transaction, position, l.logs.hash
	return &l.log, nil
}

func (l *loader) close() error {
	return errors.Join(l.receipts.Close(), l.bodies.Close(), l.stamps.Close())
}

// blockLogs finds the logs of one block by position, in ascending order.
type blockLogs struct {
	receipts    *archive.Receipts
	transaction int    // whose logs reader is reading
	hash        []byte // of transaction, or nil if it is not stored
	following   int    // the transaction after it; 0 before the first
	missed      bool   // it does not have the log that is looked for
	reader      archive.LogReader
	next, end   uint64 // positions of the reader's next log and of the next transaction's first log
}

// at returns the log at a position, which must be above that of the last call.
func (b *blockLogs) at(position uint64) (log archive.Log, err error) {
	for position >= b.end {
		if err := b.advance(position); err != nil {
			return log, err
		}
	}
	for {
		log, ok, err := b.reader.Next()
		if err == nil && (!ok || b.next > position) {
			err = fmt.Errorf("%w: log %d is not where its receipt says", archive.ErrCorrupt, position)
		}
		if err != nil {
			return log, err
		}
		b.next++
		if b.next > position {
			return log, nil
		}
	}
}

// advance moves to the transaction after the current one, which usually has the next log, and
// from there to the one that has the log at a position.
func (b *blockLogs) advance(position uint64) (err error) {
	i := b.following
	if b.missed {
		if i, err = b.receipts.OfLog(position, i); err != nil {
			return err
		}
	}
	if i >= b.receipts.Len() {
		return fmt.Errorf("%w: no log %d", archive.ErrCorrupt, position)
	}
	receipt, err := b.receipts.Receipt(i)
	if err != nil {
		return err
	}
	b.transaction, b.hash, b.following, b.reader = i, receipt.TransactionHash, i+1, receipt.Logs()
	b.next, b.end = receipt.FirstLog, receipt.FirstLog+receipt.LogCount
	b.missed = position >= b.end
	return nil
}
