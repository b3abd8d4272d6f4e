// Package chain holds the nouns that both families of chain share. The families
// themselves are in evm and starknet.
package chain

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
)

// Ref names one block of a chain.
type Ref struct {
	Number uint64
	Hash   common.Hash
}

// String is "number (hash)" with the hash shortened, as log lines show it.
func (r Ref) String() string {
	return fmt.Sprintf("%d (%x…)", r.Number, r.Hash[:4])
}
