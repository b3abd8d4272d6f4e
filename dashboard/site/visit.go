package site

import (
	"errors"
	"fmt"
	"log/slog"
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
	sessionPending = "pending" // an account.Pending
	sessionNext    = "next"    // path after the code of the second factor
)

// Visit is one request for a page.
type Visit struct {
	Config   *Config
	Sessions *scs.SessionManager
	W        http.ResponseWriter
	R        *http.Request
	Who      *account.Account // the signed-in account, or nil
	Session  account.Session  // of Who
	Chosen                    // the account that the page is about; empty if nobody is signed in

	log   *slog.Logger
	pages *pages
}

// errSignIn means that a page requires a session.
var errSignIn = errors.New("sign in first")

// ErrForm means that a form could not be read.
var ErrForm = errors.New("the form could not be read: it may be too large")

// errEncoding means that a form is not URL-encoded.
var errEncoding = errors.New("the form is in another encoding than application/x-www-form-urlencoded")

// admit identifies the visitor, and returns an error if the visitor may not see the page.
func (v *Visit) admit(p *Page) error {
	if session := v.Sessions.GetString(v.R.Context(), sessionAccount); session != "" {
		switch known, err := v.Config.Accounts.Resume(account.Session(session)); {
		case err == nil:
			v.Who, v.Session = &known, account.Session(session)
		case errors.Is(err, account.ErrSession):
			v.Sessions.Remove(v.R.Context(), sessionAccount)
		default:
			return err
		}
	}
	by := account.Actor{Address: Client(v.R), Via: "dashboard"}
	if v.Who != nil {
		by.Account = v.Who.ID
		v.Chosen = Chosen{v.Who, account.TeamOwner} // also of a page that shows an error
	}
	v.R = v.R.WithContext(account.WithActor(v.R.Context(), by))
	switch {
	case p.access >= people && v.Who == nil:
		return errSignIn
	case p.access == operators && v.Who.Role != account.RoleOperator:
		return errForbidden
	}
	if v.Who != nil {
		chosen, err := Choose(v.Config.Accounts, v.Who, v.R, p.needs)
		if err != nil {
			return err
		}
		v.Chosen = chosen
	}
	return nil
}

// readForm reads the form of a request, if the page takes one. It precedes everything that decides
// what the visitor may do: a client may take a minute to send a form, and a session or a role that
// has ended meanwhile must not count. Any other encoding is rejected, because it would be read as a
// form with every field empty.
func (s *Site) readForm(sessions *scs.SessionManager, p *Page, w http.ResponseWriter, r *http.Request) error {
	if !strings.HasPrefix(r.Pattern, http.MethodPost+" ") {
		return nil
	}
	encoding, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || encoding != "application/x-www-form-urlencoded" {
		return errEncoding
	}
	if !s.signedIn(sessions, r) {
		if p.access != public {
			return nil // it is refused without
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxStrangersForm)
	}
	if err := r.ParseForm(); err != nil {
		return fmt.Errorf("%w: %w", ErrForm, err)
	}
	return nil
}

// signedIn reports whether a request has a session of a signed-in user at the moment.
func (s *Site) signedIn(sessions *scs.SessionManager, r *http.Request) bool {
	cookie, err := r.Cookie(sessions.Cookie.Name)
	if err != nil {
		return false
	}
	ctx, err := sessions.Load(r.Context(), cookie.Value)
	if err != nil {
		return false
	}
	_, err = s.config.Accounts.Resume(account.Session(sessions.GetString(ctx, sessionAccount)))
	return err == nil
}

// Begin signs a visitor in. The session gets a new token, so that an old one that leaked is
// useless, and keeps nothing of another visitor who used the same browser.
func (v *Visit) Begin(session account.Session) error {
	ctx := v.R.Context()
	if v.Who == nil || !session.Of(v.Who.ID) {
		said := v.Sessions.PopString(ctx, sessionSaid)
		if err := v.Sessions.Clear(ctx); err != nil {
			return err
		}
		if said != "" {
			v.Say(said)
		}
	}
	if err := v.Sessions.RenewToken(ctx); err != nil {
		return err
	}
	v.Sessions.Remove(ctx, sessionPending)
	v.Sessions.Remove(ctx, sessionNext)
	v.Sessions.Put(ctx, sessionAccount, string(session))
	v.Sessions.Put(ctx, sessionBegan, time.Now().Unix())
	return nil
}

// Continue replaces the visitor's session by another one of the same account, after a change that
// ends all others. It began, and ends, when the one before did: only a sign-in begins one anew.
func (v *Visit) Continue(session account.Session) error {
	ctx := v.R.Context()
	ends := v.Sessions.Deadline(ctx)
	if err := v.Sessions.RenewToken(ctx); err != nil {
		return err
	}
	v.Sessions.SetDeadline(ctx, ends)
	v.Sessions.Put(ctx, sessionAccount, string(session))
	return nil
}

