package query

import (
	"context"
	"fmt"

	"ashlar/archive"
	"ashlar/archive/postings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// Log is a log with its place. It is valid only during the call that it is given to.
type Log struct {
	archive.Log
	Block       *archive.Header
	Transaction int    // its position in the block
	Index       uint64 // position of the log in the block

	body   func() (*archive.Body, error)
	hashed int // the transaction whose hash is in hash, -1 for none
	hash   common.Hash
	hasher crypto.KeccakState // nil until it is needed
}

// TransactionHash is the hash of the log's transaction. It is worked out for
// those who ask, because that takes more than all the rest.
func (l *Log) TransactionHash() (common.Hash, error) {
	if l.hashed == l.Transaction {
		return l.hash, nil
	}
	body, err := l.body()
	if err != nil {
		return common.Hash{}, err
	}
	if l.Transaction >= body.Len() {
		return common.Hash{}, fmt.Errorf("%w: block %d has a receipt %d and no such transaction", archive.ErrCorrupt, l.Block.Number, l.Transaction)
	}
	raw, err := body.Transaction(l.Transaction)
	if err != nil {
		return common.Hash{}, fmt.Errorf("block %d: %w", l.Block.Number, err)
	}
	if l.hasher == nil {
		l.hasher = crypto.NewKeccakState()
	}
	l.hash, l.hashed = crypto.HashData(l.hasher, raw), l.Transaction
	return l.hash, nil
}

// TooManyLogs says that more logs match than were allowed.
type TooManyLogs struct {
	Limit int
	// From and To are the longest range from the filter's first block on that
	// has no more than Limit, if Fits; else that block alone has more.
	From, To uint64
	Fits     bool
}

func (e *TooManyLogs) Error() string {
	return fmt.Sprintf("query returned more than %d results", e.Limit)
}

// Logs calls visit with every log that the filter asks for, in the order of the
// chain, until visit returns an error. Where there are more than limit it returns
// a *TooManyLogs instead and calls nothing: they are counted first, by their
// postings, and only those that are to be visited are loaded. The filter's blocks
// must not lie above the view's head.
func (v *View) Logs(ctx context.Context, filter *Filter, limit int, visit func(*Log) error) error {
	if filter.To > v.head.Number {
		return ErrUnknownBlock
	}
	wanted := filter.criteria()
	found, err := v.findLogs(ctx, filter, wanted, limit)
	if err != nil || len(found.blocks) == 0 {
		return err
	}
	return v.loadLogs(ctx, wanted, found, visit)
}

// foundLogs are the places of logs.
type foundLogs struct {
	blocks    []foundBlock
	positions []uint32 // of each block's logs, one block's after the other's
}

type foundBlock struct {
	number uint64
	end    int // of its positions in foundLogs
}

// scan is how the view's postings are read.
func (v *View) scan(ctx context.Context) postings.Scan {
	return func(term postings.Term, from, to uint64) postings.Postings { return v.Postings(ctx, term, from, to) }
}

// candidates steps through the blocks that have logs which may be asked for.
type candidates interface {
	// Next returns the first block at or above one that has any, their
	// positions appended to dst; false when there is none.
	Next(block uint64, dst []uint32) (at uint64, positions []uint32, ok bool, err error)
	Close() error
}

// findLogs finds where the logs are that the filter asks for.
func (v *View) findLogs(ctx context.Context, filter *Filter, wanted *criteria, limit int) (found foundLogs, err error) {
	var from candidates
	if terms := wanted.terms(); len(terms) > 0 {
		from, err = postings.Intersect(v.scan(ctx), terms, filter.From, filter.To)
	} else {
		from = &allLogs{receipts: v.history.ReadReceipts(ctx, filter.To), to: filter.To}
	}
	if err == nil && wanted.needsTopicCount() {
		from = &enoughTopics{candidates: from, receipts: v.history.ReadReceipts(ctx, filter.To), wanted: wanted}
	}
	if err == nil {
		found, err = count(from, filter, limit)
	}
	if cerr := from.Close(); err == nil {
		err = cerr
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
			tooMany := &TooManyLogs{Limit: limit, From: filter.From}
			if block > filter.From {
				tooMany.To, tooMany.Fits = block-1, true
			}
			return found, tooMany
		}
		found.blocks = append(found.blocks, foundBlock{block, len(found.positions)})
	}
	return found, nil
}

// allLogs are the logs of all blocks, known from the count in the receipts.
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

func (a *allLogs) Close() error { return a.receipts.Close() }

// enoughTopics are the candidates that have a topic at each of the filter's
// positions. Postings do not tell where the filter ends in positions at which
// any topic will do, so the receipts are looked at.
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

func (e *enoughTopics) Close() error {
	err := e.candidates.Close()
	if cerr := e.receipts.Close(); err == nil {
		err = cerr
	}
	return err
}

// loadLogs reads the logs that were found. What does not match after all has been
// found only because terms collide.
func (v *View) loadLogs(ctx context.Context, wanted *criteria, found foundLogs, visit func(*Log) error) error {
	last := found.blocks[len(found.blocks)-1].number
	receipts := v.history.ReadReceipts(ctx, last)
	defer receipts.Close()
	bodies := v.history.ReadBodies(ctx, last)
	defer bodies.Close()
	var log Log
	var body *archive.Body // of log's block, nil until it is asked for
	log.body = func() (_ *archive.Body, err error) {
		if body == nil {
			body, err = bodies.Body(log.Block.Number.Uint64())
		}
		return body, err
	}
	begin := 0
	for _, block := range found.blocks {
		r, err := receipts.Receipts(block.number)
		if err != nil {
			return err
		}
		if log.Block, err = v.Header(ctx, block.number); err != nil {
			return err
		}
		body, log.hashed = nil, -1
		logs := blockLogs{receipts: r}
		for _, position := range found.positions[begin:block.end] {
			if log.Log, err = logs.at(uint64(position)); err != nil {
				return fmt.Errorf("block %d: %w", block.number, err)
			}
			if !wanted.match(&log.Log) {
				continue
			}
			log.Transaction, log.Index = logs.transaction, uint64(position)
			if err := visit(&log); err != nil {
				return err
			}
		}
		begin = block.end
	}
	return nil
}

// blockLogs finds logs of one block by their positions, in ascending order.
type blockLogs struct {
	receipts    *archive.Receipts
	transaction int // whose logs are read at present
	reader      archive.LogReader
	next, end   uint64 // positions of reader's next log and of the next transaction's first
}

// at returns the log at a position, which is above that of the call before.
func (b *blockLogs) at(position uint64) (log archive.Log, err error) {
	if position >= b.end {
		i, err := b.receipts.OfLog(position)
		if err != nil {
			return log, err
		}
		if i == b.receipts.Len() {
			return log, fmt.Errorf("%w: there is no log %d", archive.ErrCorrupt, position)
		}
		receipt, err := b.receipts.Receipt(i)
		if err != nil {
			return log, err
		}
		b.transaction, b.reader = i, receipt.Logs()
		b.next, b.end = receipt.FirstLog, receipt.FirstLog+receipt.LogCount
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
