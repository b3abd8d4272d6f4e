package certificate

import (
	"context"
	"log/slog"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// core writes what the library logs to a log of the standard library.
type core struct {
	log    *slog.Logger
	fields []zapcore.Field
}

func newLogger(log *slog.Logger) *zap.Logger { return zap.New(core{log: log}) }

func level(l zapcore.Level) slog.Level {
	switch {
	case l >= zapcore.ErrorLevel:
		return slog.LevelError
	case l == zapcore.WarnLevel:
		return slog.LevelWarn
	case l == zapcore.InfoLevel:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// Enabled implements zapcore.Core.
func (c core) Enabled(l zapcore.Level) bool { return c.log.Enabled(context.Background(), level(l)) }

// With implements zapcore.Core.
func (c core) With(fields []zapcore.Field) zapcore.Core {
	return core{c.log, append(c.fields[:len(c.fields):len(c.fields)], fields...)}
}

// Check implements zapcore.Core.
func (c core) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

// Write implements zapcore.Core.
func (c core) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	values := zapcore.NewMapObjectEncoder()
	for _, field := range append(c.fields[:len(c.fields):len(c.fields)], fields...) {
		field.AddTo(values)
	}
	attrs := make([]slog.Attr, 0, len(values.Fields))
	for name, value := range values.Fields {
		attrs = append(attrs, slog.Any(name, value))
	}
	c.log.LogAttrs(context.Background(), level(entry.Level), "certificate: "+entry.Message, attrs...)
	return nil
}

// Sync implements zapcore.Core.
func (c core) Sync() error { return nil }
