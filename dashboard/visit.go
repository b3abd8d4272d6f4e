package dashboard

import (
	"errors"
	"fmt"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"ashlar/account"

	"github.com/alexedwards/scs/v2"
)

// Keys of a session.
const (
	sessionAccount = "account" // an account.Session
	sessionBegan   = "began"   // Unix seconds
	sessionSaid    = "said"    // message that the next page shows
)

// visit is one request for a page.
type visit struct {
	dashboard *Dashboard
	sessions  *scs.SessionManager
	w         http.ResponseWriter
	r         *http.Request
	who       *account.Account // the signed-in account, or nil
}

// errSignIn means that a page requires a session.
var errSignIn = errors.New("sign in first")

// errForm means that a form could not be read.
var errForm = errors.New("the form could not be read: it may be too large")

// errEncoding means that a form is not URL-encoded.
var errEncoding = errors.New("the form is in another encoding than application/x-www-form-urlencoded")

// admit identifies the visitor, and returns an error if the visitor may not see the page.
func (v *visit) admit(who access) error {
	if session := v.sessions.GetString(v.r.Context(), sessionAccount); session != "" {
		switch known, err := v.dashboard.config.Accounts.Resume(account.Session(session)); {
		case err == nil:
			v.who = &known
		case errors.Is(err, account.ErrSession):
			v.sessions.Remove(v.r.Context(), sessionAccount)
		default:
			return err
		}
	}
	by := account.Actor{Address: client(v.r), Via: "dashboard"}
	if v.who != nil {
		by.Account = v.who.ID
	}
	v.r = v.r.WithContext(account.WithActor(v.r.Context(), by))
	switch {
	case who >= people && v.who == nil:
		return errSignIn
	case who == operators && v.who.Role != account.RoleOperator:
		return errForbidden
	}
	if strings.HasPrefix(v.r.Pattern, http.MethodPost+" ") { // other pages read no form
		return v.readForm()
	}
	return nil
}

// readForm reads the form. Any other encoding is rejected, because it would be read as a
// form with every field empty.
func (v *visit) readForm() error {
	encoding, _, err := mime.ParseMediaType(v.r.Header.Get("Content-Type"))
	if err != nil || encoding != "application/x-www-form-urlencoded" {
		return errEncoding
	}
	if err := v.r.ParseForm(); err != nil {
		return fmt.Errorf("%w: %w", errForm, err)
	}
	return nil
}

// begin signs a visitor in. The session gets a new token, so that an old one that leaked is
// useless.
func (v *visit) begin(session account.Session) error {
	ctx := v.r.Context()
	if err := v.sessions.RenewToken(ctx); err != nil {
		return err
	}
	v.sessions.Put(ctx, sessionAccount, string(session))
	v.sessions.Put(ctx, sessionBegan, time.Now().Unix())
	return nil
}

// began returns when the session began.
func (v *visit) began() time.Time {
	return time.Unix(v.sessions.GetInt64(v.r.Context(), sessionBegan), 0)
}

// say sets the message that the next page shows.
func (v *visit) say(text string) { v.sessions.Put(v.r.Context(), sessionSaid, text) }

// sayDone sets the message about a change. A restriction that is not durable says so.
func (v *visit) sayDone(text string, unsaved bool) {
	if unsaved {
		text += " This is in effect, but not yet durable: the service cannot write to its disk at the moment. It tries again until it can."
	}
	v.say(text)
}

// redirect sends the browser to another page.
func (v *visit) redirect(to string) error {
	http.Redirect(v.w, v.r, to, http.StatusSeeOther)
	return nil
}

