package lightclient

import (
	"encoding/binary"
	"math/big"
	"math/bits"
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// The containers of a light client are few and small, so their SSZ hash tree roots are computed
// here: the leaves are padded with zeros to a power of two and hashed in pairs.

// merkleize returns the root of leaves, which are overwritten.
func merkleize(leaves [][32]byte) [32]byte {
	width := 1 << bits.Len(uint(max(len(leaves), 1)-1))
	given := len(leaves)
	leaves = slices.Grow(leaves, width-given)[:width]
	clear(leaves[given:])
	for ; width > 1; width /= 2 {
		for i := range width / 2 {
			leaves[i] = hashPair(leaves[2*i], leaves[2*i+1])
		}
	}
	return leaves[0]
}

// number is the leaf of a uint64.
func number(n uint64) (leaf [32]byte) {
	binary.LittleEndian.PutUint64(leaf[:], n)
	return leaf
}

// chunks are the leaves of bytes.
func chunks(data []byte) [][32]byte {
	leaves := make([][32]byte, (len(data)+31)/32)
	for i := range leaves {
		copy(leaves[i][:], data[32*i:])
	}
	return leaves
}

// Root returns the hash tree root of a header, which is its block's.
func (h *BeaconHeader) Root() common.Hash {
	return merkleize([][32]byte{number(h.Slot), number(h.ProposerIndex), h.ParentRoot, h.StateRoot, h.BodyRoot})
}

func (c *SyncCommittee) root() common.Hash {
	keys := make([][32]byte, len(c.PublicKeys))
	for i := range c.PublicKeys {
		keys[i] = merkleize(chunks(c.PublicKeys[i][:]))
	}
	return hashPair(merkleize(keys), merkleize(chunks(c.Aggregate[:])))
}

// root returns the hash tree root of the header of an execution block, as the fork with a rank
// has it.
func (h *ExecutionHeader) root(fork int) common.Hash {
	var recipient [32]byte
	copy(recipient[:], h.FeeRecipient[:])
	var extra [32]byte
	copy(extra[:], h.ExtraData)
	fee := (*big.Int)(h.BaseFee).FillBytes(make([]byte, 32))
	slices.Reverse(fee)
	leaves := [][32]byte{
		h.ParentHash, recipient, h.StateRoot, h.ReceiptsRoot, merkleize(chunks(h.LogsBloom[:])), h.PrevRandao,
		number(h.BlockNumber), number(h.GasLimit), number(h.GasUsed), number(h.Timestamp),
		hashPair(extra, number(uint64(len(h.ExtraData)))), [32]byte(fee), h.BlockHash, h.TransactionsRoot, h.WithdrawalsRoot,
	}
	if fork >= deneb {
		leaves = append(leaves, number(h.BlobGasUsed), number(h.ExcessBlobGas))
	}
	return merkleize(leaves)
}

// provesLeaf reports whether a branch leads from a leaf, at a generalized index, to a root. A
// branch may begin with zeros: one of an earlier fork is padded to the length of a later one's.
func provesLeaf(leaf [32]byte, branch []common.Hash, index uint64, root common.Hash) bool {
	depth := bits.Len64(index) - 1
	extra := len(branch) - depth
	if extra < 0 || slices.ContainsFunc(branch[:extra], func(h common.Hash) bool { return h != common.Hash{} }) {
		return false
	}
	for _, sibling := range branch[extra:] {
		if index%2 == 1 {
			leaf = hashPair(sibling, leaf)
		} else {
			leaf = hashPair(leaf, sibling)
		}
		index /= 2
	}
	return leaf == root
}

// isZero reports whether a branch is absent: JSON has zeros for it.
func isZero(branch []common.Hash) bool {
	return !slices.ContainsFunc(branch, func(h common.Hash) bool { return h != common.Hash{} })
}
