package proven

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
)

// An account whose code hash is none is refused: a state that somebody has made up can have one.
func TestCodeHashLength(t *testing.T) {
	for _, length := range []int{0, common.HashLength - 1, common.HashLength, common.HashLength + 1} {
		made := types.NewEmptyStateAccount()
		made.CodeHash = make([]byte, length)
		value, err := rlp.EncodeToBytes(made)
		if err != nil {
			t.Fatal(err)
		}
		key := common.Hash{1}
		leaf, err := rlp.EncodeToBytes([][]byte{append([]byte{0x20}, key[:]...), value})
		if err != nil {
			t.Fatal(err)
		}
		_, err = account(func(common.Hash) ([]byte, bool) { return leaf, true }, crypto.Keccak256Hash(leaf), key)
		if (err == nil) != (length == common.HashLength) {
			t.Errorf("a code hash of %d bytes: %v", length, err)
		}
	}
}
