package proven

import (
	"context"
	"fmt"
	"slices"

	"ashlar/chain"

	"github.com/ethereum/go-ethereum/common"
)

// hash returns the hash of a settled block.
func (r *Remote) hash(ctx context.Context, number uint64) (common.Hash, error) {
	if r.archive != nil && r.archive.Stores(number) {
		header, err := r.archive.Header(ctx, number)
		if err != nil {
			return common.Hash{}, err
		}
		return header.Hash, nil
	}
	spine, err := r.spineOf(ctx, number)
	if err != nil {
		return common.Hash{}, err
	}
	return spine.hash(ctx, number)
}

// spineOf returns the spine that has a block which the archive does not store.
func (r *Remote) spineOf(ctx context.Context, number uint64) (*spine, error) {
	if r.archive == nil {
		return r.spine, nil
	}
	first := r.archive.Extent().Blocks
	if number == 0 || number >= first {
		return r.spine, nil
	}
	if number <= r.below.top().Number {
		return r.below, nil
	}
	header, err := r.archive.Header(ctx, first)
	if err != nil {
		return nil, fmt.Errorf("first block %d of the archive: %w", first, err)
	}
	return r.below, r.below.climb(ctx, chain.Ref{Number: first, Hash: header.Hash})
}

// top returns the anchor.
func (s *spine) top() chain.Ref {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.anchor
}

// climb moves the anchor up to a later block of which nothing else is known. If that does not
// descend from the old anchor, the spine begins anew. If it fails, the next call continues:
// what a question has time for may be less than the blocks in between.
func (s *spine) climb(ctx context.Context, to chain.Ref) error {
	s.extending.Lock()
	defer s.extending.Unlock()
	for {
		anchor := s.top()
		if to.Number <= anchor.Number {
			return nil
		}
		if anchor == s.genesis {
			s.raise(to, nil)
			return nil
		}
		if len(s.climbed) == 0 {
			s.climbed = []chain.Ref{to}
		}
		if err := s.descendTo(ctx, anchor); err != nil {
			return err
		}
		path := s.climbed
		s.climbed = nil
		slices.Reverse(path)
		top := path[len(path)-1]
		if path[0] != anchor {
			path = nil
		}
		s.raise(top, path)
	}
}

// descendTo follows what was climbed down to the number of the anchor. extending is held.
func (s *spine) descendTo(ctx context.Context, anchor chain.Ref) error {
	for {
		last := s.climbed[len(s.climbed)-1]
		if last.Number <= anchor.Number {
			return nil
		}
		first := last.Number - min(last.Number-(anchor.Number+1), rungBlocks-1)
		headers, err := s.remote.linkedHeaders(ctx, first, last, lie)
		if err != nil {
			return fmt.Errorf("link block %d to block %d: %w", anchor.Number, last.Number, err)
		}
		for _, header := range slices.Backward(headers) {
			s.climbed = append(s.climbed, chain.Ref{Number: header.Number.Uint64() - 1, Hash: header.ParentHash})
		}
	}
}
