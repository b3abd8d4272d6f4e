package proven

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"ashlar/chain"
	"ashlar/evm/archive"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/common/lru"
	"github.com/ethereum/go-ethereum/core/types"
)

const (
	rungBlocks    = 128     // blocks between two hashes that are kept
	cachedHashes  = 1 << 16 // hashes in between that are kept for a while
	cachedHeaders = 4096
)

// spine proves which blocks are the ancestors of a block, by following the parents' hashes
// down. It keeps the hash of every 128th block, so the ancestors of a block in the middle
// are proven again from the next one above:
//
//	anchor ... 384 ... 256 ... 128 ... 0
//	  |         |       |
//	 known    known   known     not followed yet
//
// A long chain takes 5 MiB per 20 million blocks. It is safe for concurrent use.
type spine struct {
	remote  *Remote
	genesis chain.Ref

	extending sync.Mutex  // held while the spine is followed down
	climbed   []chain.Ref // guarded by extending: what climb has linked above the anchor, highest first

	mu     sync.Mutex // guards the fields below
	anchor chain.Ref  // the highest block
	lowest chain.Ref  // the lowest block whose hash is proven
	rungs  map[uint64]common.Hash
	hashes *lru.BasicLRU[uint64, common.Hash]
	// recent are headers by number. A header there has the hash in hashes.
	recent *lru.BasicLRU[uint64, *types.Header]
}

func newSpine(remote *Remote, genesis chain.Ref) *spine {
	hashes := lru.NewBasicLRU[uint64, common.Hash](cachedHashes)
	recent := lru.NewBasicLRU[uint64, *types.Header](cachedHeaders)
	return &spine{remote: remote, genesis: genesis, anchor: genesis, rungs: make(map[uint64]common.Hash), hashes: &hashes, recent: &recent}
}

// raise moves the anchor up to a block. path has the blocks between the old anchor and the
// new one, if it is known that one descends from the other; otherwise the spine begins anew.
func (s *spine) raise(to chain.Ref, path []chain.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if path == nil {
		s.rungs, s.lowest = make(map[uint64]common.Hash), to
		s.hashes.Purge()
		s.recent.Purge()
	}
	s.anchor = to
	for _, ref := range path {
		s.put(ref)
	}
	s.put(to)
}

// put records a proven hash. mu is held.
func (s *spine) put(ref chain.Ref) {
	if ref.Number%rungBlocks == 0 {
		s.rungs[ref.Number] = ref.Hash
	}
	s.hashes.Add(ref.Number, ref.Hash)
}

// hash returns the hash of the anchor's ancestor with a number, or archive.ErrNotFound if
// the number lies above the anchor.
func (s *spine) hash(ctx context.Context, number uint64) (common.Hash, error) {
	for {
		hash, from, ok, err := s.find(number)
		if ok || err != nil {
			return hash, err
		}
		if from.Number > number+rungBlocks {
			if err := s.extend(ctx, number); err != nil {
				return common.Hash{}, err
			}
			continue
		}
		headers, err := s.headers(ctx, number+1, from)
		if err != nil {
			return common.Hash{}, err
		}
		return headers[0].ParentHash, nil
	}
}

// find returns a hash that is known, or the lowest known block above the number.
func (s *spine) find(number uint64) (hash common.Hash, from chain.Ref, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case number == 0:
		return s.genesis.Hash, from, true, nil
	case number > s.anchor.Number:
		return hash, from, false, fmt.Errorf("%w: block %d", archive.ErrNotFound, number)
	case number == s.anchor.Number:
		return s.anchor.Hash, from, true, nil
	}
	if hash, ok := s.hashes.Get(number); ok {
		return hash, from, true, nil
	}
	from = s.lowest
	if number >= s.lowest.Number {
		from = s.anchor
		if rung := number - number%rungBlocks + rungBlocks; rung < s.anchor.Number {
			from = chain.Ref{Number: rung, Hash: s.rungs[rung]}
		}
	}
	return hash, from, false, nil
}

// headers returns the headers of the ancestors of a block from a number on, and the block's
// own. At most rungBlocks are fetched at once.
func (s *spine) headers(ctx context.Context, first uint64, last chain.Ref) ([]*types.Header, error) {
	return s.fetch(ctx, max(first, last.Number-min(last.Number, rungBlocks)), last)
}

