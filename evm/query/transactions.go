package query

import (
	"context"

	"ashlar/evm/archive"

	"github.com/ethereum/go-ethereum/common"
)

// FindTransaction calls found with each place in the view where the transaction with a hash
// may be, until found returns true. There is rarely more than one candidate.
func (v *View) FindTransaction(ctx context.Context, hash common.Hash, found func(archive.Place) (bool, error)) error {
	return v.history.FindTransaction(ctx, hash, func(place archive.Place) (bool, error) {
		if place.Number > v.head.Number {
			return false, nil
		}
		return found(place)
	})
}
