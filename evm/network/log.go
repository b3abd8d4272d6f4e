package network

import (
	"context"
	"log/slog"
)

// log returns a logger whose lines have the network's name. It may be made before the network has its name, which it gets when
// it is served, before anything of it runs.
func (n *network) log() *slog.Logger { return slog.New(namedHandler{n, slog.Default().Handler()}) }

type namedHandler struct {
	network *network
	slog.Handler
}

// Handle implements [slog.Handler].
func (h namedHandler) Handle(ctx context.Context, r slog.Record) error {
	if h.network.name != "" {
		r = r.Clone()
		r.AddAttrs(slog.String("network", h.network.name))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h namedHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return namedHandler{h.network, h.Handler.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (h namedHandler) WithGroup(name string) slog.Handler {
	return namedHandler{h.network, h.Handler.WithGroup(name)}
}
