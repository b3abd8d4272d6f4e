package snapshot

import (
	"cmp"
	"context"
	"io"
	"sync"

	"ashlar/evm/snapshot/origin"
)

// ahead is how many chunks of a stream are read at once, and held in memory.
const ahead = 4

// stream reads the chunks of a kind in their order, some of them in advance. It belongs to
// one goroutine, and must be closed.
type stream struct {
	kind   Kind
	chunks []Chunk
	next   int // index of the next chunk
	ready  chan chan result
	ctx    context.Context
	stop   context.CancelFunc
	ended  sync.WaitGroup
	now    cursor
}

type result struct {
	raw []byte
	err error
}

// newStream reads chunks from an index on.
func newStream(ctx context.Context, from *origin.Origin, kind Kind, chunks []Chunk, index int) *stream {
	ctx, stop := context.WithCancel(ctx)
	s := &stream{kind: kind, chunks: chunks, next: index, ready: make(chan chan result, ahead-1), ctx: ctx, stop: stop}
	s.ended.Go(func() {
		defer close(s.ready)
		for i := index; i < len(chunks); i++ {
			one := make(chan result, 1)
			select {
			case s.ready <- one:
			case <-ctx.Done():
				return
			}
			s.ended.Go(func() {
				raw, err := readChunk(ctx, from, kind, i, &chunks[i])
				one <- result{raw, err}
			})
		}
	})
	return s
}

// record returns the cursor at the next record, or io.EOF after the last.
func (s *stream) record(ctx context.Context) (*cursor, error) {
	for !s.now.more() {
		if s.next == len(s.chunks) {
			return nil, io.EOF
		}
		var one chan result
		var ok bool
		select {
		case one, ok = <-s.ready:
		case <-ctx.Done():
		}
		if !ok {
			return nil, cmp.Or(context.Cause(ctx), context.Cause(s.ctx), io.ErrUnexpectedEOF)
		}
		select {
		case read := <-one:
			if read.err != nil {
				return nil, read.err
			}
			s.now = cursor{name: s.chunks[s.next].name(s.kind, s.next), raw: read.raw}
			s.next++
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return &s.now, nil
}

// place names the chunk that is being read.
func (s *stream) place() string {
	if s.now.name == "" {
		return string(s.kind)
	}
	return s.now.name
}

// close ends all reading. It may be called on nil.
func (s *stream) close() {
	if s != nil {
		s.stop()
		s.ended.Wait()
	}
}
