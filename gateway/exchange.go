package gateway

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"ashlar/account"
	"ashlar/account/usage"
	"ashlar/jsonrpc"
	"ashlar/limit"
)

// exchange is the state of one request, a single call or a batch. It is the context of its
// methods. All fields except name belong to the goroutine that answers.
type exchange struct {
	deadlineContext
	payer
	network *served
	key     *account.Key

	lease   limit.Lease // memory of the request and its answer; released by the creator of the exchange
	asked   int         // bytes of the request read so far
	sent    int         // bytes in which it was sent, if that is far from the same; else 0
	claimed int         // bytes of the reused buffers for the request and its answer
	zipped  int         // bytes of its compressed body while it is decompressed; else 0
	crowded bool        // an answer did not fit into memory; all further calls are refused

	pool  *limit.Pool // in which the last call has a slot; nil: none
	share *limit.Share

	method   string         // name of the last call's method
	weight   jsonrpc.Weight // of that method, whatever slot the call has
	series   usage.Series   // usage series of the last call
	credits  int            // price of the last call
	charged  time.Time      // when it was charged, as the daily quotas count days
	called   bool           // a call named an existing method
	observed bool           // a call was counted, maybe of an unknown method
	answered bool           // a call was admitted, and its result fit into memory
	stated   bool           // verified was recorded
	refusal  *refusal       // of the last call that was refused or whose result did not fit into memory

	verified jsonrpc.Verification // the weakest of the calls that ran

	notifier *notifier // of a message of a WebSocket; else nil

	refusedCall usage.Cause // of the current call; 0 if it was not refused
	origin      string      // of the web page that sent the request, or empty

	traceParent string   // header of the request, if there is a watcher
	watched     *Watched // nil if there is no watcher

	name atomic.Pointer[string] // the request's ID, created when first used
}

type exchangeKey struct{}

func newExchange(parent context.Context, s *settings, network *served, key *account.Key, client netip.Addr, origin string) *exchange {
	e := &exchange{payer: s.payer(key, client), network: network, key: key, origin: origin}
	e.lease = e.Lend()
	e.begin(parent)
	return e
}

// begin starts the request's time limit. If parent is not nil, it replaces the parent
// context.
func (e *exchange) begin(parent context.Context) {
	e.deadlineContext.begin(parent, e.settings.requestTime)
}

// Value implements context.Context.
func (e *exchange) Value(key any) any {
	switch key.(type) {
	case exchangeKey, jsonrpc.HolderKey, jsonrpc.VerifierKey, limit.LenderKey, limit.YielderKey, limit.WorkerKey:
		return e
	case jsonrpc.CallerKey:
		return e.caller.name
	case jsonrpc.ServerKey:
		return e.network.server
	}
	return e.deadlineContext.Value(key)
}

// exchangeOf returns the exchange of a method's context, or nil.
func exchangeOf(ctx context.Context) *exchange {
	if e, ok := ctx.(*exchange); ok {
		return e
	}
	e, _ := ctx.Value(exchangeKey{}).(*exchange)
	return e
}

// respond answers a request and appends the answer to out. A request that calls no method
// costs as much as the cheapest method.
func (e *exchange) respond(request, out []byte) (answer []byte) {
	defer e.payBody()
	if !e.network.users.Enter() {
		return jsonrpc.AppendError(out, requestIDOf(request), e.refuse(unserved()))
	}
	defer e.network.users.Leave()
	mark := len(out)
	if e.settings.watcher != nil {
		ended := e.watch(request)
		defer func() { ended(answer[mark:]) }()
	}
	out = e.network.server.Answer(e, request, out)
	if e.called {
		return out
	}
	if r := e.spendLeast(e.network.unknown); r != nil {
		if !e.observed {
			e.countRefused(r)
		}
		return jsonrpc.AppendError(out[:mark], requestIDOf(request), e.refuse(r))
	}
	if !e.observed {
		e.countUnread(out[mark:])
	}
	return out
}

// spendLeast charges as much as for the cheapest method for what runs none: a request or a call that
// names none that exists, or a call that rules forbid. It returns a refusal if a limit is exceeded.
func (e *exchange) spendLeast(series usage.Series) *refusal {
	if r := e.spend(1); r != nil {
		return r
	}
	e.caller.usage.Spent(series, 1)
	return nil
}

// spendUnread charges for a request whose body is refused: as much as the cheapest method, and for the
// bytes that were read. It returns a refusal if a limit is exceeded.
func (e *exchange) spendUnread() *refusal {
	defer e.payBody()
	return e.spendLeast(e.network.unknown)
}

// receive records how many bytes of a request have been read. Once they are no longer free,
// it refuses a client that is over its limits.
func (e *exchange) receive(bytes int) *refusal {
	before := bodyCredits(e.asked)
	e.asked = bytes
	if before > 0 || bodyCredits(bytes) == 0 {
		return nil
	}
	return e.spend(0)
}

