package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"ashlar/account"
	"ashlar/jsonrpc"
)

// What a Handler does where its Config leaves a value at zero.
const (
	DefaultBodyBytes   = 5 << 20
	DefaultRequestTime = 30 * time.Second
)

const (
	allowedMethods = "POST, OPTIONS"
	// maxPooled is the largest buffer kept for use again, in bytes.
	maxPooled = 1 << 20
	// trustedLength is how much memory a request gets for announcing a length.
	trustedLength = 256 << 10
)

// Keys says whether requests may be made with a key. It is asked for every request,
// from many goroutines at once.
type Keys interface {
	Check(key string) (account.ID, bool)
}

// Config is what a [Handler] serves, and how.
type Config struct {
	Networks []Network
	Keys     Keys
	RPC      jsonrpc.Config // for every network
	// BodyBytes is the most that the body of a request may hold; 0: DefaultBodyBytes.
	BodyBytes int
	// RequestTime is how long a request's methods may take; 0: DefaultRequestTime.
	RequestTime time.Duration
	// Origins are the origins whose pages may call, AnyOrigin for all; empty: none.
	Origins []string
	Sockets SocketLimits
	// Ready tells whether questions can be answered; nil: always. Its error is
	// logged, not shown.
	Ready func(context.Context) error
	Log   *slog.Logger // nil: slog.Default()
}

// Handler answers HTTP requests and WebSocket messages. It may be used from many goroutines at once.
type Handler struct {
	networks    *networks
	keys        Keys
	requestTime time.Duration
	origins     origins
	ready       func(context.Context) error
	log         *slog.Logger
	sockets     *sockets

	bodies     bodyReader
	compressor compressor
	buffers    jsonrpc.BufferPool
}

// New returns a handler, or says what is wrong with the networks.
func New(config Config) (*Handler, error) {
	if config.Log == nil {
		config.Log = slog.Default()
	}
	if config.RPC.Log == nil {
		config.RPC.Log = config.Log
	}
	if config.BodyBytes == 0 {
		config.BodyBytes = DefaultBodyBytes
	}
	if config.RequestTime == 0 {
		config.RequestTime = DefaultRequestTime
	}
	if config.Keys == nil {
		return nil, errors.New("gateway: nothing to check keys with")
	}
	n, err := newNetworks(config.Networks, config.RPC)
	if err != nil {
		return nil, err
	}
	return &Handler{
		networks:    n,
		keys:        config.Keys,
		requestTime: config.RequestTime,
		origins:     config.Origins,
		ready:       config.Ready,
		log:         config.Log,
		sockets:     newSockets(config.Sockets, config.Keys),
		bodies:      bodyReader{limit: config.BodyBytes, initialBytes: trustedLength},
		buffers:     jsonrpc.BufferPool{MaxBytes: maxPooled},
	}, nil
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if origin := r.Header["Origin"]; len(origin) > 0 && len(h.origins) > 0 {
		h.origins.allow(w.Header(), origin[0])
	}
	route, ok := parseRoute(r.URL.Path)
	if !ok {
		h.serveOther(w, r)
		return
	}
	switch {
	case route.socket && r.Method == http.MethodGet, !route.socket && r.Method == http.MethodPost:
	case r.Method == http.MethodOptions:
		h.origins.preflight(w, r)
		return
	default:
		refuseMethod(w, route)
		return
	}
	server := h.networks.find(route.network, r.Host)
	if server == nil {
		refuse(w, http.StatusNotFound, "no such network: expected the host or the path of one that is served here")
		return
	}
	if route.key == "" {
		refuse(w, http.StatusUnauthorized, "project id required in the url")
		return
	}
	if _, ok := h.keys.Check(route.key); !ok {
		refuse(w, http.StatusUnauthorized, "invalid project id")
		return
	}
	if route.socket {
		h.serveSocket(w, r, server, route.key)
		return
	}
	if !isJSON(r.Header.Get("Content-Type")) {
		refuse(w, http.StatusUnsupportedMediaType, "invalid content type: expected application/json")
		return
	}
	h.answer(w, r, server)
}

// refuseMethod answers for another HTTP method than the one of the path.
func refuseMethod(w http.ResponseWriter, route route) {
	if route.socket {
		w.Header().Set("Allow", http.MethodGet)
		refuse(w, http.StatusMethodNotAllowed, "method not allowed: expected GET with a WebSocket handshake")
		return
	}
	w.Header().Set("Allow", allowedMethods)
	refuse(w, http.StatusMethodNotAllowed, "method not allowed: expected POST with a JSON-RPC request as its body")
}

// answer reads the body, has it answered and writes the answer.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, server *jsonrpc.Server) {
	body := h.buffers.Get()
	defer h.buffers.Put(body)
	var err error
	if *body, err = h.bodies.read(r, *body); err != nil {
		h.refuseBody(w, err)
		return
	}
	ctx := newDeadlineContext(r.Context(), h.requestTime)
	defer ctx.stop()
	out := h.buffers.Get()
	defer h.buffers.Put(out)
	*out = server.Answer(ctx, *body, *out)

	if len(*out) < minGzip {
		reply(w, http.StatusOK, *out)
		return
	}
	w.Header().Add("Vary", "Accept-Encoding")
	if !acceptsGzip(r.Header.Get("Accept-Encoding")) {
		reply(w, http.StatusOK, *out)
		return
	}
	zipped := h.buffers.Get()
	defer h.buffers.Put(zipped)
	*zipped = h.compressor.compress(*out, *zipped)
	w.Header().Set("Content-Encoding", "gzip")
	reply(w, http.StatusOK, *zipped)
}

// refuseBody answers for a body that could not be read, and ends the connection: the
// rest of the body may still be on its way.
func (h *Handler) refuseBody(w http.ResponseWriter, err error) {
	w.Header().Set("Connection", "close")
	switch {
	case errors.Is(err, errTooLarge):
		refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("request body too large: expected at most %d bytes", h.bodies.limit))
	case errors.Is(err, errEncoding):
		refuse(w, http.StatusUnsupportedMediaType, "invalid content encoding: expected gzip or none")
	default:
		refuse(w, http.StatusBadRequest, "the request's body could not be read: expected as many bytes as announced, in the encoding announced")
	}
}

// serveOther answers all paths but those of JSON-RPC.
func (h *Handler) serveOther(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/healthz":
		plain(w, http.StatusOK, "ok\n")
	case "/readyz":
		if h.ready != nil {
			if err := h.ready(r.Context()); err != nil {
				h.log.Warn("not ready", "error", err)
				plain(w, http.StatusServiceUnavailable, "not ready\n")
				return
			}
		}
		plain(w, http.StatusOK, "ready\n")
	default:
		refuse(w, http.StatusNotFound, "no such path: expected /v3/<key>, /ws/v3/<key>, or one of them after /<network>")
	}
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}
