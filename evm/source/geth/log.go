package geth

import (
	"context"
	"log/slog"

	"github.com/ethereum/go-ethereum/log"
)

// showErrors makes go-ethereum's library log its errors like this program. Some of them end
// the process, and would do so without a word.
func showErrors() {
	own := slog.Default()
	log.SetDefault(log.NewLogger(errorsOnly{own.Handler()}))
	slog.SetDefault(own) // the line above has set it, too
}

// errorsOnly passes errors on to another handler.
type errorsOnly struct{ to slog.Handler }

func (h errorsOnly) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelError
}

func (h errorsOnly) Handle(ctx context.Context, r slog.Record) error {
	passed := slog.NewRecord(r.Time, slog.LevelError, "geth's directory: "+r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool { passed.AddAttrs(a); return true })
	return h.to.Handle(ctx, passed)
}

func (h errorsOnly) WithAttrs(attrs []slog.Attr) slog.Handler {
	return errorsOnly{h.to.WithAttrs(attrs)}
}

func (h errorsOnly) WithGroup(name string) slog.Handler { return errorsOnly{h.to.WithGroup(name)} }
