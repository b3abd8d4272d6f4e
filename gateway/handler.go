package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"ashlar/account"
	"ashlar/account/usage"
	"ashlar/jsonrpc"
	"ashlar/limit"
)

const (
	allowedMethods = "POST, OPTIONS"
	// maxPooled is the largest buffer, in bytes, that is reused for any answer;
	// maxLargePooled is how many bytes of larger buffers are kept for long answers.
	maxPooled      = 1 << 20
	maxLargePooled = 32 << 20
	// smallBuffer is the largest buffer, in bytes, that is not counted.
	smallBuffer = 4 << 10
	// longRequest is the size in bytes from which a request is expected to have a long
	// answer: most requests of that size are batches.
	longRequest = 4 << 10
	// maxAddresses is the maximum number of addresses whose failures are counted.
	maxAddresses = 1 << 16
)

// Keys looks up API keys. It is called for every request, concurrently; the keys it returns
// must not change.
type Keys interface {
	Check(key string) (*account.Key, bool)
}

// Handler answers HTTP requests and WebSocket messages. It is safe for concurrent use.
type Handler struct {
	current   atomic.Pointer[settings]
	keys      Keys
	log       *slog.Logger
	sockets   *sockets
	addresses *limit.Addresses
	days      days
	today     func() time.Time
	memory    *limit.Budget
	refusals  refusals
	stopping  atomic.Bool
	unready   atomic.Bool // result of the last check

	proxyWatch proxyWatch

	bodies     bodyReader
	compressor compressor
	buffers    jsonrpc.BufferPool
}

// New returns a handler, or an error if the configuration is invalid.
func New(config Config) (*Handler, error) {
	if config.Keys == nil {
		return nil, errors.New("gateway: missing Keys")
	}
	if config.Log == nil {
		config.Log = slog.Default()
	}
	if config.Today == nil {
		config.Today = time.Now
	}
	h := &Handler{
		keys:      config.Keys,
		log:       config.Log,
		today:     config.Today,
		addresses: limit.NewAddresses(config.Limits.Failures, maxAddresses),
		memory:    limit.NewBudget(0), // Reload sets its size
		buffers:   jsonrpc.BufferPool{MaxBytes: maxPooled, MaxLargeBytes: maxLargePooled},
	}
	h.bodies.buffers = &h.buffers
	h.sockets = newSockets(h)
	return h, h.Reload(config)
}

// Reload applies another configuration to all later requests. If it is invalid, Reload
// returns an error and changes nothing. Keys, Log, Today and Limits.Failures stay unchanged. Rates
// start with a full burst; the credits spent today are kept.
func (h *Handler) Reload(config Config) error {
	s, err := newSettings(config, h)
	if err == nil {
		h.memory.SetMax(s.memoryBytes)
		h.current.Store(s)
	}
	return err
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := h.current.Load()
	if h.stopping.Load() {
		w.Header().Set("Connection", "close")
	}
	route, isRPC := parseRoute(r.URL.Path)
	described, isDocument := openRPCNetwork(r.URL.Path)
	if !isRPC && !isDocument && !isStray(r) && s.servePages(w, r) {
		return
	}
	if origin := originOf(r); len(s.origins) > 0 && (origin != "" || isDocument) {
		s.origins.allow(w.Header(), origin)
	}
	if isDocument {
		h.serveOpenRPC(w, r, s, s.networks.byName[described])
		return
	}
	if !isRPC {
		h.serveOther(w, r, s)
		return
	}
	switch {
	case route.socket && r.Method == http.MethodGet, !route.socket && r.Method == http.MethodPost:
	case r.Method == http.MethodOptions:
		s.origins.preflight(w, r)
		return
	default:
		h.refuseMethod(w, r, s, route)
		return
	}
	network := s.networks.find(route.network, r.Host)
	if network == nil {
		h.refuseUnserved(w, r, s, route.key, http.StatusNotFound, "no such network: expected the host or the path of a network that is served here")
		return
	}
	if network = network.at(route.version); network == nil {
		h.refuseUnserved(w, r, s, route.key, http.StatusNotFound, "no such version: expected a path without /rpc/..., or a version that the network has")
		return
	}
	key, refused := h.admit(s, r, route, network)
	if refused != nil {
		h.refuse(w, refused, readRequestID(w, r))
		return
	}
	if route.socket {
		h.serveSocket(w, r, network, key, route)
		return
	}
	e := newExchange(r.Context(), s, network, key, s.client(r), originOf(r))
	if s.watcher != nil {
		e.traceParent = header(r, "Traceparent")
	}
	h.answer(w, r, e)
}

