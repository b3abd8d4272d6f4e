package pool

import (
	"context"
	"errors"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
)

// errNoHead means that Reset was not called in time.
var errNoHead = errors.New("the network has no head yet")

// firstHeadTime is how long Add and Nonce wait for the first Reset, which follows the start of
// a service at once if there is a head.
const firstHeadTime = 5 * time.Second

// nextHeadTime is how long AwaitHead waits. A Reset takes milliseconds; one that fails is tried again and again.
const nextHeadTime = time.Second

// AwaitHead waits until reached is true of the pool's head. A client that has seen its transaction in the newest block
// sends the next one at once: judged by the block before, it might be refused. AwaitHead gives up after nextHeadTime,
// without an error, as the pool can be used at an older head.
func (p *Pool) AwaitHead(ctx context.Context, reached func(*types.Header) bool) error {
	_, err := p.await(ctx, nextHeadTime, func(head Head) bool { return head.Header != nil && reached(head.Header) })
	return err
}

// awaitFirst waits until the pool has a head. It returns errNoHead if there is none in time.
func (p *Pool) awaitFirst(ctx context.Context) error {
	has, err := p.await(ctx, firstHeadTime, func(head Head) bool { return head.Header != nil })
	if err == nil && !has {
		err = errNoHead
	}
	return err
}

// await waits until is is true of the pool's head, and reports whether it was in time.
func (p *Pool) await(ctx context.Context, limit time.Duration, is func(Head) bool) (bool, error) {
	late := time.NewTimer(limit)
	defer late.Stop()
	for {
		p.mutex.Lock()
		head, moved := p.head, p.moved
		p.mutex.Unlock()
		if is(head) {
			return true, nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return false, ctx.Err()
		case <-late.C:
			return false, nil
		}
	}
}
