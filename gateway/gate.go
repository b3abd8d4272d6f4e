package gateway

import (
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"time"

	"ashlar/account"
	"ashlar/account/usage"
	"ashlar/jsonrpc"
	"ashlar/limit"
)

// gate decides before each method whether and when a call may run.
type gate struct {
	light, heavy *limit.Pool
	credits      func(*jsonrpc.Method) int
	series       func(method string) usage.Series // series to count credits under
	network      string
	restricted   []string // methods that only keys whose rules list them may call
	unavailable  func(error) bool
}

// before wraps the handlers of methods so that each call passes the gate first.
func (g *gate) before(methods *jsonrpc.Methods) jsonrpc.Handlers {
	guarded := make(jsonrpc.Handlers, methods.Len())
	for method := range methods.All() {
		guarded[method.Name] = g.guard(method)
	}
	return guarded
}

func (g *gate) guard(method *jsonrpc.Method) jsonrpc.Handler {
	run, credits, series := method.Handler, g.credits(method), g.series(method.Name)
	restricted := account.MatchesMethod(g.restricted, method.Name)
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		e := exchangeOf(ctx)
		e.called, e.method, e.series, e.credits = true, method.Name, series, credits
		if r := g.forbids(ctx, e, method, restricted, params); r != nil {
			if over := e.spendLeast(series); over != nil {
				r = over
			}
			return out, e.refuse(r)
		}
		if err := e.Hold(len(out)); err != nil { // the earlier answers of a batch wait with this call
			return out, err
		}
		if r := e.charge(credits); r != nil {
			return out, e.refuse(r)
		}
		weight := method.Cost.Weight
		e.weight = weight
		if len(params) > jsonrpc.LongRequest { // decoding them keeps a processor as busy
			weight = jsonrpc.HeavyWeight
		}
		return g.run(ctx, e, weight, out, func() ([]byte, error) {
			e.Weaken(method.Verified)
			return run(ctx, params, out)
		})
	}
}

// restricts reports whether a key with the given rules may not call a method on the network.
func (g *gate) restricts(method string, rules *account.Rules) bool {
	return account.MatchesMethod(g.restricted, method) && !rules.ListsMethod(method)
}

// forbids returns the refusal of a call that the rules of the network or the key forbid, or nil.
func (g *gate) forbids(ctx context.Context, e *exchange, method *jsonrpc.Method, restricted bool, params []byte) *refusal {
	switch {
	case restricted && !e.key.Rules.ListsMethod(method.Name):
		return forbidden(usage.Method, notAvailable(method)+": "+g.network+
			" restricts it to keys whose rules list it: add it to the methods of the key's rules, or ask the holder of the key")
	case e.key.Rules != nil:
		return ruled(ctx, e.key.Rules, method, params)
	}
	return nil
}

// unknown charges for a call of a method that does not exist.
func (g *gate) unknown(ctx context.Context) error {
	e := exchangeOf(ctx)
	e.called = true
	if r := e.spendLeast(e.network.unknown); r != nil {
		return e.refuse(r)
	}
	return nil
}

// run waits for a slot and calls answer, which appends to out. The exchange has spent the
// credits for it. It keeps the slot until [exchange.leave].
func (g *gate) run(ctx context.Context, e *exchange, weight jsonrpc.Weight, out []byte, answer func() ([]byte, error)) ([]byte, error) {
	pool, share := g.light, &e.caller.light
	switch weight {
	case jsonrpc.HeavyWeight:
		pool, share = g.heavy, &e.caller.heavy
	case jsonrpc.WaitingWeight, jsonrpc.RecomputingWeight:
		share = &e.caller.waiting
	}
	e.leave() // an earlier call of a batch
	if err := pool.Enter(ctx, share); err != nil {
		if errors.Is(err, limit.ErrBusy) {
			e.giveBack()
			return out, e.refuse(busy(RefusedBusy))
		}
		// A client that gives up still pays, or filling the queue would be free.
		e.caller.usage.Spent(e.series, e.credits)
		return out, err
	}
	e.hold(pool, share)
	free := false
	defer func() { // also after a panic
		if !free {
			e.caller.usage.Spent(e.series, e.credits)
		}
	}()
	result, err := answer()
	if r := g.lacked(err); r != nil {
		free = true
		e.giveBack()
		return out, e.refuse(r)
	}
	if errors.Is(err, limit.ErrMemory) {
		return out, e.refuse(busy(RefusedMemory))
	}
	if err == nil {
		e.caller.usage.Sent(e.series, len(result)-len(out))
		if err = e.Hold(len(result)); err != nil {
			e.Drop(result[len(out):])
		}
	}
	if !e.crowded {
		e.answered = true
	}
	return result, err
}

// lacked returns the refusal of a call that failed for want of what it may get later, or nil.
func (g *gate) lacked(err error) *refusal {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, limit.ErrBusy): // of slots to go on, or of processes for scripts
		return busy(RefusedBusy)
	case g.unavailable != nil && g.unavailable(err):
		return unavailable(RefusedBusy, "the store cannot be reached: try again later")
	}
	return nil
}

