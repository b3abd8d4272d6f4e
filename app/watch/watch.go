// Package watch writes logs and traces of the requests that a gateway answers.
package watch

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"ashlar/gateway"
)

// Log returns a watcher that logs all requests, if all is set, and as warnings those that
// took at least slow, unless slow is 0.
func Log(log *slog.Logger, all bool, slow time.Duration) gateway.Watcher {
	return func(ctx context.Context, w *gateway.Watched) {
		level, message := slog.LevelInfo, "request"
		if slow > 0 && w.Took >= slow {
			level, message = slog.LevelWarn, "slow request"
		} else if !all {
			return
		}
		log.LogAttrs(ctx, level, message,
			slog.String("network", w.Network), slog.String("key", w.Key.String()),
			slog.String("method", methods(w)), slog.Int("calls", w.Total), slog.Int("code", firstCode(w)),
			slog.Duration("took", w.Took), slog.Int("asked_bytes", w.Asked), slog.Int("answered_bytes", w.Answered),
		)
	}
}

// Join returns a watcher that calls all watchers that are not nil, or nil if there is none.
func Join(watchers ...gateway.Watcher) gateway.Watcher {
	var all []gateway.Watcher
	for _, w := range watchers {
		if w != nil {
			all = append(all, w)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return func(ctx context.Context, w *gateway.Watched) {
		for _, watch := range all {
			watch(ctx, w)
		}
	}
}

// methods returns the methods of a request, each once, in the order of their first calls.
func methods(w *gateway.Watched) string {
	if len(w.Calls) == 1 {
		return name(w.Calls[0].Method)
	}
	var names []string
	seen := make(map[string]bool)
	for _, c := range w.Calls {
		if n := name(c.Method); !seen[n] {
			seen[n] = true
			names = append(names, n)
		}
	}
	return strings.Join(names, ",")
}

// name returns the name of a method, of which clients cannot choose the text.
func name(method string) string {
	if method == "" {
		return "unknown"
	}
	return method
}

// firstCode returns the code of the first call that failed, or 0. A request without a call
// that could be run has no code.
func firstCode(w *gateway.Watched) int {
	for _, c := range w.Calls {
		if c.Code != 0 {
			return c.Code
		}
	}
	return 0
}

// codeText returns a code for an attribute of a trace.
func codeText(code int) string { return "code " + strconv.Itoa(code) }
