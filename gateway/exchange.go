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

// exchange is the state of one request, a single call or a batch, while it is answered. It
// is the context of its methods. All but its name belongs to the goroutine that answers.
type exchange struct {
	deadlineContext
	payer
	network *served
	key     *account.Key

	lease   limit.Lease // bytes of the request and its answer; released by the maker of the exchange
	asked   int         // bytes of the request, as far as they were read
	crowded bool        // an answer could not be held: no further call is answered

	series   usage.Series // as which the last call is counted
	called   bool         // an existing method was called
	answered bool         // a call was let through, and there was memory for what it returned
	refusal  *refusal     // of the last call that was refused, or whose result could not be held

	name atomic.Pointer[string] // the request's ID, once something was logged about it
}

type exchangeKey struct{}

func newExchange(parent context.Context, s *settings, network *served, key *account.Key, client netip.Addr) *exchange {
	e := &exchange{payer: s.payer(key, client), network: network, key: key}
	e.lease.Budget, e.lease.Caller = s.memory, e.caller.holding
	e.begin(parent)
	return e
}

// begin makes the exchange's time begin, under another parent if there is one.
func (e *exchange) begin(parent context.Context) {
	e.deadlineContext.begin(parent, e.settings.requestTime)
}

// Value implements context.Context.
func (e *exchange) Value(key any) any {
	switch key.(type) {
	case exchangeKey, jsonrpc.HolderKey:
		return e
	case jsonrpc.CallerKey:
		return e.caller.name
	case jsonrpc.ServerKey:
		return e.network.server
	}
	return e.deadlineContext.Value(key)
}

// exchangeOf returns the exchange that a method's context belongs to, or nil.
func exchangeOf(ctx context.Context) *exchange {
	if e, ok := ctx.(*exchange); ok {
		return e
	}
	e, _ := ctx.Value(exchangeKey{}).(*exchange)
	return e
}

// respond has a request answered and appends the answer to out. A request that calls no
// method costs as much as the cheapest method.
func (e *exchange) respond(request, out []byte) []byte {
	defer e.payBody()
	mark := len(out)
	out = e.network.server.Answer(e, request, out)
	if e.called {
		return out
	}
	if r := e.spend(1); r != nil {
		return jsonrpc.AppendError(out[:mark], nil, e.refuse(r))
	}
	e.caller.usage.Spent(e.network.unknown, 1)
	return out
}

// receive notes how many bytes of a request have been read. A client over its limits is
// refused at the first bytes that are not free.
func (e *exchange) receive(bytes int) *refusal {
	before := bodyCredits(e.asked)
	e.asked = bytes
	if before > 0 || bodyCredits(bytes) == 0 {
		return nil
	}
	return e.spend(0)
}

// payBody charges for the bytes of a request, whose reading and parsing take time even if
// it calls nothing. They are paid for afterwards, so that a request that costs more than
// the key can save up is answered all the same.
func (e *exchange) payBody() {
	if credits := bodyCredits(e.asked); credits > 0 {
		e.owe(credits)
		e.caller.usage.Spent(e.network.unknown, credits)
	}
}

// bodyCredits is the price of so many bytes of a request.
func bodyCredits(bytes int) int { return max(0, bytes-1) / bytesPerCredit }

// parse runs the parsing of a long request in a slot of heavy calls, since it keeps a
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

// Hold implements jsonrpc.Holder. After an answer that could not be held no further call of
// the exchange is answered: the answers before it would wait for memory with it.
func (e *exchange) Hold(length int) error {
	if !e.crowded && e.lease.Hold(e.asked+length) {
		return nil
	}
	e.crowded = true
	return e.refuse(busy(RefusedMemory))
}

// holds says whether there is memory for the whole answer. Refusals that were appended after
// memory ran out are short and always sent.
func (e *exchange) holds(answer []byte) bool {
	return e.crowded || e.lease.Hold(e.asked+len(answer))
}

// refuse notes that a call was refused.
func (e *exchange) refuse(r *refusal) *jsonrpc.Error {
	e.settings.refusals.count(r.reason)
	e.refusal = r
	return r.err
}

// refused is why the whole exchange was refused: the reason of its last call, if not
// one of its calls was answered.
func (e *exchange) refused() *refusal {
	if e.answered {
		return nil
	}
	return e.refusal
}

// id names the exchange in the log, and in a header of its answer. Most are never
// named, so the name is made when it is asked for.
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

// exchangeLog is a log that says of which exchange something is said.
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

// retryAfter is a wait as the Retry-After header has it, in whole seconds.
func retryAfter(wait time.Duration) int {
	return max(1, int((wait+time.Second-1)/time.Second))
}
