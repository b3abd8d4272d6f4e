package dashboard

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/dashboard/site"
)

// slowBody is a body during whose transfer something else happens.
type slowBody struct {
	meanwhile func()
	rest      io.Reader
}

func (b *slowBody) Read(p []byte) (int, error) {
	if b.meanwhile != nil {
		b.meanwhile()
		b.meanwhile = nil
	}
	return b.rest.Read(p)
}

// slowly sends a request with the cookies of b, or with a token, whose body arrives after something
// else has happened.
func (b *browser) slowly(path, token, body string, meanwhile func()) page {
	b.s.t.Helper()
	r := httptest.NewRequest(http.MethodPost, b.s.url+path, &slowBody{meanwhile, strings.NewReader(body)})
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
	}
	for _, c := range b.client.Jar.Cookies(r.URL) {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	b.s.handler.ServeHTTP(w, r)
	return page{w.Code, w.Header(), w.Body.String()}
}

// A session that ends while a client still sends a form is not used: a stolen one could otherwise
// outlive a new password, because ending all other sessions begins a new one.
func TestSlowFormsOutliveNoSession(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	at, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	for name, end := range map[string]func(own, other *browser, a account.Account){
		"a new password": func(_, other *browser, _ account.Account) {
			other.post("/account/password", url.Values{"present": {goodPassword}, "password": {"another horse battery"}}).leads(t, "/account")
		},
		"other sessions ended": func(_, other *browser, _ account.Account) { other.post("/account/sessions", nil).leads(t, "/account") },
		"signed out":           func(own, _ *browser, _ account.Account) { own.post("/signout", nil).leads(t, "/") },
		"disabled": func(_, _ *browser, a account.Account) {
			if _, err := s.accounts.Disable(t.Context(), a.ID.String()); err != nil {
				t.Error(err)
			}
		},
	} {
		email := strings.ReplaceAll(name, " ", "-") + "@example.org"
		own, a := s.newUser(email, account.RoleUser)
		other := s.browser()
		other.post("/signin", url.Values{"email": {email}, "password": {goodPassword}}).leads(t, "/")
		p := own.slowly("/account/sessions", "", "", func() { end(own, other, a) })
		p.leads(t, "/signin?next=%2Faccount%2Fsessions")
		response := http.Response{Header: p.header}
		for _, set := range response.Cookies() {
			thief := s.browser()
			thief.client.Jar.SetCookies(at, []*http.Cookie{set})
			thief.get("/account").leads(t, "/signin?next=%2Faccount")
		}
	}
}

// A tab whose page takes long does not end the session of a browser in which another tab has changed the password
// meanwhile: its answer has no cookie, because that of its own session is of no use.
func TestSlowPagesKeepTheNewCookie(t *testing.T) {
	var meanwhile func()
	s := serveWith(t, account.RegistrationOpen, func(_ string, c *site.Config) {
		c.Call = func(_ context.Context, _ site.Call, read func(site.Answer)) {
			meanwhile()
			read(site.Answer{Status: 200, Body: []byte(`{"jsonrpc":"2.0","id":1,"result":"0x1"}`)})
		}
	})
	b, _ := s.newUser("a@example.org", account.RoleUser)
	request := url.Values{"network": {"mainnet"}, "method": {"eth_blockNumber"}, "key": {"session"}, "request": {`{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}`}}
	meanwhile = func() {
		b.post("/account/password", url.Values{"present": {goodPassword}, "password": {"another horse battery"}}).leads(t, "/account")
	}
	b.post("/console", request).says(t, 200, "HTTP 200")
	b.get("/account").says(t, 200, "Your password has changed", "a@example.org")
	meanwhile = func() { b.post("/signout", nil).leads(t, "/") }
	b.post("/console", request).says(t, 200, "HTTP 200")
	b.get("/account").leads(t, "/signin?next=%2Faccount")
}

// A role that ends while a client still sends a form does not count.
func TestSlowFormsOutliveNoRole(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, a := s.newUser("operator@example.org", account.RoleOperator)
	id := a.ID.String()
	p := b.slowly("/people/"+id, "", "do=limits&role=operator", func() {
		if _, err := s.accounts.SetRole(t.Context(), id, account.RoleUser); err != nil {
			t.Error(err)
		}
	})
	p.says(t, http.StatusForbidden, "This page is for operators")

	_, owner := s.newUser("owner@example.org", account.RoleUser)
	team, err := s.accounts.CreateTeam(t.Context(), "Stones", owner.ID)
	if err != nil {
		t.Fatal(err)
	}
	join := func() {
		if _, err := s.accounts.AddMember(t.Context(), team.ID, id, account.TeamOwner); err != nil {
			t.Fatal(err)
		}
	}
	leave := func() {
		if _, err := s.accounts.RemoveMember(t.Context(), team.ID, a.ID); err != nil {
			t.Error(err)
		}
	}
	join()
	b.slowly("/teams/"+team.ID.String()+"/invitations", "", "role=owner&expires=30", leave).says(t, http.StatusNotFound)

	token, made, err := s.accounts.CreateToken(t.Context(), a.ID, "script", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	join()
	b.slowly("/api/v1/teams/"+team.ID.String()+"/keys", token, `{"name":"late"}`, leave).says(t, http.StatusNotFound)
	p = b.slowly("/api/v1/keys", token, `{"name":"late"}`, func() {
		if _, err := s.accounts.RevokeToken(t.Context(), a.ID, made.ID); err != nil {
			t.Error(err)
		}
	})
	p.says(t, http.StatusUnauthorized)
	if all, err := s.keys.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("keys %v are created, %v", all, err)
	}
}
