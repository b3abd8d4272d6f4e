package ingesttest

import (
	"context"
	"log/slog"
	"sync"
)

// Log is a handler that keeps what is logged. It is safe for concurrent use.
type Log struct {
	mu      sync.Mutex
	records []slog.Record // guarded by mu
}

// Of returns the attributes of each record with a message. Numbers are int64 values.
func (l *Log) Of(message string) (all []map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.records {
		if r.Message != message {
			continue
		}
		attributes := make(map[string]any)
		r.Attrs(func(a slog.Attr) bool {
			attributes[a.Key] = a.Value.Any()
			if a.Value.Kind() == slog.KindUint64 {
				attributes[a.Key] = int64(a.Value.Uint64())
			}
			return true
		})
		all = append(all, attributes)
	}
	return all
}

// Enabled implements slog.Handler.
func (*Log) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (l *Log) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, r)
	return nil
}

// WithAttrs implements slog.Handler. It drops the attributes.
func (l *Log) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements slog.Handler. It drops the group.
func (l *Log) WithGroup(string) slog.Handler { return l }