// Enter finishes an attempt to sign in, whose results are given: it begins a session, or asks
// for a code of the second factor. Then it redirects to a path. Other errors are returned.
func (v *Visit) Enter(session account.Session, err error, next string) error {
	var needed *account.CodeNeeded
	if errors.As(err, &needed) {
		ctx := v.R.Context()
		if err := v.Sessions.RenewToken(ctx); err != nil {
			return err
		}
		v.Sessions.Put(ctx, sessionPending, string(needed.Pending))
		v.Sessions.Put(ctx, sessionNext, next)
		return v.Redirect("/signin/code")
	}
	if err == nil {
		err = v.Begin(session)
	}
	if err != nil {
		return err
	}
	return v.Redirect(next)
}

// Pending returns the sign-in that waits for a code, empty if there is none, and where it leads.
func (v *Visit) Pending() (pending account.Pending, next string) {
	ctx := v.R.Context()
	return account.Pending(v.Sessions.GetString(ctx, sessionPending)), Local(v.Sessions.GetString(ctx, sessionNext))
}

// Began returns when the session began.
func (v *Visit) Began() time.Time {
	return time.Unix(v.Sessions.GetInt64(v.R.Context(), sessionBegan), 0)
}

// Say sets the message that the next page shows.
func (v *Visit) Say(text string) { v.Sessions.Put(v.R.Context(), sessionSaid, text) }

// SayDone sets the message about a change. A restriction that is not durable says so.
func (v *Visit) SayDone(text string, unsaved bool) {
	if unsaved {
		text += " This is in effect, but not yet durable: the service cannot write to its disk at the moment. It tries again until it can."
	}
	v.Say(text)
}

// SayEnded sets the message about a change that ends sessions of an account. Its API tokens go on,
// because scripts use them.
func (v *Visit) SayEnded(text string, id account.ID, unsaved bool) {
	if tokens, err := v.Config.Accounts.Tokens(id); err == nil && len(tokens) == 1 {
		text += " 1 API token still works: revoke it on the page of the account if it may be known to others."
	} else if len(tokens) > 1 {
		text += fmt.Sprintf(" %d API tokens still work: revoke those on the page of the account that may be known to others.", len(tokens))
	}
	v.SayDone(text, unsaved)
}

// Redirect sends the browser to another page.
func (v *Visit) Redirect(to string) error {
	http.Redirect(v.W, v.R, to, http.StatusSeeOther)
	return nil
}

// Show renders a page.
func (v *Visit) Show(status int, name, title string, content any) error {
	f := frame{
		Title: title, Account: v.Who, Chosen: v.Chosen, Content: content,
		SignUp: v.Config.Accounts.Registration() == account.RegistrationOpen,
		Status: v.Config.Status(),
		Mails:  v.Config.Accounts.Mails(),
		Said:   v.Sessions.PopString(v.R.Context(), sessionSaid),
	}
	if v.Config.Provider != nil {
		f.Provider = v.Config.Provider.Name()
	}
	if strings.HasPrefix(v.R.URL.Path, "/docs") {
		f.Docs = v.exactLinks(link{"/docs", "Methods", false}, link{"/docs/requests", "Requests", false}, link{"/docs/errors", "Errors", false}, link{"/docs/limits", "Credits and limits", false})
	}
	if v.Who != nil {
		f.Links, f.Choices = v.navigation(), v.choices()
		if v.Who.Role == account.RoleOperator {
			f.Operator = v.links(link{"/service", "Whole service", false}, link{"/people", "Accounts", false}, link{"/invitations", "Invitations", false}, link{"/limits", "Limits", false}, link{"/audit", "Audit log", false})
		}
	}
	return v.pages.render(v.W, status, name, f)
}

// navigation returns the links to the pages about the chosen account.
func (v *Visit) navigation() []link {
	c := v.Chosen
	if c.Role == "" { // an operator, who does not see the other pages of the team
		c = Chosen{v.Who, account.TeamOwner}
	}
	all := []link{{c.Path("/"), "Overview", false}, {c.Path("/keys"), "Keys", false}, {c.Path("/usage"), "Usage", false}, {c.Path("/networks"), "Networks", false}}
	if c.MayEdit() {
		all = append(all, link{c.Path("/console"), "Console", false})
	}
	if c.Account.IsTeam() {
		all = append(all, link{c.Path("/members"), "Members", false})
	}
	all = append(all, link{"/docs", "Documentation", false}, link{"/teams", "Teams", false}, link{"/account", "Account", false})
	for i, one := range all {
		path, list := v.R.URL.Path, one.Text != "Overview" && one.Text != "Teams" // pages below these are others
		all[i].Here = path == one.Path || list && strings.HasPrefix(path, one.Path+"/")
	}
	return all
}

