package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"ashlar/account/usage"
	"ashlar/jsonrpc"
)

// maxStepTries is how often a step is tried while the server is too busy for it.
const maxStepTries = 10

// errNoPlace means that a step found no slot, or no memory for its message.
var errNoPlace = errors.New("the server is busy")

// steps makes the messages of a stream one after the other. See [jsonrpc.Notifier].
type steps struct {
	socket  *socket
	series  usage.Series // of the call that started the stream
	credits int          // price of each message
	step    jsonrpc.Step
}

// StartSteps implements jsonrpc.Notifier.
func (n *notifier) StartSteps(step jsonrpc.Step) (string, error) {
	s := &steps{socket: n.socket, series: n.exchange.series, credits: n.exchange.credits, step: step}
	return n.Start(func(ctx context.Context, id string, _ jsonrpc.Send) error { return s.run(ctx, id) })
}

// run makes and sends messages until ctx is done.
func (s *steps) run(ctx context.Context, id string) error {
	for tries := 1; ctx.Err() == nil; tries++ {
		err := s.next(ctx, id)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			tries = 0
		case errors.Is(err, errNoPlace) && tries < maxStepTries:
			if !pause(ctx, busyTime) {
				return nil
			}
		case errors.Is(err, errNoPlace):
			s.socket.end(closeBusy, reasonMemory)
			return nil
		case errors.Is(err, io.EOF):
			<-ctx.Done()
			return nil
		case errors.Is(err, errClosed):
			return nil
		default:
			s.socket.handler.log.Error("a stream's message cannot be made", "error", err)
			return jsonrpc.ErrLost
		}
	}
	return nil
}

// next makes a message and waits until it is written. The connection's other streams wait
// with their steps, so that their messages do not fill its queue together.
func (s *steps) next(ctx context.Context, id string) error {
	select {
	case s.socket.stepping <- struct{}{}:
		defer func() { <-s.socket.stepping }()
	case <-ctx.Done():
		return ctx.Err()
	}
	e := s.socket.admit(s.socket.handler.current.Load())
	if e == nil {
		return errClosed
	}
	e.series, e.credits = s.series, s.credits
	if err := s.pay(ctx, e); err != nil {
		return err
	}
	e.begin(ctx)
	buffers := &s.socket.handler.buffers
	out := e.claim(buffers, buffers.Get())
	done := func() {
		buffers.Put(out)
		e.lease.Release()
	}
	var err error
	*out, err = e.network.gate.run(e, e, jsonrpc.HeavyWeight, *out, func() ([]byte, error) { return s.make(e, id, *out) })
	e.leave()
	late := e.Err() != nil && ctx.Err() == nil
	e.stop()
	switch {
	case err == nil && len(*out) > 0:
		return s.write(ctx, outgoing{parts: [][]byte{*out}}, done)
	case err != nil && (e.refusal != nil || late):
		err = errNoPlace
	}
	done()
	return err
}

// make runs the step. A panic is an error, as in a call.
func (s *steps) make(ctx context.Context, id string, out []byte) (message []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			message, err = out, fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return s.step(ctx, id, out)
}

// pay charges for a message. It waits while a rate is exceeded, and ends the connection
// when a quota is used up.
func (s *steps) pay(ctx context.Context, e *exchange) error {
	for {
		refused := e.charge(s.credits)
		switch {
		case refused == nil:
			return nil
		case refused.reason != RefusedRate:
			s.socket.handler.refusals.count(refused.reason)
			e.countRefused(refused)
			s.socket.end(closeBusy, refused.err.Message)
			return errClosed
		}
		if !pause(ctx, refused.wait) {
			return ctx.Err()
		}
	}
}

// write queues a message and waits until it was written or dropped. done is called then.
func (s *steps) write(ctx context.Context, m outgoing, done func()) error {
	written := make(chan struct{})
	m.done = func() {
		done()
		close(written)
	}
	first, err := s.socket.out.put(m)
	if err != nil {
		done()
		s.socket.refused(err)
		return err
	}
	if first {
		s.socket.out.drain()
	}
	<-written // a connection that ends drops its messages
	return ctx.Err()
}

// pause waits, and returns false if ctx is done first.
func pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
