// Package chain defines the data types that all families of networks share: the reference to a
// block, the block parameter of a call, and what a quorum of nodes agrees on. It knows no
// family.
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