// isStray reports whether a request for a path that is not JSON-RPC's was probably meant
// for one: a JSON-RPC request or the handshake of a WebSocket. The pages take neither, except
// those below pagesAPI.
func isStray(r *http.Request) bool {
	if strings.HasPrefix(r.URL.Path, pagesAPI) {
		return false
	}
	return r.Method == http.MethodPost && isJSON(header(r, "Content-Type")) || isUpgrade(r.Header)
}

// header returns a header's first value. name must be canonical: net/http has canonicalized
// the names, and doing it again would cost time.
func header(r *http.Request, name string) string {
	if values := r.Header[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// refuse counts a refusal and sends it as the answer to a call with an id or none.
func (h *Handler) refuse(w http.ResponseWriter, r *refusal, id []byte) {
	h.refusals.count(r.reason)
	r.write(w, id)
}

// refuseMethod answers a request with the wrong HTTP method for its path.
func (h *Handler) refuseMethod(w http.ResponseWriter, r *http.Request, s *settings, route route) {
	switch {
	case !route.socket && isUpgrade(r.Header):
		h.refuseUnserved(w, r, s, route.key, http.StatusMethodNotAllowed, "method not allowed: expected POST with a JSON-RPC request as its body; WebSockets are served at /ws/v3/<key>")
		return
	case route.socket:
		w.Header().Set("Allow", http.MethodGet)
		h.refuseUnserved(w, r, s, route.key, http.StatusMethodNotAllowed, "method not allowed: expected GET with a WebSocket handshake")
		return
	}
	w.Header().Set("Allow", allowedMethods)
	h.refuseUnserved(w, r, s, route.key, http.StatusMethodNotAllowed, "method not allowed: expected POST with a JSON-RPC request as its body")
}

// answer reads the body, answers it and writes the answer.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, e *exchange) {
	defer e.lease.Release()
	defer e.stop()
	defer e.leave() // also after a panic
	if !isJSON(header(r, "Content-Type")) {
		h.refuseBody(w, e, readRequestID(w, r), errContentType)
		return
	}
	body := e.claim(&h.buffers, h.bodyBuffer(r))
	defer h.buffers.PutLarge(body)
	var err error
	if *body, err = h.bodies.read(r, *body, e); err != nil {
		// The rest of the body may still arrive.
		w.Header().Set("Connection", "close")
		h.refuseBody(w, e, requestIDOf(*body), err)
		return
	}
	out, reusable := e.claim(&h.buffers, h.answerBuffer(*body)), true
	defer func() {
		if reusable {
			h.putAnswer(*body, out)
		}
	}()
	*out = e.respond(*body, *out)
	if name := e.name.Load(); name != nil {
		w.Header().Set("X-Request-Id", *name)
	}
	if !e.fits(*out) {
		e.leave()
		refused := busy(RefusedMemory)
		e.countRefused(refused)
		h.refuse(w, refused, requestIDOf(*body))
		return
	}
	status := http.StatusOK
	if refused := e.refused(); refused != nil {
		refused.setHeader(w.Header())
		status = refused.status
	} else {
		setVerified(w.Header(), e.verified)
	}
	reusable = h.send(w, r, e, status, *out) == nil
}

// bodyBuffer returns an empty buffer for a request's body: a large one if the body may be
// long, or every such body would grow a buffer from nothing.
func (h *Handler) bodyBuffer(r *http.Request) *[]byte {
	if r.ContentLength > maxPooled || header(r, "Content-Encoding") != "" {
		return h.buffers.GetLarge()
	}
	return h.buffers.Get()
}

// answerBuffer returns an empty buffer for the answer to a request.
func (h *Handler) answerBuffer(request []byte) *[]byte {
	if len(request) >= longRequest {
		return h.buffers.GetLarge()
	}
	return h.buffers.Get()
}

// putAnswer releases a buffer that answerBuffer returned for the request.
func (h *Handler) putAnswer(request []byte, out *[]byte) {
	if len(request) >= longRequest {
		h.buffers.PutLarge(out)
		return
	}
	h.buffers.Put(out)
}

// send writes an answer, compressed if that is worthwhile, the client accepts it, and there is
// memory for it. It releases the slot before it writes. After an error the answer's buffer must not be
// reused, see reply.
func (h *Handler) send(w http.ResponseWriter, r *http.Request, e *exchange, status int, out []byte) (err error) {
	if len(out) < minGzip {
		e.leave()
		return reply(w, status, out)
	}
	if takesGzip(w, r) {
		zipped := e.claim(&h.buffers, h.buffers.Get())
		defer func() {
			if err == nil {
				h.buffers.Put(zipped)
			}
		}()
		var ok bool
		if *zipped, ok = h.compressor.compress(e, out, *zipped); ok {
			w.Header().Set("Content-Encoding", "gzip")
			out = *zipped
		}
	}
	e.leave()
	defer gather(w, r, len(out))()
	return reply(w, status, out)
}

// takesGzip prepares an answer of minGzip bytes or more, and reports whether the client accepts it
// compressed.
func takesGzip(w http.ResponseWriter, r *http.Request) bool {
	// If this fails, the server's own limit applies.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime))
	w.Header().Add("Vary", "Accept-Encoding")
	return acceptsGzip(r.Header.Get("Accept-Encoding"))
}

// refuseBody answers a request whose body could not be read, or must not be. It charges for the request
// unless a limit or the load of the server refuses it.
func (h *Handler) refuseBody(w http.ResponseWriter, e *exchange, id []byte, err error) {
	if limited := new(refusal); !errors.As(err, &limited) && !errors.Is(err, limit.ErrMemory) {
		if over := e.spendUnread(); over != nil {
			err = over
		}
	}
	refused := h.bodyRefusal(e.settings, err)
	e.countRefused(refused)
	refused.write(w, id)
}

// bodyRefusal returns the refusal of a request whose body could not be read, and counts its
// reason.
func (h *Handler) bodyRefusal(s *settings, err error) (refused *refusal) {
	switch {
	case errors.As(err, &refused):
		h.refusals.count(refused.reason)
	case errors.Is(err, errTooLarge):
		h.refusals.count(RefusedSize)
		refused = invalid(http.StatusRequestEntityTooLarge, fmt.Sprintf("request body too large: expected at most %d bytes", s.bodyBytes))
		refused.cause = usage.Size
	case errors.Is(err, limit.ErrMemory):
		h.refusals.count(RefusedMemory)
		refused = busy(RefusedMemory)
	case errors.Is(err, errContentType):
		refused = invalid(http.StatusUnsupportedMediaType, "invalid content type: expected application/json, application/json-rpc or application/jsonrequest, in UTF-8")
	case errors.Is(err, errEncoding):
		refused = invalid(http.StatusUnsupportedMediaType, "invalid content encoding: expected gzip or none")
	default:
		refused = invalid(http.StatusBadRequest, "the request's body could not be read: expected as many bytes as announced, in the encoding announced")
	}
	return refused
}

// Paths of health checks, at every host.
const (
	pathHealthz = "/healthz"
	pathReadyz  = "/readyz"
)

// serveOther answers all paths except those of JSON-RPC.
func (h *Handler) serveOther(w http.ResponseWriter, r *http.Request, s *settings) {
	switch r.URL.Path {
	case pathHealthz:
		plain(w, http.StatusOK, "ok\n")
	case pathReadyz:
		err := h.Ready(r.Context())
		h.noteReady(err)
		if err != nil {
			plain(w, http.StatusServiceUnavailable, "not ready\n")
			return
		}
		plain(w, http.StatusOK, "ready\n")
	default:
		h.refuseUnserved(w, r, s, "", http.StatusNotFound, "no such path: expected /v3/<key>, /ws/v3/<key>, or one of them after /<network>")
	}
}

// noteReady logs changes between ready and not ready. It does not log each check, because
// anyone may check at any rate.
func (h *Handler) noteReady(err error) {
	switch {
	case err == nil && h.unready.Swap(false):
		h.log.Info("ready again")
	case err != nil && !h.unready.Swap(true):
		h.log.Warn("not ready", "error", err)
	}
}

var errStopping = errors.New("the server is about to stop")

// AnnounceStop says that the server is about to stop: it is not ready from now on, and
// each answer asks the client to open another connection, which may lead elsewhere.
// Requests are answered as before.
func (h *Handler) AnnounceStop() { h.stopping.Store(true) }

// Ready returns an error if requests cannot be answered, or soon will not be.
func (h *Handler) Ready(ctx context.Context) error {
	if h.stopping.Load() {
		return errStopping
	}
	if ready := h.current.Load().ready; ready != nil {
		return ready(ctx)
	}
	return nil
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}
