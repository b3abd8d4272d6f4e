package pool

import (
	"context"
	"errors"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
)

// ErrNoHead means that Reset was not called in time.
var ErrNoHead = errors.New("the network has no head yet: try again later")

// firstHeadTime is how long Add and Nonce wait for the first Reset, which follows the start of
// a service at once if there is a head.
const firstHeadTime = 5 * time.Second

// Head returns the header of the last head that the pool has adapted to, nil before the first.
func (p *Pool) Head() *types.Header {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.adapted
}

// AwaitHead waits until reached is true of the pool's head. A client that has seen its transaction in the newest block
// sends the next one at once: judged by the block before, it might be refused. The pool can be used at an older
// head, so AwaitHead gives up without an error when calls have waited for [Limits].Behind. Further calls do not wait
// until the pool has caught up: Reset may fail for long.
func (p *Pool) AwaitHead(ctx context.Context, reached func(*types.Header) bool) error {
	has, err := p.await(ctx, p.Patience(), func(_, adapted *types.Header) bool { return adapted != nil && reached(adapted) })
	if has {
		p.mutex.Lock()
		p.behind = time.Time{}
		p.mutex.Unlock()
	}
	return err
}

// Patience returns for how long AwaitHead waits now at most, and begins to count that time. It is 0 or negative if calls
// have waited for the pool for long enough.
func (p *Pool) Patience() time.Duration {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.behind.IsZero() {
		p.behind = time.Now()
	}
	return p.limits.Behind - time.Since(p.behind)
}

// awaitFirst waits until the pool has a head. It returns ErrNoHead if there is none in time.
func (p *Pool) awaitFirst(ctx context.Context) error {
	has, err := p.await(ctx, firstHeadTime, func(head, _ *types.Header) bool { return head != nil })
	if err == nil && !has {
		err = ErrNoHead
	}
	return err
}

// await waits until is is true of the pool's head, and of the last one that it has adapted to; each may be nil. It
// reports whether it was in time.
func (p *Pool) await(ctx context.Context, limit time.Duration, is func(head, adapted *types.Header) bool) (bool, error) {
	late := time.NewTimer(limit)
	defer late.Stop()
	for {
		p.mutex.Lock()
		head, adapted, moved := p.head.Header, p.adapted, p.moved
		p.mutex.Unlock()
		if is(head, adapted) {
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

// wake ends the waits of await, which look again. The mutex is held.
func (p *Pool) wake() {
	close(p.moved)
	p.moved = make(chan struct{})
}
