package dashboard

import (
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/alexedwards/scs/v2"
)

const (
	sessionTime = 7 * 24 * time.Hour // maximum age of a session
	idleTime    = 24 * time.Hour     // maximum time between two requests of a session
)

// Dashboard serves the pages. It may be used from many goroutines at once.
type Dashboard struct {
	config Config
	log    *slog.Logger
	pages  *pages
	// Two managers of the same sessions with different cookies: a cookie set over TLS is
	// sent over TLS only.
	plain, secure *scs.SessionManager
	handler       http.Handler
	statuses      statusCache
}

// New returns a dashboard, or an error that names a missing field of config.
func New(config Config) (*Dashboard, error) {
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
	d := &Dashboard{config: config, log: config.Log, pages: pages}
	d.plain, d.secure = d.newSessions("ashlar"), d.newSessions("__Host-ashlar")
	d.secure.Cookie.Secure = true
	mux := http.NewServeMux()
	files.register(mux)
	d.register(mux)
	d.registerAPI(mux)
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(d.page(public, func(*visit) error { return errCrossSite }))
	d.handler = protection.Handler(mux)
	return d, nil
}

func (d *Dashboard) newSessions(cookie string) *scs.SessionManager {
	s := scs.New()
	s.Store = d.config.Sessions
	s.Lifetime, s.IdleTimeout = sessionTime, idleTime
	s.Cookie.Name, s.Cookie.SameSite, s.Cookie.HttpOnly = cookie, http.SameSiteLaxMode, true
	s.ErrorFunc = func(w http.ResponseWriter, r *http.Request, err error) {
		d.log.ErrorContext(r.Context(), "read or write a session failed", "error", err)
		http.Error(w, "sessions are unavailable at the moment", http.StatusServiceUnavailable)
	}
	return s
}

// sessions returns the session manager for a request.
func (d *Dashboard) sessions(r *http.Request) *scs.SessionManager {
	if scheme(r) == "https" {
		return d.secure
	}
	return d.plain
}

// ServeHTTP implements http.Handler.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	r.Body = http.MaxBytesReader(w, r.Body, maxFormBytes)
	d.handler.ServeHTTP(w, r)
}

// access says who may see a page.
type access int

const (
	public    access = iota // everyone
	people                  // signed-in users
	operators               // signed-in operators
)

func (d *Dashboard) register(mux *http.ServeMux) {
	for _, route := range []struct {
		pattern string
		access  access
		serve   func(*visit) error
	}{
		{"GET /{$}", public, (*visit).first},
		{"GET /signin", public, (*visit).signIn},
		{"POST /signin", public, (*visit).signedIn},
		{"POST /signout", public, (*visit).signOut},
		{"GET /signup", public, (*visit).signUp},
		{"POST /signup", public, (*visit).signedUp},
		{"GET /signup/confirm", public, (*visit).confirmation},
		{"POST /signup/confirm", public, (*visit).confirmed},
		{"GET /forgot", public, (*visit).forgot},
		{"POST /forgot", public, (*visit).hasForgotten},
		{"GET /account/confirm", public, (*visit).newAddress},
		{"POST /account/confirm", public, (*visit).confirmAddress},
		{"GET /setup", public, (*visit).setUp},
		{"POST /setup", public, (*visit).wasSetUp},
		{"GET /reset", public, (*visit).reset},
		{"POST /reset", public, (*visit).wasReset},

		{"GET /status", public, (*visit).status},
		{"GET /docs", public, (*visit).docs},
		{"GET /docs/methods/{method}", public, (*visit).docsMethod},
		{"GET /docs/requests", public, (*visit).docsRequests},
		{"GET /docs/errors", public, (*visit).docsErrors},
		{"GET /docs/limits", public, (*visit).docsLimits},

		{"GET /keys", people, (*visit).keys},
		{"GET /keys/new", people, (*visit).newKey},
		{"POST /keys/new", people, (*visit).createKey},
		{"GET /keys/{key}", people, (*visit).key},
		{"POST /keys/{key}", people, (*visit).changeKey},
		{"GET /keys/{key}/rotate", people, (*visit).rotation},
		{"POST /keys/{key}/rotate", people, (*visit).rotateKey},
		{"GET /keys/{key}/revoke", people, (*visit).revocation},
		{"POST /keys/{key}/revoke", people, (*visit).revokeKey},
		{"GET /keys/{key}/failures", people, (*visit).failures},
		{"POST /keys/{key}/failures", people, (*visit).keepParams},
		{"GET /live", people, (*visit).liveNumbers},
		{"GET /usage", people, (*visit).usage},
		{"GET /usage.csv", people, (*visit).usageCSV},
		{"GET /networks", people, (*visit).networks},
		{"GET /console", people, (*visit).console},
		{"POST /console", people, (*visit).send},
		{"GET /console/live", people, (*visit).live},
		{"GET /account", people, (*visit).account},
		{"POST /account/password", people, (*visit).changePassword},
		{"POST /account/email", people, (*visit).changeEmail},
		{"GET /account/tokens", people, (*visit).tokens},
		{"POST /account/tokens", people, (*visit).createToken},
		{"POST /account/tokens/{token}/revoke", people, (*visit).revokeToken},
		{"POST /account/sessions", people, (*visit).endSessions},

		{"GET /service", operators, (*visit).service},
		{"GET /people", operators, (*visit).people},
		{"GET /people/{person}", operators, (*visit).person},
		{"POST /people/{person}", operators, (*visit).changePerson},
		{"GET /audit", operators, (*visit).audit},
		{"GET /invitations", operators, (*visit).invitations},
		{"POST /invitations", operators, (*visit).invite},
		{"POST /invitations/{invitation}/withdraw", operators, (*visit).withdraw},
		{"GET /limits", operators, (*visit).limits},
		{"/", public, func(*visit) error { return errNoPage }},
	} {
		mux.Handle(route.pattern, d.page(route.access, route.serve))
	}
}

// page returns the handler of a page that requires the given access.
func (d *Dashboard) page(who access, serve func(*visit) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sessions := d.sessions(r)
		sessions.LoadAndSave(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "no-store")
			v := &visit{dashboard: d, sessions: sessions, w: w, r: r}
			if err := v.admit(who); err != nil {
				v.fail(err)
			} else if err := serve(v); err != nil {
				v.fail(err)
			}
		})).ServeHTTP(w, r)
	})
}

var (
	errNoPage    = errors.New("no such page")
	errCrossSite = errors.New("the form came from another site")
	errForbidden = errors.New("this page is for operators")
)
