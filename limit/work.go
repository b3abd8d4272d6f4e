package limit

import "context"

// WorkerKey is the context key of the [Worker] of a request.
type WorkerKey struct{}

// Worker is a request whose call waits for other servers, and keeps a processor busy now and then.
type Worker interface {
	// Work is the function [Work] for the call.
	Work(ctx context.Context, work func() error) error
}

// Work runs work, with which the call that ctx is for keeps a processor busy, such as to check what nodes have sent. A call that
// has only a slot to wait in waits for one in which it may do that. The error is work's, or says why there is no slot.
//
// Only the goroutine that answers the call may call it, and only while it holds nothing that others with a slot may wait for, such
// as a lock.
func Work(ctx context.Context, work func() error) error {
	if w, ok := ctx.Value(WorkerKey{}).(Worker); ok {
		return w.Work(ctx, work)
	}
	return work()
}
