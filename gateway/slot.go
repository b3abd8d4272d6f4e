package gateway

import (
	"cmp"
	"context"

	"ashlar/jsonrpc"
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
//
// A method whose calls wait for nodes anyway has a heavy slot for long parameters alone. Such a call queues for a light slot like those
// with short ones.
func (e *exchange) Yield(ctx context.Context, wait func() error) error {
	heavy, light := e.settings.heavy, e.settings.light
	switch {
	case e.pool != heavy:
		return wait()
	case e.weight == jsonrpc.WaitingWeight || e.weight == jsonrpc.RecomputingWeight:
		e.leave()
		if err := light.Enter(ctx, &e.caller.waiting); err != nil {
			return err
		}
		e.hold(light, &e.caller.waiting)
	case light.TryEnter(&e.caller.light):
		e.hold(light, &e.caller.light)
	default:
		return wait()
	}
	failed := wait()
	if err := heavy.Resume(ctx, &e.caller.heavy); err != nil {
		return cmp.Or(failed, err)
	}
	e.hold(heavy, &e.caller.heavy)
	return failed
}

// Work implements [limit.Worker]. A call that waits for nodes in a slot of light calls works in one of heavy calls, if
// that is what its method is for:
//
//	heavy             |--- recompute ---|            |--- recompute ---|
//	light |--- wait --------------------- wait ------------------------|
//
// It waits for a heavy slot before the new calls of its account, because it has in memory what nodes have sent. As in
// Yield, no call can wait for another in a circle.
func (e *exchange) Work(ctx context.Context, work func() error) error {
	heavy := e.settings.heavy
	if e.weight != jsonrpc.RecomputingWeight || e.pool == heavy {
		return work()
	}
	if err := heavy.Resume(ctx, &e.caller.heavy); err != nil {
		return err
	}
	defer heavy.Leave(&e.caller.heavy)
	return work()
}
