package events

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"ashlar/history/paging"
	"ashlar/jsonrpc"
)

// BlockID is a block parameter, as one end of a range is.
type BlockID struct {
	Kind   BlockKind
	Number uint64
	Hash   Word
}

// BlockKind says how a block is named.
type BlockKind byte

// The ways of naming a block.
const (
	NotGiven BlockKind = iota
	ByNumber
	ByHash
	Latest
	Pending    // the block above the latest
	L1Accepted // the latest that is known to be accepted on layer 1
)

// resolve finds the range of a page in a view, which includes the pending block only if
// the filter names it. The range may be empty: it ends before it begins then.
func (q *request) resolve(ctx context.Context, view View, pending bool) (r paging.Range, err error) {
	r.Size = q.chunkSize
	first, last := view.Span()
	from, to := q.from, q.to
	if q.token != nil { // another server, which made it, may know of later blocks that are accepted on layer 1
		from, to = from.beyondL1(), to.beyondL1()
	}
	r.Begin.Block, err = from.Resolve(ctx, view)
	var gone *jsonrpc.Error
	if errors.As(err, &gone) && gone.Code == codeUnknownBlock && q.token != nil {
		// It may have been removed since the first page, which does not matter to later ones.
		r.Begin.Block, err = first, nil
	}
	if err != nil {
		return r, err
	}
	if r.To, err = to.Resolve(ctx, view); err != nil {
		return r, err
	}
	switch q.from.Kind {
	case NotGiven:
		r.Begin.Block = first
	case Pending:
		r.Begin.Block = last + 1
	}
	if pending {
		last++
		if q.to.Kind == Pending {
			r.To = last
		}
	}
	r.To = min(r.To, last)
	if q.token != nil {
		if err = q.resume(ctx, view, &r); gone != nil && errors.Is(err, errToken) {
			err = gone
		}
	}
	return r, err
}

// beyondL1 returns the latest block instead of the latest that is accepted on layer 1.
func (b BlockID) beyondL1() BlockID {
	if b.Kind == L1Accepted {
		b.Kind = Latest
	}
	return b
}

// Resolve returns the number of a block; that of the latest where none is named, or the
// pending one. The number may lie above it.
func (b *BlockID) Resolve(ctx context.Context, view View) (uint64, error) {
	first, last := view.Span()
	switch b.Kind {
	case ByNumber:
		if b.Number < first {
			return 0, UnknownBlock(fmt.Sprintf("block %d is not held: this network begins with block %d", b.Number, first))
		}
		return b.Number, nil
	case ByHash:
		number, known, err := view.FindBlock(ctx, b.Hash)
		if err == nil && !known {
			err = UnknownBlock("")
		}
		return number, err
	case L1Accepted:
		layered, ok := view.(L1View)
		if !ok {
			return 0, UnknownBlock("")
		}
		number, known := layered.L1Accepted()
		if !known || number < first {
			return 0, UnknownBlock("no block here is known to be accepted on L1")
		}
		return number, nil
	}
	return last, nil
}

// resume moves the beginning of a range to where a token points, if that is still
// what it was when the token was made, and its end to what it was then.
func (q *request) resume(ctx context.Context, view View, r *paging.Range) error {
	token := q.token
	moving := q.from.Kind == Latest || q.from.Kind == Pending || q.from.Kind == L1Accepted // it may have moved on since
	if token.Filter != q.fingerprint() || token.Next.Block < r.Begin.Block && !moving {
		return errToken
	}
	if q.to.Kind == ByNumber && token.To > q.to.Number || q.to.Kind == ByHash && token.To != r.To {
		return errToken
	}
	r.To = min(r.To, token.To) // a reorganization may have made the chain shorter
	if token.Next.Block > r.To {
		return errToken
	}
	hash, err := view.BlockHash(ctx, token.Next.Block)
	if err != nil {
		return err
	}
	if hash != token.BlockHash {
		return errToken
	}
	r.Begin, r.Resumed = token.Next, true
	return nil
}

// fingerprint is of all that is asked, the page's size aside. Values may come in
// any order.
func (q *request) fingerprint() paging.Fingerprint {
	var all []byte
	for _, id := range []*BlockID{&q.from, &q.to} {
		all = binary.BigEndian.AppendUint64(append(all, byte(id.Kind)), id.Number)
		all = append(all, id.Hash[:]...)
	}
	addresses := distinct(q.filter.Addresses)
	if all = append(all, byte(min(len(addresses), 2))); len(addresses) > 1 {
		all = binary.BigEndian.AppendUint32(all, uint32(len(addresses)))
	}
	for _, address := range addresses {
		all = append(all, address[:]...)
	}
	for _, allowed := range q.filter.Keys {
		allowed = distinct(allowed)
		all = binary.BigEndian.AppendUint32(all, uint32(len(allowed)))
		for _, key := range allowed {
			all = append(all, key[:]...)
		}
	}
	hash := sha256.Sum256(all)
	return paging.Fingerprint(hash[:len(paging.Fingerprint{})])
}

// distinct returns the words sorted and without duplicates.
func distinct(words []Word) []Word {
	words = slices.Clone(words)
	slices.SortFunc(words, func(a, b Word) int { return slices.Compare(a[:], b[:]) })
	return slices.Compact(words)
}
