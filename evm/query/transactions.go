package query

import (
	"context"

	"ashlar/evm/archive"

	"github.com/ethereum/go-ethereum/common"
)

// FindTransaction calls found with every place in the view where a transaction
// with this hash may be, until found says that it was there. There is rarely
// more than one.
func (v *View) FindTransaction(ctx context.Context, hash common.Hash, found func(archive.Place) (bool, error)) error {
	return v.history.FindTransaction(ctx, hash, func(place archive.Place) (bool, error) {
		if place.Number > v.head.Number {
			return false, nil
		}
		return found(place)
	})
}
