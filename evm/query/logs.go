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

// Log is a log with its place. It is valid only during the call that it is given to.
type Log struct {
	archive.Log
	Block       chain.Ref
	Time        uint64 // of the block
	Transaction int    // its position in the block
	Index       uint64 // position of the log in the block
	// InBlock is how many of the block's logs were found; 0 where they are not
	// counted before they are loaded.
	InBlock int

	body   func() (*archive.Body, error)
	hashed int // the transaction whose hash is in hash, -1 for none
	hash   common.Hash
	hasher crypto.KeccakState // nil until it is needed
}

// Body is the body of the log's block. It is valid for as long as the log.
func (l *Log) Body() (*archive.Body, error) { return l.body() }

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
	l.hasher.Reset()
	_, _ = l.hasher.Write(raw) // a hash takes whatever it is given
	_, _ = l.hasher.Read(l.hash[:])
	l.hashed = l.Transaction
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
	logs := v.loader(ctx, filter.To)
	defer logs.close()
	counted := logs.receipts // one block's receipts are read once
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

// candidates are logs which may be asked for.
type candidates = paging.Candidates

// findLogs finds where the logs are that the filter asks for. It closes no receipts.
func (v *View) findLogs(ctx context.Context, filter *Filter, wanted *criteria, limit int, receipts *archive.ReceiptsReader) (found foundLogs, err error) {
	from, err := v.candidates(ctx, wanted, filter.From, filter.To, receipts)
	if err == nil && wanted.needsTopicCount() {
		from = &enoughTopics{candidates: from, receipts: receipts, wanted: wanted}
	}
	if err == nil {
		found, err = count(from, filter, limit)
	}
	return found, errors.Join(err, from.Close())
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

// candidates are the logs, in blocks from one to another, that have a term of each
// of the wanted sets. Where any log will do they are those of the receipts.
func (v *View) candidates(ctx context.Context, wanted *criteria, from, to uint64, receipts *archive.ReceiptsReader) (candidates, error) {
	if terms := wanted.terms(); len(terms) > 0 {
		return postings.Intersect(v.scan(ctx), terms, from, to)
	}
	return &allLogs{receipts: receipts, to: to}, nil
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

func (a *allLogs) Close() error { return nil } // the receipts are another's

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

// loader loads logs in ascending order. It must be closed.
type loader struct {
	receipts *archive.ReceiptsReader
	bodies   *archive.BodyReader
	stamps   *archive.StampReader
	log      Log
	logs     blockLogs     // of the log's block; of none before the first
	body     *archive.Body // of the log's block, nil until it is asked for
}

// loader returns a loader of logs of blocks up to last.
func (v *View) loader(ctx context.Context, last uint64) *loader {
	l := &loader{receipts: v.history.ReadReceipts(ctx, last), bodies: v.history.ReadBodies(ctx, last), stamps: v.history.ReadStamps(ctx, last)}
	l.log.body = func() (_ *archive.Body, err error) {
		if l.body == nil {
			l.body, err = l.bodies.Body(l.log.Block.Number)
		}
		return l.body, err
	}
	return l
}

// load gives visit the logs that were found. What does not match after all has been
// found only because terms collide.
func (l *loader) load(wanted *criteria, found foundLogs, visit func(*Log) error) error {
	begin := 0
	for _, block := range found.blocks {
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

// at returns the log at a position in a block, behind that of the call before. It
// is valid until the next call.
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
	l.log.Transaction, l.log.Index = l.logs.transaction, position
	return &l.log, nil
}

func (l *loader) close() error {
	return errors.Join(l.receipts.Close(), l.bodies.Close(), l.stamps.Close())
}

// blockLogs finds logs of one block by their positions, in ascending order.
type blockLogs struct {
	receipts    *archive.Receipts
	transaction int // whose logs are read at present; those before it end before them
	reader      archive.LogReader
	next, end   uint64 // positions of reader's next log and of the next transaction's first
}

// at returns the log at a position, which is above that of the call before.
func (b *blockLogs) at(position uint64) (log archive.Log, err error) {
	if position >= b.end {
		i, err := b.receipts.OfLog(position, b.transaction)
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
