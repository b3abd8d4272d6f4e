package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// recorded is a block of the kind Blocks.
type recorded struct {
	Block      *types.Block
	Receipts   types.Receipts
	AccessList []byte
}

// nextBlock reads the next block of a stream, or returns io.EOF.
func nextBlock(ctx context.Context, blocks *stream) (*recorded, error) {
	one := new(recorded)
	return one, decode(ctx, blocks, one)
}

// decode decodes the next record of a stream, which is RLP after its length.
func decode(ctx context.Context, from *stream, into any) error {
	record, err := from.record(ctx)
	if err != nil {
		return err
	}
	encoded, err := record.field()
	if err != nil {
		return err
	}
	if err := rlp.DecodeBytes(encoded, into); err != nil {
		return record.damaged("%w", err)
	}
	return nil
}

// Block implements ingest.StateSource. Blocks must be asked for in descending order, from the
// one with state on.
func (s *Source) Block(hash common.Hash, number uint64) (*types.Block, types.Receipts, []byte, error) {
	ctx := context.Background() // the stream ends with the source
	if s.blocks == nil || number == s.manifest.State.Number {
		s.blocks.close()
		s.blocks = newStream(ctx, s.from, Blocks, s.manifest.Chunks[Blocks], 0)
	}
	one, err := nextBlock(ctx, s.blocks)
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: block %d (%#x) is missing", ErrDamaged, number, hash)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	return one.Block, one.Receipts, one.AccessList, nil
}

// headers reads consecutive headers.
type headers struct {
	*stream
	number uint64      // of the next header
	last   common.Hash // hash of the one before; zero: unknown
}

// newHeaders reads headers from the beginning of a chunk on.
func newHeaders(ctx context.Context, s *Source, chunk int) *headers {
	chunks := s.manifest.Chunks[Headers]
	return &headers{stream: newStream(ctx, s.from, Headers, chunks, chunk), number: *chunks[chunk].Block}
}

func (h *headers) next(ctx context.Context) (*types.Header, error) {
	header := new(types.Header)
	err := decode(ctx, h.stream, header)
	switch {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%w: %s: the header of block %d is missing", ErrDamaged, h.place(), h.number)
	case err != nil:
		return nil, err
	case !header.Number.IsUint64() || header.Number.Uint64() != h.number:
		return nil, fmt.Errorf("%w: %s: the header of block %d (want %d)", ErrDamaged, h.place(), header.Number, h.number)
	case h.last != (common.Hash{}) && header.ParentHash != h.last:
		return nil, fmt.Errorf("%w: %s: block %d has the parent %#x, the header before it is %#x", ErrFalse, h.place(), h.number, header.ParentHash, h.last)
	}
	h.number++
	h.last = header.Hash()
	return header, nil
}

// Later are the blocks of a snapshot after a settled one. It implements ingest.Stopper.
type Later struct {
	ctx     context.Context
	stop    context.CancelFunc
	headers *headers
	bodies  *stream
	next    uint64
	last    uint64
}

// Later returns the blocks after a block that Check has found among the headers. It must be
// closed.
func (s *Source) Later(ctx context.Context, after uint64) (*Later, error) {
	ctx, stop := context.WithCancel(ctx)
	l := &Later{ctx: ctx, stop: stop, next: after + 1, last: s.manifest.Head.Number}
	if l.next > l.last {
		return l, nil
	}
	bodies := s.manifest.Chunks[Bodies]
	first := chunkOf(bodies, l.next)
	l.headers = newHeaders(ctx, s, chunkOf(s.manifest.Chunks[Headers], l.next))
	l.bodies = newStream(ctx, s.from, Bodies, bodies, first)
	for l.headers.number < l.next {
		if _, err := l.headers.next(ctx); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	for number := *bodies[first].Block; number < l.next; number++ {
		if _, err := l.body(); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}

// chunkOf returns the index of the chunk with a block.
func chunkOf(chunks []Chunk, number uint64) int {
	after := sort.Search(len(chunks), func(i int) bool { return *chunks[i].Block > number })
	return max(0, after-1)
}

func (l *Later) body() (*types.Body, error) {
	body := new(types.Body)
	err := decode(l.ctx, l.bodies, body)
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %s: the body of block %d is missing", ErrDamaged, l.bodies.place(), l.next)
	}
	return body, err
}

// Next implements ingest.Source.
func (l *Later) Next() (*types.Block, error) {
	if l.next > l.last {
		return nil, io.EOF
	}
	header, err := l.headers.next(l.ctx)
	if err != nil {
		return nil, err
	}
	body, err := l.body()
	if err != nil {
		return nil, err
	}
	l.next++
	return types.NewBlockWithHeader(header).WithBody(*body), nil
}

// Stop implements ingest.Stopper.
func (l *Later) Stop() { l.stop() }

// Close releases what is open.
func (l *Later) Close() error {
	l.stop()
	if l.headers != nil {
		l.headers.close()
	}
	l.bodies.close()
	return nil
}