// show renders a page.
func (v *visit) show(status int, name, title string, content any) error {
	f := frame{
		Title: title, Account: v.who, Content: content,
		SignUp: v.dashboard.config.Accounts.Registration() == account.RegistrationOpen,
		Status: v.dashboard.config.Status(),
		Mails:  v.dashboard.config.Accounts.Mails(),
		Said:   v.sessions.PopString(v.r.Context(), sessionSaid),
	}
	if strings.HasPrefix(v.r.URL.Path, "/docs") {
		f.Docs = v.exactLinks(link{"/docs", "Methods", false}, link{"/docs/requests", "Requests", false}, link{"/docs/errors", "Errors", false}, link{"/docs/limits", "Credits and limits", false})
	}
	if v.who != nil {
		f.Links = v.links(link{"/", "Overview", false}, link{"/keys", "Keys", false}, link{"/usage", "Usage", false},
			link{"/networks", "Networks", false}, link{"/console", "Console", false}, link{"/docs", "Documentation", false}, link{"/account", "Account", false})
		if v.who.Role == account.RoleOperator {
			f.Operator = v.links(link{"/service", "Whole service", false}, link{"/people", "Accounts", false}, link{"/invitations", "Invitations", false}, link{"/limits", "Limits", false}, link{"/audit", "Audit log", false})
		}
	}
	return v.dashboard.pages.render(v.w, status, name, f)
}

// links marks the entry of the current page.
func (v *visit) links(all ...link) []link {
	for i, one := range all {
		all[i].Here = v.r.URL.Path == one.Path || one.Path != "/" && strings.HasPrefix(v.r.URL.Path, one.Path+"/")
	}
	return all
}

// exactLinks marks the entry of the current page, but no list that contains it.
func (v *visit) exactLinks(all ...link) []link {
	for i, one := range all {
		all[i].Here = v.r.URL.Path == one.Path
	}
	return all
}

// failure is the content of an error page.
type failure struct {
	Status    int
	What, Why string
}

// fail answers with an error page. An error that the visitor did not cause is logged, and
// its text is not shown.
func (v *visit) fail(err error) {
	if v.r.Context().Err() != nil {
		return // the client has disconnected
	}
	if errors.Is(err, errSignIn) {
		to := "/signin"
		if v.r.Method == http.MethodGet {
			to += "?next=" + url.QueryEscape(v.r.URL.RequestURI())
		}
		_ = v.redirect(to) // cannot fail
		return
	}
	f := v.failure(err)
	if err := v.show(f.Status, "error", f.What, f); err != nil {
		v.dashboard.log.ErrorContext(v.r.Context(), "render page failed", "error", err)
		http.Error(v.w, "the page could not be rendered", http.StatusInternalServerError)
	}
}

func (v *visit) failure(err error) failure {
	var soon *account.TooSoon
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &soon):
		v.w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(soon.Wait.Seconds()))))
		return failure{http.StatusTooManyRequests, "Too many " + soon.What, sentence(soon.Error())}
	case errors.Is(err, account.ErrLetters):
		v.w.Header().Set("Retry-After", "60")
		return failure{http.StatusServiceUnavailable, "Busy", "Too many e-mails are waiting to be sent. Try again in a few minutes."}
	case errors.Is(err, account.ErrBusy):
		v.w.Header().Set("Retry-After", "1")
		return failure{http.StatusServiceUnavailable, "Busy", "Too many people are signing in. Try again in a few seconds."}
	case errors.Is(err, errNoPage), errors.Is(err, account.ErrNoKey), errors.Is(err, account.ErrNoAccount), errors.Is(err, account.ErrNoInvitation):
		return failure{http.StatusNotFound, "Page not found", "It may have moved, or you may not have access to it."}
	case errors.Is(err, errForbidden):
		return failure{http.StatusForbidden, "This page is for operators", "Your account is not an operator’s."}
	case errors.Is(err, errCrossSite):
		return failure{http.StatusForbidden, "Request from another site", "Nothing was changed. Only forms of this dashboard are accepted."}
	case errors.As(err, &large):
		return failure{http.StatusRequestEntityTooLarge, "Request too large", "It is larger than any form of this dashboard."}
	case errors.Is(err, errEncoding):
		return failure{http.StatusUnsupportedMediaType, "Unreadable request", "Forms must be sent as application/x-www-form-urlencoded. Nothing was changed."}
	case errors.Is(err, errForm):
		return failure{http.StatusBadRequest, "Unreadable request", "It is not a form of this dashboard."}
	}
	v.dashboard.log.ErrorContext(v.r.Context(), "a page failed", "page", v.r.Pattern, "error", err)
	return failure{http.StatusInternalServerError, "Internal error", "The error was logged. Try again in a moment."}
}

// statusOf returns the status of a page with a form.
func statusOf(f *form) int {
	if f.ok() {
		return http.StatusOK
	}
	return http.StatusUnprocessableEntity
}
