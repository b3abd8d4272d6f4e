package gateway

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"
)

// handshakeMessage is the prefix of net/http's messages about failed TLS handshakes. Any
// client can cause them, at any rate.
const handshakeMessage = "http: TLS handshake error"

// handshakeLogEvery is the minimum time between two such messages in the log.
const handshakeLogEvery = 10 * time.Second

// quietLog is a slog.Handler that drops most messages about failed TLS handshakes. The next
// logged message says how many were dropped.
type quietLog struct {
	slog.Handler
	last    *atomic.Int64 // Unix nanoseconds
	dropped *atomic.Int64
}

func newQuietLog(to slog.Handler) quietLog { return quietLog{to, new(atomic.Int64), new(atomic.Int64)} }

// Handle implements slog.Handler.
func (l quietLog) Handle(ctx context.Context, record slog.Record) error {
	if strings.HasPrefix(record.Message, handshakeMessage) {
		last, now := l.last.Load(), record.Time.UnixNano()
		if now-last < int64(handshakeLogEvery) || !l.last.CompareAndSwap(last, now) {
			l.dropped.Add(1)
			return nil
		}
		if dropped := l.dropped.Swap(0); dropped > 0 {
			record = record.Clone()
			record.AddAttrs(slog.Int64("dropped", dropped))
		}
	}
	return l.Handler.Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (l quietLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietLog{l.Handler.WithAttrs(attrs), l.last, l.dropped}
}

// WithGroup implements slog.Handler.
func (l quietLog) WithGroup(name string) slog.Handler {
	return quietLog{l.Handler.WithGroup(name), l.last, l.dropped}
}
