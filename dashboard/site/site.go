// Package site has what all pages of the dashboard share: visits and sessions, forms, templates
// and assets, and [Config], through which pages reach the rest of the service.
package site

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"ashlar/account/session"

	"github.com/alexedwards/scs/v2"
)

const (
	sessionTime = 7 * 24 * time.Hour // maximum age of a session
	idleTime    = 24 * time.Hour     // maximum time between two requests of a session
)

// Site serves pages. It may be used from many goroutines at once.
type Site struct {
	config *Config
	log    *slog.Logger
	pages  *pages
	// Two managers of the same sessions with different cookies: a cookie set over TLS is
	// sent over TLS only.
	plain, secure *scs.SessionManager
	handler       http.Handler
}

// Page is a page, or the handler of a form.
type Page struct {
	patterns []string // of [http.ServeMux]
	access   access
	needs    Needs // of the role in a team
	serve    func(*Visit) error
}

// Patterns returns the patterns of [http.ServeMux] that lead to the page.
func (p *Page) Patterns() []string { return p.patterns }

// ForAll returns a page that everybody may see.
func ForAll(pattern string, serve func(*Visit) error) Page { return newPage(pattern, public, serve) }

// ForUsers returns a page for signed-in users.
func ForUsers(pattern string, serve func(*Visit) error) Page { return newPage(pattern, people, serve) }

// ForOperators returns a page for signed-in operators.
func ForOperators(pattern string, serve func(*Visit) error) Page {
	return newPage(pattern, operators, serve)
}

func newPage(pattern string, who access, serve func(*Visit) error) Page {
	return Page{patterns: []string{pattern}, access: who, serve: serve}
}

// New returns a site with pages and, by pattern, handlers of requests that are not for pages.
func New(config *Config, all []Page, others map[string]http.Handler) (*Site, error) {
	if config.Log == nil {
		config.Log = slog.Default()
	}
	files, err := newAssets()
	if err != nil {
		return nil, err
	}
	pages, err := newPages(files)
	if err != nil {
		return nil, err
	}
	s := &Site{config: config, log: config.Log, pages: pages}
	s.plain, s.secure = s.newSessions("ashlar"), s.newSessions("__Host-ashlar")
	s.secure.Cookie.Secure = true
	mux := http.NewServeMux()
	files.register(mux)
	for _, p := range slices.Concat(all, formsOnly(all)) {
		for _, pattern := range p.patterns {
			mux.Handle(pattern, s.page(p))
		}
	}
	mux.Handle("/", s.page(ForAll("/", func(*Visit) error { return ErrNoPage })))
	for pattern, handler := range others {
		mux.Handle(pattern, handler)
	}
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(s.page(ForAll("/", func(*Visit) error { return errCrossSite })))
	s.handler = protection.Handler(mux)
	return s, nil
}

func (s *Site) newSessions(cookie string) *scs.SessionManager {
	m := scs.New()
	m.Store = s.config.Sessions
	m.Lifetime, m.IdleTimeout = sessionTime, idleTime
	m.Cookie.Name, m.Cookie.SameSite, m.Cookie.HttpOnly = cookie, http.SameSiteLaxMode, true
	m.ErrorFunc = func(w http.ResponseWriter, r *http.Request, err error) {
		s.log.ErrorContext(r.Context(), "read or write a session failed", "error", err)
		http.Error(w, "sessions are unavailable at the moment", http.StatusServiceUnavailable)
	}
	return m
}

// sessions returns the session manager for a request.
func (s *Site) sessions(r *http.Request) *scs.SessionManager {
	if Scheme(r) == "https" {
		return s.secure
	}
	return s.plain
}

// ServeHTTP implements http.Handler.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	r.Body = http.MaxBytesReader(w, r.Body, maxFormBytes)
	s.handler.ServeHTTP(w, r)
}

// access says who may see a page.
type access int

const (
	public    access = iota // everyone
	people                  // signed-in users; in teams those with a role
	operators               // signed-in operators
)

// page returns the handler of a page.
func (s *Site) page(p Page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(session.Track(r.Context()))
		sessions := s.sessions(r)
		unread := s.readForm(sessions, &p, w, r)
		sessions.LoadAndSave(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "no-store")
			v := &Visit{Config: s.config, Sessions: sessions, W: w, R: r, log: s.log, pages: s.pages}
			if err := v.admit(&p); err != nil {
				v.fail(err)
			} else if unread != nil {
				v.fail(unread)
			} else if err := p.serve(v); err != nil {
				v.fail(err)
			}
		})).ServeHTTP(&answer{w, r}, r)
	})
}

// answer leaves the cookie out of an answer to a request whose session has ended meanwhile: by now, the
// browser may have that of the session that replaced it.
type answer struct {
	http.ResponseWriter
	r *http.Request
}

func (a *answer) checkCookie() {
	if session.EndedMeanwhile(a.r.Context()) {
		a.Header().Del("Set-Cookie")
	}
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	a.checkCookie()
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(b []byte) (int, error) {
	a.checkCookie()
	return a.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

var (
	ErrNoPage    = errors.New("no such page")
	errCrossSite = errors.New("the form came from another site")
	errForbidden = errors.New("this page is for operators")
)