// ShowPart renders a part of a page.
func (v *Visit) ShowPart(name, part string, content any) error {
	return v.pages.renderPart(v.W, name, part, content)
}

// links marks the entry of the current page.
func (v *Visit) links(all ...link) []link {
	for i, one := range all {
		all[i].Here = v.R.URL.Path == one.Path || one.Path != "/" && strings.HasPrefix(v.R.URL.Path, one.Path+"/")
	}
	return all
}

// exactLinks marks the entry of the current page, but no list that contains it.
func (v *Visit) exactLinks(all ...link) []link {
	for i, one := range all {
		all[i].Here = v.R.URL.Path == one.Path
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
func (v *Visit) fail(err error) {
	if v.R.Context().Err() != nil {
		return // the client has disconnected
	}
	if errors.Is(err, errSignIn) || errors.Is(err, account.ErrSession) {
		// The path of a form leads to its page, too, see formsOnly.
		_ = v.Redirect("/signin?next=" + url.QueryEscape(v.R.URL.RequestURI())) // cannot fail
		return
	}
	f := v.failure(err)
	if err := v.Show(f.Status, "error", f.What, f); err != nil {
		v.log.ErrorContext(v.R.Context(), "render page failed", "error", err)
		http.Error(v.W, "the page could not be rendered", http.StatusInternalServerError)
	}
}

func (v *Visit) failure(err error) failure {
	var soon *account.TooSoon
	var large *http.MaxBytesError
	if f, ok := roleFailure(err); ok {
		return f
	}
	switch {
	case errors.As(err, &soon):
		v.W.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(soon.Wait.Seconds()))))
		return failure{http.StatusTooManyRequests, "Too many " + soon.What, Sentence(soon.Error())}
	case errors.Is(err, account.ErrLetters):
		v.W.Header().Set("Retry-After", "60")
		return failure{http.StatusServiceUnavailable, "Busy", "Too many e-mails are waiting to be sent. Try again in a few minutes."}
	case errors.Is(err, account.ErrBusy):
		v.W.Header().Set("Retry-After", "1")
		return failure{http.StatusServiceUnavailable, "Busy", "Too many people are signing in. Try again in a few seconds."}
	case errors.Is(err, ErrNoPage), errors.Is(err, account.ErrNoTeam), errors.Is(err, account.ErrNoKey), errors.Is(err, account.ErrNoAccount), errors.Is(err, account.ErrNoInvitation):
		return failure{http.StatusNotFound, "Page not found", "It may have moved, or you may not have access to it."}
	case errors.Is(err, errForbidden):
		return failure{http.StatusForbidden, "This page is for operators", "Your account is not an operator’s."}
	case errors.Is(err, errCrossSite):
		return failure{http.StatusForbidden, "Request from another site", "Nothing was changed. Only forms of this dashboard are accepted."}
	case errors.As(err, &large):
		return failure{http.StatusRequestEntityTooLarge, "Request too large", "It is larger than any form of this dashboard."}
	case errors.Is(err, errEncoding):
		return failure{http.StatusUnsupportedMediaType, "Unreadable request", "Forms must be sent as application/x-www-form-urlencoded. Nothing was changed."}
	case errors.Is(err, ErrForm):
		return failure{http.StatusBadRequest, "Unreadable request", "It is not a form of this dashboard."}
	}
	v.log.ErrorContext(v.R.Context(), "a page failed", "page", v.R.Pattern, "error", err)
	return failure{http.StatusInternalServerError, "Internal error", "The error was logged. Try again in a moment."}
}

// StatusOf returns the status of a page with a form.
func StatusOf(f *Form) int {
	if f.OK() {
		return http.StatusOK
	}
	return http.StatusUnprocessableEntity
}

// LinkTo returns a page's full URL, to be sent to a user.
func (v *Visit) LinkTo(path, name, value string) string {
	return v.Config.LinkTo(v.R, path, name, value)
}

// LinkTo is [Visit.LinkTo] for other requests than visits.
func (c *Config) LinkTo(r *http.Request, path, name, value string) string {
	return c.at(r) + path + "?" + name + "=" + url.QueryEscape(value)
}

// at returns the URL of the dashboard, without a final slash.
func (c *Config) at(r *http.Request) string {
	if c.URL != nil {
		if configured := c.URL(); configured != "" {
			return configured
		}
	}
	return Scheme(r) + "://" + r.Host
}
