package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"ashlar/app/recent"

	"github.com/spf13/cobra"
)

// logFlags adds the flags for the log to all commands.
func logFlags(root *cobra.Command) {
	var format, level string
	root.PersistentFlags().StringVar(&format, "log-format", "text", "format of log lines: text or json")
	root.PersistentFlags().StringVar(&level, "log-level", "info", "least level of log lines: debug, info, warn or error")
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		handler, err := logHandler(os.Stderr, format, level)
		if err != nil {
			return fmt.Errorf("%w: %w; see %s --help", errUsage, err, c.CommandPath())
		}
		slog.SetDefault(slog.New(recent.NewHandler(handler)))
		return nil
	}
}

func logHandler(to io.Writer, format, level string) (slog.Handler, error) {
	var options slog.HandlerOptions
	switch level {
	case "debug":
		options.Level = slog.LevelDebug
	case "info":
		options.Level = slog.LevelInfo
	case "warn":
		options.Level = slog.LevelWarn
	case "error":
		options.Level = slog.LevelError
	default:
		return nil, fmt.Errorf("unknown --log-level %q (want debug, info, warn or error)", level)
	}
	switch format {
	case "text":
		return slog.NewTextHandler(to, &options), nil
	case "json":
		options.ReplaceAttr = readableTimes
		return slog.NewJSONHandler(to, &options), nil
	}
	return nil, fmt.Errorf("unknown --log-format %q (want text or json)", format)
}

// readableTimes writes a duration as in the text format, with its unit: JSON would have a number of nanoseconds.
func readableTimes(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
