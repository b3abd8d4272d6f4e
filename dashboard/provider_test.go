package dashboard

import (
	"bufio"
	"context"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/account/oidc"
	"ashlar/dashboard/site"
	"ashlar/internal/vectors"
	"ashlar/kv/pebble"

	"github.com/alexedwards/scs/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// startProvider starts a real provider that knows the dashboard, and returns its URL.
func startProvider(t *testing.T, dashboard string) string {
	t.Helper()
	modules := filepath.Join(os.Getenv("ASHLAR_CLIENTS"), "node_modules")
	if _, err := os.Stat(filepath.Join(modules, "oidc-provider")); err != nil {
		vectors.Missing(t, "needs the package oidc-provider: set ASHLAR_CLIENTS to a folder with clients, see internal/clients/install.sh")
	}
	command := exec.CommandContext(t.Context(), "node", "testdata/provider.mjs", modules, dashboard+"/signin/provider/back")
	command.Stderr = t.Output()
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait() // it was killed
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "http://") {
			return lines.Text()
		}
	}
	t.Fatal("the provider did not start")
	return ""
}

// startStub starts a provider that names its endpoints and answers no other requests, and returns
// its URL.
func startStub(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		issuer := "http://" + r.Host
		if r.URL.Path != "/.well-known/openid-configuration" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":%q,"token_endpoint":%q,"jwks_uri":%q}`, issuer, issuer+"/auth", issuer+"/token", issuer+"/keys")
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// serveWithProvider serves a dashboard whose users sign in with a real provider.
func serveWithProvider(t *testing.T, policy account.Provided) *service {
	return serveWith(t, account.RegistrationInvited, func(dashboard string, c *site.Config) {
		c.Provider = oidc.New(oidc.Config{Issuer: startProvider(t, dashboard), Client: "ashlar", Secret: "the secret of the client", Name: "Example"})
		c.Provided = policy
	})
}

var formAction = regexp.MustCompile(`<form[^>]* action="([^"]+)"`)

// through signs in at the provider, from a URL of it to where it leads back.
func (b *browser) through(t *testing.T, from, name string) page {
	t.Helper()
	next, form := from, url.Values(nil)
	for range 12 {
		request, err := http.NewRequest(http.MethodGet, next, nil)
		if form != nil {
			request, err = http.NewRequest(http.MethodPost, next, strings.NewReader(form.Encode()))
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		if err != nil {
			t.Fatal(err)
		}
		p := b.do(request)
		if strings.HasPrefix(next, b.s.url) {
			return p
		}
		form = nil
		if to := p.header.Get("Location"); to != "" {
			base, _ := url.Parse(next)
			led, err := base.Parse(to)
			if err != nil {
				t.Fatal(err)
			}
			next = led.String()
			continue
		}
		action := formAction.FindStringSubmatch(p.body)
		if action == nil {
			t.Fatalf("%s: %d %s", next, p.status, p.text())
		}
		base, _ := url.Parse(next)
		to, err := base.Parse(action[1])
		if err != nil {
			t.Fatal(err)
		}
		next, form = to.String(), url.Values{"prompt": {"login"}, "login": {name}, "password": {"any"}}
		if !strings.Contains(p.body, `name="login"`) {
			form.Set("prompt", "consent")
		}
	}
	t.Fatal("the provider does not lead back")
	return page{}
}

// arrive signs in with the provider.
func (b *browser) arrive(t *testing.T, name string) page {
	t.Helper()
	p := b.get("/signin/provider?next=/usage")
	if p.status != http.StatusSeeOther {
		t.Fatalf("%d %s", p.status, p.text())
	}
	return b.through(t, p.header.Get("Location"), name)
}

// Users sign in with a real provider: with an account that has the address, with a new one, and
// not otherwise.
func TestSignInWithProvider(t *testing.T) {
	s := serveWithProvider(t, account.Provided{Create: true, Domains: []string{"example.org"}})
	b := s.browser()
	b.get("/signin?next=/usage").says(t, 200, `href="/signin/provider?next=%2fusage"`, "Sign in with Example")
	b.arrive(t, "new@example.org").leads(t, "/usage")
	p := b.get("/account")
	p.says(t, 200, "new@example.org", "You can sign in with Example", "ask the operator of this service for a link to set a password")
	if strings.Contains(p.body, "/account/password") {
		t.Error("an account without a password can change it")
	}
	b.post("/signout", nil).leads(t, "/")
	b.get("/keys").leads(t, "/signin?next=%2Fkeys")
	b.arrive(t, "new@example.org").leads(t, "/usage") // the provider remembers the user

	s.browser().arrive(t, "somebody@example.net").says(t, 403, "You have no account here")
	s.browser().arrive(t, "unverified@example.org").says(t, 403, "has not verified your e-mail address")
	owner, _ := s.newUser("owner@example.org", account.RoleUser)
	s.browser().arrive(t, "owner@example.org").says(t, 403, "sign in with its password, and connect the provider")
	owner.post("/account/provider", nil).says(t, 422, "This is not your current password")
	connecting := owner.post("/account/provider", url.Values{"provider-password": {goodPassword}})
	connecting.says(t, 200, "Continue to Example")
	link := regexp.MustCompile(`<a class="button primary" href="([^"]+)"`).FindStringSubmatch(connecting.body)
	owner.through(t, html.UnescapeString(link[1]), "owner@example.org").leads(t, "/account")
	owner.get("/account").says(t, 200, "You can now sign in with Example")
	s.browser().arrive(t, "owner@example.org").leads(t, "/usage")
	newFactor(t, owner)
	s.browser().arrive(t, "owner@example.org").leads(t, "/signin/code")
	owner.post("/account/provider/remove", url.Values{"provider-password": {"wrong wrong"}}).says(t, 422, "This is not your current password")
	owner.post("/account/provider/remove", url.Values{"provider-password": {goodPassword}}).leads(t, "/account")
	s.browser().arrive(t, "owner@example.org").says(t, 403, "sign in with its password")

}

// An answer is valid only in the browser that began, and once.
func TestProviderAnswers(t *testing.T) {
	s := serveWithProvider(t, account.Provided{Create: true})
	b, other := s.browser(), s.browser()
	began := b.get("/signin/provider").header.Get("Location")
	u, err := url.Parse(began)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	for _, name := range []string{"state", "nonce", "code_challenge"} {
		if len(query.Get(name)) < 20 {
			t.Errorf("%s is %q", name, query.Get(name))
		}
	}
	if query.Get("code_challenge_method") != "S256" || query.Get("scope") != "openid email" {
		t.Errorf("asked with %s", began)
	}
	answer := fmt.Sprintf("/signin/provider/back?state=%s&code=x", query.Get("state"))
	other.get(answer).says(t, 403, "did not confirm who you are")
	b.get(answer+"&error=access_denied").says(t, 403, "did not confirm who you are")
	b.get(answer).says(t, 403, "did not confirm who you are") // the attempt is over
	began = b.get("/signin/provider").header.Get("Location")
	u, _ = url.Parse(began)
	b.get("/signin/provider/back?code=x&state="+u.Query().Get("state")).says(t, 502, "does not answer as expected")
}

// An account that is connected to an earlier provider is not said to be connected to the present one.
func TestEarlierProvider(t *testing.T) {
	s := serveWith(t, account.RegistrationOpen, func(_ string, c *site.Config) {
		c.Provider = oidc.New(oidc.Config{Issuer: "http://127.0.0.1:1", Client: "ashlar", Secret: "x", Name: "Example"})
	})
	b, _ := s.newUser("a@example.org", account.RoleUser)
	_, session, err := s.accounts.SignIn(t.Context(), "a@example.org", goodPassword, netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	connected := func(issuer string) page {
		t.Helper()
		if _, err := s.accounts.Link(t.Context(), session, oidc.Identity{Issuer: issuer, Subject: "1"}); err != nil {
			t.Fatal(err)
		}
		return b.get("/account")
	}
	if p := connected("http://127.0.0.1:2"); strings.Contains(p.body, "You can sign in with Example") || !strings.Contains(p.body, "Connect it") {
		t.Errorf("connected to an earlier provider: %s", p.text())
	}
	connected("http://127.0.0.1:1").says(t, 200, "You can sign in with Example", "Disconnect it")
}

// noLetters is a Mailer that sends nothing.
type noLetters struct{}

func (noLetters) Queue(func(context.Context) (*account.Letter, error)) error { return nil }

// A user without a password is told to set one before the address can be changed, not asked for it.
func TestAddressWithoutPassword(t *testing.T) {
	store, err := pebble.Open(pebble.Options{Path: "accounts", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s := serveWith(t, account.RegistrationOpen, func(_ string, c *site.Config) {
		var session account.Session
		if c.Accounts, err = account.OpenAccounts(t.Context(), store, account.Config{Mailer: noLetters{}}); err == nil {
			c.Keys, err = account.OpenKeyring(t.Context(), c.Accounts)
		}
		if err == nil {
			_, session, err = c.Accounts.Arrive(t.Context(), oidc.Identity{Issuer: "x", Subject: "1", Email: "a@example.org", Verified: true}, account.Provided{Create: true})
		}
		if err != nil {
			t.Fatal(err)
		}
		until := time.Now().Add(time.Hour)
		stored, err := scs.GobCodec{}.Encode(until, map[string]any{"account": string(session)})
		if err == nil {
			err = c.Sessions.Commit("signed-in", stored, until)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	request, err := http.NewRequest(http.MethodGet, s.url+"/account", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.AddCookie(&http.Cookie{Name: "ashlar", Value: "signed-in"})
	p := s.browser().do(request)
	p.says(t, 200, "a@example.org", `Changing it needs a password, which your account does not have. <a href="/forgot">Set one</a> first.`)
	if strings.Contains(p.body, `name="email-password"`) {
		t.Error("the page asks for a password that there is not")
	}
}

// A user without a password who stays at the provider for long is asked to sign in again, as for other changes that
// outlast the session.
func TestConnectingLate(t *testing.T) {
	var sessions scs.CtxStore
	s := serveWith(t, account.RegistrationInvited, func(dashboard string, c *site.Config) {
		c.Provider = oidc.New(oidc.Config{Issuer: startProvider(t, dashboard), Client: "ashlar", Secret: "the secret of the client", Name: "Example"})
		c.Provided, sessions = account.Provided{Create: true}, c.Sessions
	})
	b := s.browser()
	b.arrive(t, "late@example.org").leads(t, "/usage")
	connecting := b.post("/account/provider", nil)
	connecting.says(t, 200, "Continue to Example")
	link := regexp.MustCompile(`<a class="button primary" href="([^"]+)"`).FindStringSubmatch(connecting.body)
	at, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	var deadline time.Time
	var values map[string]any
	token := ""
	for _, c := range b.client.Jar.Cookies(at) { // the provider has the same host
		if c.Name == "ashlar" {
			token = c.Value
		}
	}
	stored, found, err := sessions.Find(token)
	if err == nil && found {
		deadline, values, err = scs.GobCodec{}.Decode(stored)
	}
	if err != nil || !found {
		t.Fatalf("the session is stored: %t, %v", found, err)
	}
	values["began"] = time.Now().Add(-11 * time.Minute).Unix()
	if stored, err = (scs.GobCodec{}).Encode(deadline, values); err == nil {
		err = sessions.Commit(token, stored, deadline)
	}
	if err != nil {
		t.Fatal(err)
	}
	thief := s.browser() // the provider does not remember, so it asks for a user
	thief.client.Jar.SetCookies(at, []*http.Cookie{{Name: "ashlar", Value: token}})
	thief.through(t, html.UnescapeString(link[1]), "thief@example.org").says(t, 403, "sign out, sign in again, and repeat this within 10 minutes.")
	s.browser().arrive(t, "late@example.org").leads(t, "/usage") // the account is still connected to its user
}

// An answer of the provider that belongs to no sign-in, such as that of an earlier tab, ends none. One
// that does is used once.
func TestProviderInTwoTabs(t *testing.T) {
	provider := startStub(t)
	s := serveWith(t, account.RegistrationInvited, func(_ string, c *site.Config) {
		c.Provider = oidc.New(oidc.Config{Issuer: provider, Client: "ashlar", Name: "Example"})
	})
	b := s.browser()
	begin := func() (back string) {
		t.Helper()
		to, err := url.Parse(b.get("/signin/provider").header.Get("Location"))
		if err != nil || to.Query().Get("state") == "" {
			t.Fatalf("the sign-in continues at %v, %v", to, err)
		}
		return "/signin/provider/back?" + url.Values{"code": {"x"}, "state": {to.Query().Get("state")}}.Encode()
	}
	first, second := begin(), begin()
	b.get(first).says(t, http.StatusForbidden, "did not confirm who you are")
	b.get("/signin/provider/back").says(t, http.StatusForbidden, "did not confirm who you are")
	b.get(second).says(t, http.StatusBadGateway, "does not answer as expected") // asked for tokens
	b.get(second).says(t, http.StatusForbidden, "did not confirm who you are")
}

// The page of a failure is titled by what the attempt was for, whoever is signed in when the provider's answer comes.
func TestTitlesOfProviderFailures(t *testing.T) {
	provider := startStub(t)
	s := serveWith(t, account.RegistrationOpen, func(_ string, c *site.Config) {
		c.Provider = oidc.New(oidc.Config{Issuer: provider, Client: "ashlar", Name: "Example"})
	})
	const signIn, connect = "<h1>Sign in with Example</h1>", "<h1>Connect your account</h1>"
	back := func(to string) string {
		t.Helper()
		u, err := url.Parse(to)
		if err != nil || u.Query().Get("state") == "" {
			t.Fatalf("the attempt continues at %q, %v", to, err)
		}
		return "/signin/provider/back?" + url.Values{"code": {"x"}, "state": {u.Query().Get("state")}}.Encode()
	}
	// titled fails the test unless the page has one of the titles, or neither if want is empty.
	titled := func(p page, status int, want string) {
		t.Helper()
		for _, title := range []string{signIn, connect} {
			if p.status != status || strings.Contains(p.body, title) != (title == want) {
				t.Errorf("status %d, expected %d and %q:\n%s", p.status, status, want, p.text())
			}
		}
	}
	_, a := s.newUser("a@example.org", account.RoleUser)
	b := s.browser()
	signingIn := func() string { return back(b.get("/signin/provider").header.Get("Location")) }
	titled(b.get(signingIn()), http.StatusBadGateway, signIn)

	began := signingIn()
	b.post("/signin", url.Values{"email": {a.Email}, "password": {goodPassword}}).leads(t, "/") // in another tab, which ends the attempt
	titled(b.get(began), http.StatusForbidden, "")

	connecting := b.post("/account/provider", url.Values{"provider-password": {goodPassword}})
	link := regexp.MustCompile(`<a class="button primary" href="([^"]+)"`).FindStringSubmatch(connecting.body)
	if link == nil {
		t.Fatalf("no link in %s", connecting.text())
	}
	began = back(html.UnescapeString(link[1]))
	if _, err := s.accounts.Disable(t.Context(), a.Email); err != nil { // which ends the session
		t.Fatal(err)
	}
	titled(b.get(began), http.StatusBadGateway, connect)
	titled(b.get(began), http.StatusForbidden, "")
}

// While the provider does not answer, the server starts and passwords work.
func TestProviderIsDown(t *testing.T) {
	s := serveWith(t, account.RegistrationOpen, func(_ string, c *site.Config) {
		c.Provider = oidc.New(oidc.Config{Issuer: "http://127.0.0.1:1", Client: "ashlar", Secret: "x", Name: "Example"})
	})
	b, _ := s.newUser("a@example.org", account.RoleUser)
	b.get("/account").says(t, 200, "Connect it")
	b.post("/account/provider", url.Values{"provider-password": {goodPassword}}).says(t, 502, "Example does not answer as expected")
	s.browser().get("/signin/provider").says(t, 502, "sign in with your password")
	plain := serve(t, account.RegistrationOpen)
	plain.browser().get("/signin/provider").says(t, 404)
	plain.browser().get("/signin/provider/back").says(t, 404)
}