// fetch fetches the headers of ancestors of a block and its own.
func (s *spine) fetch(ctx context.Context, first uint64, last chain.Ref) ([]*types.Header, error) {
	headers, err := s.remote.linkedHeaders(ctx, first, last, lie)
	if err != nil {
		return nil, fmt.Errorf("link block %d to block %d: %w", first, last.Number, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, header := range headers {
		s.recent.Add(header.Number.Uint64(), header)
		if header.Number.Sign() > 0 {
			s.put(chain.Ref{Number: header.Number.Uint64() - 1, Hash: header.ParentHash})
		}
	}
	return headers, nil
}

// linkedHeaders fetches headers of which the last must have a hash, and each other one the
// hash that its child names. other makes the error for a header with another hash.
func (r *Remote) linkedHeaders(ctx context.Context, first uint64, last chain.Ref, other func(what, format string, args ...any) error) ([]*types.Header, error) {
	calls := make([]upstream.Call, last.Number+1-first)
	for i := range calls {
		q := newQuestion(upstream.Blocks, first+uint64(i), "eth_getBlockByNumber", hexutil.Uint64(first+uint64(i)), false)
		if q.failed != nil {
			return nil, q.failed
		}
		calls[i] = q.Call
	}
	for i := range calls {
		calls[i].Check = func(answer json.RawMessage) error {
			_, err := r.parseHeader(answer, first+uint64(i))
			return fault(err)
		}
	}
	headers := make([]*types.Header, len(calls))
	answers := r.nodes.AskAll(ctx, calls)
	want := last.Hash
	for i := len(calls) - 1; i >= 0; i-- {
		if answers[i].Err != nil {
			return nil, answers[i].Err
		}
		header, err := r.parseHeader(answers[i].Result, first+uint64(i))
		if err != nil {
			return nil, err
		}
		if header.Hash() != want {
			if header, err = r.namedHeader(ctx, calls[i], first+uint64(i), want, other); err != nil {
				return nil, err
			}
		}
		headers[i], want = header, header.ParentHash
	}
	return headers, nil
}

// namedHeader asks for a header again that did not have the right hash.
func (r *Remote) namedHeader(ctx context.Context, c upstream.Call, number uint64, want common.Hash, other func(what, format string, args ...any) error) (*types.Header, error) {
	return ask(ctx, r, question{Call: c}, func(answer json.RawMessage) (*types.Header, error) {
		header, err := r.parseHeader(answer, number)
		if err != nil {
			return nil, err
		}
		if got := header.Hash(); got != want {
			return nil, other(fmt.Sprintf("header %d", header.Number), "its hash is %#x, expected %#x", got, want)
		}
		return header, nil
	})
}

// header returns the header of the anchor's ancestor with a number.
func (s *spine) header(ctx context.Context, number uint64) (*types.Header, error) {
	s.mu.Lock()
	header, ok := s.recent.Get(number)
	s.mu.Unlock()
	if ok {
		return header, nil
	}
	// Those who read one header mostly read the following ones, so it is fetched with them.
	above := number - number%rungBlocks + rungBlocks
	s.mu.Lock()
	above = min(above, s.anchor.Number)
	s.mu.Unlock()
	hash, err := s.hash(ctx, max(above, number))
	if err != nil {
		return nil, err
	}
	headers, err := s.headers(ctx, number, chain.Ref{Number: max(above, number), Hash: hash})
	if err != nil {
		return nil, err
	}
	return headers[0], nil
}

// extend follows the spine down, to a number or a little below.
func (s *spine) extend(ctx context.Context, number uint64) error {
	s.extending.Lock()
	defer s.extending.Unlock()
	for {
		s.mu.Lock()
		lowest := s.lowest
		s.mu.Unlock()
		if lowest.Number <= number || lowest.Number == 0 {
			return nil
		}
		first := lowest.Number - min(lowest.Number-1, rungBlocks-1)
		headers, err := s.fetch(ctx, first, lowest)
		if err != nil {
			return err
		}
		below := chain.Ref{Number: first - 1, Hash: headers[0].ParentHash}
		if below.Number == 0 && below != s.genesis {
			return fmt.Errorf("%w: its first block is %#x, expected %#x", ErrOtherChain, below.Hash, s.genesis.Hash)
		}
		s.mu.Lock()
		if s.lowest == lowest {
			s.lowest = below
		}
		s.mu.Unlock()
	}
}
