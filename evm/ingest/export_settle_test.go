package ingest

import "context"

// SettledAtOnce is the number of blocks that are settled in one write.
const SettledAtOnce = settledAtOnce

// SettleDue settles what is due, once: it does not try again.
func (f *Follower) SettleDue(ctx context.Context) error {
	for more := true; more; {
		var err error
		if more, err = f.settle(ctx); err != nil {
			return err
		}
	}
	return nil
}
