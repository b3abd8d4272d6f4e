package query

import (
	"context"

	"ashlar/evm/archive"
	"ashlar/limit"

	"github.com/ethereum/go-ethereum/common"
)

// FindTransaction calls found with each place in the view where the transaction with a hash
// may be, until found returns true. There is rarely more than one candidate.
func (v *View) FindTransaction(ctx context.Context, hash common.Hash, found func(archive.Place) (bool, error)) error {
	if v.chain.remote == nil {
		return v.history.FindTransaction(ctx, hash, v.below(found))
	}
	known := false
	err := limit.Yield(ctx, func() error {
		return v.history.FindTransaction(ctx, hash, v.below(func(place archive.Place) (_ bool, err error) {
			known, err = found(place)
			return known, err
		}))
	})
	if !known {
		v.weakenAbsent(ctx)
	}
	return err
}

// FindStoredTransaction is FindTransaction for a transaction that is in one of the last blocks or
// stored, if it is included at all: no node is asked.
func (v *View) FindStoredTransaction(ctx context.Context, hash common.Hash, found func(archive.Place) (bool, error)) error {
	return v.history.FindStoredTransaction(ctx, hash, v.below(found))
}

// below returns found for places that are not above the head.
func (v *View) below(found func(archive.Place) (bool, error)) func(archive.Place) (bool, error) {
	return func(place archive.Place) (bool, error) {
		if place.Number > v.head.Number {
			return false, nil
		}
		return found(place)
	}
}
