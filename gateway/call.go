package gateway

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"ashlar/account"
	"ashlar/jsonrpc"
)

// Call is a request made inside the process instead of over HTTP, such as by the
// dashboard's console.
type Call struct {
	Network string
	Key     *account.Key // its rules and limits apply; the caller has checked it
	Client  netip.Addr   // address of the client
	Request []byte       // one JSON-RPC request or a batch
}

// Reply is what a client would get over HTTP.
type Reply struct {
	Status int
	Body   []byte
	Retry  time.Duration // time until a refused request may succeed; 0 if not refused, or not known
}

// Do answers a call as if it had come over HTTP: all limits apply and it is counted. The
// reply is passed to read; its memory is charged until read returns, and must not be used
// afterwards.
func (h *Handler) Do(ctx context.Context, c Call, read func(Reply)) {
	s := h.current.Load()
	network := s.networks.byName[c.Network]
	if refused, ok := h.refuses(s, c, network); ok {
		read(refused)
		return
	}
	e := newExchange(ctx, s, network, c.Key, c.Client, "")
	defer e.lease.Release()
	defer e.stop()
	defer e.leave() // also after a panic
	if refused := e.receive(len(c.Request)); refused != nil {
		e.countRefused(refused)
		read(h.refused(refused))
		return
	}
	out := e.respond(c.Request, nil)
	e.leave()
	if !e.fits(out) {
		refused := busy(RefusedMemory)
		e.countRefused(refused)
		read(h.refused(refused))
		return
	}
	reply := Reply{Status: http.StatusOK, Body: out}
	if refused := e.refused(); refused != nil {
		reply.Status, reply.Retry = refused.status, refused.wait
	}
	read(reply)
}

// refuses checks a call before anything of it runs. It returns false if the call is
// acceptable.
func (h *Handler) refuses(s *settings, c Call, network *served) (Reply, bool) {
	switch {
	case network == nil:
		return failed(http.StatusNotFound, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "no such network"}), true
	case len(c.Request) > s.bodyBytes:
		refused := h.bodyRefusal(s, errTooLarge)
		s.countRefused(c.Key, network, "", refused)
		return failed(refused.status, refused.err), true
	}
	asks := &http.Request{RemoteAddr: netip.AddrPortFrom(c.Client, 0).String()} // all that rules check
	if refused := s.refuseForbidden(c.Key, asks, network); refused != nil {
		return h.refused(refused), true
	}
	return Reply{}, false
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