// ruled returns the rule of the key that refuses a call, or nil. If the rules list
// contracts, a call is refused unless it is known to concern no other contract.
func ruled(ctx context.Context, rules *account.Rules, method *jsonrpc.Method, params []byte) *refusal {
	if !rules.AllowsMethod(method.Name) {
		return forbidden(usage.Method, notAvailable(method)+", whose rules do not list it")
	}
	if len(rules.Contracts) == 0 {
		return nil
	}
	concern, err := method.Concerns(ctx, params)
	switch {
	case err != nil:
		return forbidden(usage.Contract, "contract not allowed: the key's rules list contracts, and "+err.Error())
	case concern.IsNone():
		return nil
	case len(concern.Contracts()) == 0:
		return forbidden(usage.Contract, "contract not allowed: the key's rules list contracts, and this call names none")
	}
	for _, contract := range concern.Contracts() {
		if !allowsContract(rules, contract) {
			return forbidden(usage.Contract, "contract not allowed: the key's rules do not list 0x"+hex.EncodeToString([]byte(contract)))
		}
	}
	return nil
}

// notAvailable is the beginning of the refusal of a method. By "not available", proxies before several nodes know that they
// should send this method elsewhere, and that the server is not broken.
func notAvailable(method *jsonrpc.Method) string {
	return "method not allowed: " + method.Name + " is not available to this key"
}

// allowsContract reports whether the rules list a contract. They list only contracts of EVM
// networks, whose addresses all have the same length.
func allowsContract(rules *account.Rules, contract jsonrpc.Contract) bool {
	var listed account.Contract
	return len(contract) == len(listed) && copy(listed[:], contract) > 0 && rules.AllowsContract(listed)
}

// admit checks a request before its body is read: its key, and the key's rules that do not
// concern calls.
func (h *Handler) admit(s *settings, r *http.Request, route route, network *served) (*account.Key, *refusal) {
	h.proxyWatch.look(h.log, s, r)
	if route.key == "" {
		return nil, h.unknown(s, r, "project id required in the url")
	}
	key, ok := h.keys.Check(route.key)
	if !ok {
		return nil, h.unknown(s, r, "invalid project id")
	}
	if key.Guarded && !proves(key, r) {
		refused := h.unknown(s, r, "invalid project secret: expected the key's password by Basic authentication")
		refused.cause = usage.Password
		s.countRefused(key, network, originOf(r), refused)
		return nil, refused
	}
	if conn := connOf(r); conn != nil {
		conn.keep()
	}
	if refused := s.refuseForbidden(key, r, network); refused != nil {
		return nil, refused
	}
	return key, nil
}

// refuseForbidden returns the refusal of a request that the key's rules forbid as a whole, or nil. It
// counts the refusal, and charges the client's address a credit, and the key none: anyone who sees a
// key that only its holder's pages or addresses may use could otherwise use up its limits.
func (s *settings) refuseForbidden(key *account.Key, r *http.Request, network *served) *refusal {
	if key.Rules == nil {
		return nil
	}
	refused := s.allowed(key.Rules, r, network)
	if refused == nil {
		return nil
	}
	payer := s.payer(key, s.client(r))
	if over := payer.spendAddress(1); over != nil {
		refused = over
	}
	s.countRefused(key, network, originOf(r), refused)
	return refused
}

// unknown returns the refusal of a request without a valid key. It counts against the
// client's address. Other clients at that address may have valid keys, so only requests
// without one are refused because of it.
func (h *Handler) unknown(s *settings, r *http.Request, message string) *refusal {
	if over := h.countUnknown(s, r); over != nil {
		return over
	}
	return noKey(message)
}

// countUnknown counts a request without a valid key, or returns a refusal if there are too many.
func (h *Handler) countUnknown(s *settings, r *http.Request) *refusal {
	if excess, ok := h.addresses.Spend(time.Now(), s.client(r)); !ok {
		return tooFast(RefusedAddress, "too many requests without a valid key from this address", s.see, excess)
	}
	return nil
}

// refuseUnserved answers a request for a path, a network or an HTTP method that is not served. key is the
// one in its path, if any. With a valid key, it takes a credit of the client's address, as one that the
// key's rules forbid. Without, it counts like any request without a valid key: otherwise the names of
// networks could be guessed at any rate.
func (h *Handler) refuseUnserved(w http.ResponseWriter, r *http.Request, s *settings, key string, status int, message string) {
	var over *refusal
	if known, ok := h.keys.Check(key); ok && (!known.Guarded || proves(known, r)) {
		payer := s.payer(known, s.client(r))
		over = payer.spendAddress(1)
	} else {
		over = h.countUnknown(s, r)
	}
	if over != nil {
		h.refuse(w, over, readRequestID(w, r))
		return
	}
	refuse(w, r, status, message)
}

// proves reports whether a request has the password of its key. WWW-Authenticate is not
// sent, because browsers would then store the password and send it for any page.
func proves(key *account.Key, r *http.Request) bool {
	_, password, _ := r.BasicAuth()
	return key.Accepts(password)
}

// allowed returns the refusal of the key's rule that a request violates, or nil.
func (s *settings) allowed(rules *account.Rules, r *http.Request, network *served) *refusal {
	switch {
	case !rules.AllowsNetwork(network.name):
		return forbidden(usage.Network, "network not allowed: the key's rules do not list "+network.name)
	case !rules.AllowsOrigin(r.Header.Get("Origin")):
		return forbidden(usage.Origin, "origin not allowed: the key's rules do not list it")
	case len(rules.Addresses) > 0 && !rules.AllowsAddress(s.client(r)):
		return forbidden(usage.Address, "address not allowed: the key's rules do not list the client's address")
	}
	return nil
}
