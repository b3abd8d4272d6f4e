package proven

import (
	"context"
	"fmt"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
)

// Node implements [evm.State]. Most nodes were fetched with the accounts and slots below them. Others
// are beside the path of every key that is named: when a removal leaves a branch with one child,
// that child merges with the branch.
//
//	branch      remove 3         leaf 7...
//	  3: leaf  ----------->
//	  7: hash                    is the child at 7 a leaf, an extension or a branch?
//
// No method of nodes takes a path, so the child is fetched with the proof of any key that has
// its path as a prefix.
func (s *State) Node(ctx context.Context, owner common.Hash, path []byte, hash common.Hash) ([]byte, error) {
	if blob, ok := s.known(hash); ok {
		return blob, nil
	}
	unnamed := fmt.Errorf("trie node %x at path %x of %x: %w", hash, path, owner, evm.ErrUnnamed)
	if len(path) > prefixNibbles {
		return nil, unnamed
	}
	header, err := s.at(ctx)
	if err != nil {
		return nil, err
	}
	want, err := s.below(ctx, owner, path)
	if err != nil {
		return nil, err
	}
	if err := s.fetch(ctx, header, []Want{want}); err != nil {
		return nil, err
	}
	if blob, ok := s.known(hash); ok {
		return blob, nil
	}
	return nil, unnamed // the caller's path does not lead to it
}

// below returns an account or a slot whose key has a path as its prefix.
func (s *State) below(ctx context.Context, owner common.Hash, path []byte) (want Want, err error) {
	if owner == (common.Hash{}) {
		address, err := s.remote.addresses.find(ctx, path)
		return Want{Address: common.BytesToAddress(address)}, err
	}
	if want.Address, err = s.remote.address(owner); err != nil {
		return want, err
	}
	slot, err := s.remote.slots.find(ctx, path)
	want.Slots = []common.Hash{common.BytesToHash(slot)}
	return want, err
}
