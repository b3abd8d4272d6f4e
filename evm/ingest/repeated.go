package ingest

import (
	"context"
	"time"

	"ashlar/retry"
)

// repeatedWait is the time between two looks at whether a repeated block is settled.
const repeatedWait = 10 * time.Millisecond

// awaitSettled waits until a block that the source has given before is settled, so that it can be
// compared. Blocks on their way are settled [groupWait] after the first of them at the latest, and
// if one fails, ctx ends.
func (i *Importer) awaitSettled(ctx context.Context, number uint64) error {
	for i.counts.head.Load() < number {
		if err := retry.Sleep(ctx, repeatedWait); err != nil {
			return err
		}
	}
	return nil
}
