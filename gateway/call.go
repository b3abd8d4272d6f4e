package gateway

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"ashlar/account"
	"ashlar/jsonrpc"
	"ashlar/limit"
)

// Call is a request that is made inside the process and not over HTTP, as by a page
// from which methods can be tried.
type Call struct {
	Network string
	Key     *account.Key // whose rules and limits hold; it was checked by whoever calls
	Client  netip.Addr   // on whose behalf
	Request []byte       // one JSON-RPC request or a batch
}

// Reply is what a client would have got over HTTP.
type Reply struct {
	Status int
	Body   []byte
	Retry  time.Duration // after which a refusal may end; 0: never, or there was none
}

// Do answers a call as if it had come over HTTP: every limit holds for it, and it is
// counted like any other. What is answered is given to read, and counts as held until
// read returns, after which nobody may have a part of it.
func (h *Handler) Do(ctx context.Context, c Call, read func(Reply)) {
	s := h.current.Load()
	held := limit.Lease{Budget: s.memory}
	defer held.Release()
	read(h.do(ctx, s, c, &held))
}

func (h *Handler) do(ctx context.Context, s *settings, c Call, held *limit.Lease) Reply {
	network := s.networks.byName[c.Network]
	switch {
	case network == nil:
		return failed(http.StatusNotFound, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "no such network"})
	case len(c.Request) > s.bodyBytes:
		h.refusals.count(RefusedSize)
		return failed(http.StatusRequestEntityTooLarge, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "request body too large: expected at most %d bytes", s.bodyBytes))
	}
	if c.Key.Rules != nil {
		asks := &http.Request{RemoteAddr: netip.AddrPortFrom(c.Client, 0).String()} // all that rules are about
		if refused := s.allowed(c.Key.Rules, asks, network); refused != nil {
			return h.refused(refused)
		}
	}
	e := newExchange(ctx, s, network, c.Key)
	defer e.stop()
	out := e.respond(c.Request, nil)
	if !held.Hold(len(c.Request) + len(out)) {
		return h.refused(busy(RefusedMemory))
	}
	reply := Reply{Status: http.StatusOK, Body: out}
	if refused := e.refused(); refused != nil {
		reply.Status, reply.Retry = refused.status, refused.wait
	}
	return reply
}

func (h *Handler) refused(r *refusal) Reply {
	h.refusals.count(r.reason)
	reply := failed(r.status, r.err)
	reply.Retry = r.wait
	return reply
}

func failed(status int, err *jsonrpc.Error) Reply {
	return Reply{Status: status, Body: jsonrpc.AppendError(nil, nil, err)}
}
