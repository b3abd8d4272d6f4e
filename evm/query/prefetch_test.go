package query

import (
	"context"
	"errors"
	"testing"

	"ashlar/limit"
)

// yields is a [limit.Yielder] that counts.
type yields int

// Yield implements [limit.Yielder].
func (y *yields) Yield(ctx context.Context, wait func() error) error {
	*y++
	return errors.Join(wait(), ctx.Err())
}

// After an invalid witness, a request yields its slot again to fetch what a block reads. A request that has ended
// fails.
func TestInvalidWitnessIsFetchedAgainWithoutSlot(t *testing.T) {
	for _, invalid := range []bool{false, true} {
		slot, want := new(yields), 0
		if invalid {
			want = 1
		}
		ctx := context.WithValue(t.Context(), limit.YielderKey{}, slot)
		if err := takePrefetched(ctx, func() bool { return !invalid }, nil, nil); err != nil || int(*slot) != want {
			t.Errorf("a witness is invalid: %t: yielded %d times, %v", invalid, *slot, err)
		}
	}
	ended, end := context.WithCancel(context.WithValue(t.Context(), limit.YielderKey{}, new(yields)))
	end()
	if err := takePrefetched(ended, func() bool { return false }, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("after the request has ended: %v", err)
	}
}
