package ingest

import "context"

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
