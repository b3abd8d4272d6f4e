package gateway

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"
)

// handshakeMessage begins the messages of net/http about TLS handshakes that failed. Any
// client can cause them, at any rate.
const handshakeMessage = "http: TLS handshake error"

// handshakeLogEvery is the least time between two such messages in the log.
const handshakeLogEvery = 10 * time.Second

// quietLog is a log that drops messages about TLS handshakes while there are too many, and
// says with the next how many it has dropped.
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
