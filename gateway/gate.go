package gateway

import (
	"context"
	"errors"
	"net/http"
	"time"

	"ashlar/account"
	"ashlar/account/usage"
	"ashlar/jsonrpc"
	"ashlar/limit"
)

// Cost is what a call of a method takes.
type Cost struct {
	Credits int
	// Heavy calls run in a pool of their own, so that light ones do not wait behind them.
	Heavy bool
}

// gate stands before every method and decides whether a call may run, and when.
type gate struct {
	light, heavy *limit.Pool
	costs        func(method string) Cost
	series       func(method string) usage.Series // as which credits are counted
	spend        func(who *caller, credits int) *refusal
	giveBack     func(who *caller, credits int)
	contracts    func(ctx context.Context, method string, params []byte) (about []account.Contract, restricted bool, err error) // of the network
}

// before returns methods that pass the gate first.
func (g *gate) before(methods jsonrpc.Handlers) jsonrpc.Handlers {
	guarded := make(jsonrpc.Handlers, len(methods))
	for name, run := range methods {
		guarded[name] = g.guard(name, run)
	}
	return guarded
}

func (g *gate) guard(name string, run jsonrpc.Handler) jsonrpc.Handler {
	cost, series := g.costs(name), g.series(name)
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		e := exchangeOf(ctx)
		e.called = true
		if e.key.Rules != nil {
			if r := g.ruled(ctx, e.key.Rules, name, params); r != nil {
				return out, e.refuse(r)
			}
		}
		if err := e.Hold(len(out)); err != nil { // what a batch has been answered waits with this call
			return out, err
		}
		if r := g.spend(e.caller, cost.Credits); r != nil {
			return out, e.refuse(r)
		}
		pool, share := g.light, &e.caller.light
		if cost.Heavy {
			pool, share = g.heavy, &e.caller.heavy
		}
		if err := pool.Enter(ctx, share); err != nil {
			if errors.Is(err, limit.ErrBusy) {
				g.giveBack(e.caller, cost.Credits)
				return out, e.refuse(busy(RefusedBusy))
			}
			// A client that gives up pays all the same, or filling the queue would be free.
			e.caller.usage.Spent(series, cost.Credits)
			return out, err
		}
		defer pool.Leave(share)
		e.caller.usage.Spent(series, cost.Credits)
		result, err := run(ctx, params, out)
		if err == nil {
			err = e.Hold(len(result))
		}
		if !e.crowded {
			e.answered = true
		}
		return result, err
	}
}

// ruled says which rule of the key refuses a call, nil if none does.
func (g *gate) ruled(ctx context.Context, rules *account.Rules, name string, params []byte) *refusal {
	if !rules.AllowsMethod(name) {
		return forbidden("method not allowed: the key's rules do not list " + name)
	}
	if len(rules.Contracts) == 0 || g.contracts == nil {
		return nil
	}
	about, restricted, err := g.contracts(ctx, name, params)
	switch {
	case !restricted:
		return nil
	case err != nil:
		return forbidden("contract not allowed: the key's rules list contracts, and " + err.Error())
	case len(about) == 0:
		return forbidden("contract not allowed: the key's rules list contracts, and this call names none")
	}
	for _, c := range about {
		if !rules.AllowsContract(c) {
			text, _ := c.MarshalText()
			return forbidden("contract not allowed: the key's rules do not list " + string(text))
		}
	}
	return nil
}

// admit checks what can be checked of a request before it is read: its key, and those of
// the key's rules that are not about calls.
func (h *Handler) admit(s *settings, r *http.Request, route route, network *served) (*account.Key, *refusal) {
	if route.key == "" {
		return nil, h.unknown(s, r, "project id required in the url")
	}
	key, ok := h.keys.Check(route.key)
	if !ok {
		return nil, h.unknown(s, r, "invalid project id")
	}
	if key.Guarded && !proves(key, r) {
		return nil, h.unknown(s, r, "invalid project secret: expected the key's password by Basic authentication")
	}
	if key.Rules != nil {
		return key, s.allowed(key.Rules, r, network)
	}
	return key, nil
}

// unknown returns the refusal of a request without a valid key. It counts against the
// client's address, behind which others may have valid keys: only requests without one are
// refused for what the address has done.
func (h *Handler) unknown(s *settings, r *http.Request, message string) *refusal {
	if excess, ok := h.addresses.Spend(time.Now(), s.proxies.client(r)); !ok {
		return tooFast(RefusedAddress, "too many requests without a valid key from this address", s.see, excess)
	}
	return noKey(message)
}

// proves says whether a request has the password of its key. It is asked for without
// WWW-Authenticate: a browser would remember it then, and add it for any page.
func proves(key *account.Key, r *http.Request) bool {
	_, password, _ := r.BasicAuth()
	return key.Accepts(password)
}

// allowed says which of a key's rules refuses a request, nil if none does.
func (s *settings) allowed(rules *account.Rules, r *http.Request, network *served) *refusal {
	switch {
	case !rules.AllowsNetwork(network.name):
		return forbidden("network not allowed: the key's rules do not list " + network.name)
	case !rules.AllowsOrigin(r.Header.Get("Origin")):
		return forbidden("origin not allowed: the key's rules do not list it")
	case len(rules.Addresses) > 0 && !rules.AllowsAddress(s.proxies.client(r)):
		return forbidden("address not allowed: the key's rules do not list the client's address")
	}
	return nil
}