// payBody charges for the bytes of a request, because reading and parsing take time even if
// no method is called. It charges afterwards, so that a request that costs more than the
// key's burst is still answered.
func (e *exchange) payBody() {
	if credits := bodyCredits(max(e.asked, e.sent)); credits > 0 {
		e.owe(credits)
		e.caller.usage.Spent(e.network.unknown, credits)
	}
}

// bodyCredits returns the price of a request's bytes.
func bodyCredits(bytes int) int { return max(0, bytes-1) / bytesPerCredit }

// heavily takes a slot of heavy calls, for work on a request before its calls are known.
func (e *exchange) heavily() (leave func(), err error) {
	if e.settings.heavy.Enter(e, &e.caller.heavy) != nil {
		return nil, busy(RefusedBusy)
	}
	return func() { e.settings.heavy.Leave(&e.caller.heavy) }, nil
}

// parse runs the parsing of a long request in a slot of heavy calls, because it keeps a
// processor as busy. See jsonrpc.Config.Parse.
func (g *gate) parse(ctx context.Context, parse func()) error {
	e := exchangeOf(ctx)
	if err := g.heavy.Enter(ctx, &e.caller.heavy); err != nil {
		if errors.Is(err, limit.ErrBusy) {
			return e.refuse(busy(RefusedBusy))
		}
		return err
	}
	defer g.heavy.Leave(&e.caller.heavy)
	parse()
	return nil
}

// Hold implements jsonrpc.Holder. If there is no memory for an answer, all further calls of
// the exchange are refused: their answers would only wait in memory together with the
// earlier ones.
func (e *exchange) Hold(length int) error {
	if !e.crowded && e.lease.Hold(e.asked+length) {
		return nil
	}
	e.crowded = true
	return e.refuse(busy(RefusedMemory))
}

// Reserve implements jsonrpc.Holder.
func (e *exchange) Reserve(capacity int) bool { return e.lease.Hold(e.asked + capacity) }

// Drop implements jsonrpc.Holder. It ends the subscriptions that the answer names.
func (e *exchange) Drop(answer []byte) {
	if e.notifier != nil {
		e.notifier.drop(answer)
	}
}

// claim counts the memory of a buffer from a pool, because a short request may get one that a
// long one left behind, and wait with it. If there is no memory for it, claim returns a small
// buffer instead.
func (e *exchange) claim(pool *jsonrpc.BufferPool, buf *[]byte) *[]byte {
	if cap(*buf) <= smallBuffer {
		return buf
	}
	if e.lease.Hold(e.claimed + cap(*buf)) {
		e.claimed += cap(*buf)
		return buf
	}
	pool.PutLarge(buf)
	return new([]byte)
}

// Lend implements limit.Lender.
func (e *exchange) Lend() limit.Lease {
	return limit.Lease{Budget: e.settings.memory, Caller: e.caller.holding}
}

// Weaken implements jsonrpc.Verifier.
func (e *exchange) Weaken(v jsonrpc.Verification) {
	if !e.stated || v < e.verified {
		e.stated, e.verified = true, v
	}
}

// fits reports whether there is memory for the whole answer. If an earlier answer did not
// fit, the rest are refusals, which are sent in any case.
func (e *exchange) fits(answer []byte) bool {
	return e.crowded || e.lease.Hold(e.asked+len(answer))
}

// refuse records that a call was refused.
func (e *exchange) refuse(r *refusal) *jsonrpc.Error {
	e.settings.refusals.count(r.reason)
	e.refusal, e.refusedCall = r, r.cause
	return r.err
}

// refused returns why the whole exchange was refused: the refusal of its last call, or nil
// if any call was answered.
func (e *exchange) refused() *refusal {
	if e.answered {
		return nil
	}
	return e.refusal
}

// id returns the ID of the exchange for logs and a response header. It is created on first
// use, since most exchanges never need one.
func (e *exchange) id() string {
	if name := e.name.Load(); name != nil {
		return *name
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	name := hex.EncodeToString(b[:])
	e.name.CompareAndSwap(nil, &name)
	return *e.name.Load()
}

// exchangeLog is a slog.Handler that adds the ID of the exchange to each record.
type exchangeLog struct{ slog.Handler }

// Handle implements slog.Handler.
func (l exchangeLog) Handle(ctx context.Context, record slog.Record) error {
	if e := exchangeOf(ctx); e != nil {
		record.AddAttrs(slog.String("request", e.id()), slog.String("network", e.network.name), slog.String("key", e.key.ID.String()))
	}
	return l.Handler.Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (l exchangeLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return exchangeLog{l.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (l exchangeLog) WithGroup(name string) slog.Handler {
	return exchangeLog{l.Handler.WithGroup(name)}
}

// retryAfter returns a wait in whole seconds, for the Retry-After header.
func retryAfter(wait time.Duration) int {
	return max(1, int((wait+time.Second-1)/time.Second))
}
