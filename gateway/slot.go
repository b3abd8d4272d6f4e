package gateway

import (
	"cmp"
	"context"

	"ashlar/limit"
)

// hold makes a slot that was entered that of the exchange, in place of the one before.
func (e *exchange) hold(pool *limit.Pool, share *limit.Share) {
	e.leave()
	e.pool, e.share = pool, share
}

// leave releases the slot of the last call. The answer is made and compressed before, because
// that keeps a processor busy too, and is sent after, because that may take as long as the client
// likes.
func (e *exchange) leave() {
	if e.pool != nil {
		e.pool.Leave(e.share)
		e.pool = nil
	}
}

// Yield implements [limit.Yielder]. A call with a slot of heavy calls waits in one of light calls, if enough are
// free, and keeps it until it has a heavy one again:
//
//	heavy |--- decode ---|                        |--- execute ---|
//	light                |--- wait --- in line ---|
//
// So no more calls wait, with what they have got from nodes in memory, than there are slots. No call can wait
// for another in a circle: one with a heavy slot waits for no light one.
func (e *exchange) Yield(ctx context.Context, wait func() error) error {
	heavy, light := e.settings.heavy, e.settings.light
	if e.pool != heavy || !light.TryEnter(&e.caller.light) {
		return wait()
	}
	e.hold(light, &e.caller.light)
	failed := wait()
	if err := heavy.Resume(ctx, &e.caller.heavy); err != nil {
		return cmp.Or(failed, err)
	}
	e.hold(heavy, &e.caller.heavy)
	return failed
}
