// Package recent keeps the last events of each network for operators: the records of the log, of
// level info and above, that have the attribute "network". Records with the attribute "part" are
// about a part of the whole service. Records about the requests of clients are not kept, nor
// are reports of progress.
package recent

import (
	"context"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// The attributes that say what a record is about.
const (
	Network = "network"
	Part    = "part" // of the whole service, such as its certificates
)

// kept is how many events of level info the log keeps of each network and of the service. It keeps
// as many of higher levels, so that frequent events do not displace warnings.
const kept = 50

const (
	maxNetworks = 1000
	maxText     = 600 // bytes
)

// Event is something that happened.
type Event struct {
	Time  time.Time
	Level slog.Level
	Text  string
}

// Log keeps events. It is safe for concurrent use. A nil Log has none.
type Log struct {
	mu sync.Mutex
	by map[string]*events // guarded by mu; by network, "" for the service
}

// events are those of one network, oldest first.
type events struct{ infos, warnings []Event }

// Of returns the log that a logger's handler keeps, nil if that is not a [Handler].
func Of(l *slog.Logger) *Log {
	if h, ok := l.Handler().(*Handler); ok {
		return h.log
	}
	return nil
}

// Of returns the events of a network, newest first; of the service if the name is empty.
func (l *Log) Of(network string) []Event {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.by[network]
	if e == nil {
		return nil
	}
	all := slices.Concat(e.infos, e.warnings)
	slices.SortStableFunc(all, func(a, b Event) int { return b.Time.Compare(a.Time) })
	return all
}

func (l *Log) add(network string, one Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.by[network]
	if e == nil {
		if len(l.by) >= maxNetworks {
			return
		}
		e = new(events)
		l.by[network] = e
	}
	into := &e.infos
	if one.Level >= slog.LevelWarn {
		into = &e.warnings
	}
	*into = append(*into, one)
	if extra := len(*into) - kept; extra > 0 {
		*into = slices.Delete(*into, 0, extra)
	}
}

// Handler passes records on, and keeps those that are events.
type Handler struct {
	inner   slog.Handler
	log     *Log
	about   subject
	grouped bool // attributes are those of a group
}

// NewHandler returns a handler that keeps the events among the records that it passes to inner,
// whatever the least level of inner is.
func NewHandler(inner slog.Handler) *Handler {
	return &Handler{inner: inner, log: &Log{by: make(map[string]*events)}}
}

type progressKey struct{}

// Progress returns a context for records that are not kept as events, because the state of the
// network says the same.
func Progress(ctx context.Context) context.Context {
	return context.WithValue(ctx, progressKey{}, true)
}

// Enabled implements slog.Handler.
func (h *Handler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || h.inner.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	with.inner = h.inner.WithAttrs(attrs)
	with.about.details = slices.Clone(h.about.details)
	for _, a := range attrs {
		with.about.read(a, h.grouped)
	}
	return &with
}

// WithGroup implements slog.Handler.
func (h *Handler) WithGroup(name string) slog.Handler {
	with := *h
	with.inner, with.grouped = h.inner.WithGroup(name), true
	return &with
}

// Handle implements slog.Handler.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelInfo && ctx.Value(progressKey{}) == nil {
		h.keep(r)
	}
	if !h.inner.Enabled(ctx, r.Level) {
		return nil
	}
	return h.inner.Handle(ctx, r)
}

func (h *Handler) keep(r slog.Record) {
	about := h.about
	about.details = slices.Clone(h.about.details)
	r.Attrs(func(a slog.Attr) bool {
		about.read(a, h.grouped)
		return true
	})
	if about.ofRequest || about.network == "" && about.part == "" {
		return
	}
	h.log.add(about.network, Event{r.Time.UTC(), r.Level, about.text(r.Message)})
}

// subject is what the attributes of a record say.
type subject struct {
	network, part string
	ofRequest     bool // the record is about a client's request
	details       []string
	reason        string
}

func (s *subject) read(a slog.Attr, grouped bool) {
	value := a.Value.Resolve().String()
	switch a.Key {
	case Network:
		if !grouped {
			s.network = value
			return
		}
	case Part:
		if !grouped {
			s.part = value
			return
		}
	case "key", "request":
		s.ofRequest = true
	case "error", "because", "why":
		s.reason = value
		return
	}
	s.details = append(s.details, strings.ReplaceAll(a.Key, "_", " ")+" "+value)
}

// users and paths match the user of a URL, and all after its host, which may be secret.
var (
	users = regexp.MustCompile(`\b(https?|wss?)://[^\s/?#"]*@`)
	paths = regexp.MustCompile(`\b(https?|wss?)://([^\s/?#"]*)[/?#][^\s"]*`)
)

// withoutSecrets shortens the URLs in a text to their hosts.
func withoutSecrets(text string) string {
	return paths.ReplaceAllString(users.ReplaceAllString(text, "$1://"), "$1://$2/…")
}

// text returns what people read.
func (s *subject) text(message string) string {
	text := message
	if s.part != "" {
		text = s.part + ": " + text
	}
	if len(s.details) > 0 {
		text += " (" + strings.Join(s.details, ", ") + ")"
	}
	if s.reason != "" {
		text += ": " + s.reason
	}
	text = strings.ToValidUTF8(withoutSecrets(text), "�")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + " …"
	}
	return text
}
