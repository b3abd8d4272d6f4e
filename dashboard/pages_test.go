package dashboard

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"ashlar/account"
)

// Every page can be rendered, and keeps the rules for all pages.
func TestPages(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	user, _ := s.newUser("somebody@example.org", account.RoleUser)
	operator, other := s.newUser("operator@example.org", account.RoleOperator)
	key, err := s.keys.Of(other.ID).Create(t.Context(), account.NewKey{Name: "a key", Rules: account.Rules{Networks: []string{"mainnet"}, PerSecond: 7}})
	if err != nil {
		t.Fatal(err)
	}
	id := key.Key.ID.String()
	for _, c := range []struct {
		who  *browser
		path string
		want string
	}{
		{s.browser(), "/", "Any block, as if it were the latest."},
		{s.browser(), "/signin", "Sign in"},
		{s.browser(), "/signup", "Create an account"},
		{user, "/", "Three steps to the first answer"},
		{user, "/keys", "You have no key yet"},
		{user, "/keys/new", "Credits a second"},
		{user, "/usage", "No calls in the last 30 days."},
		{user, "/networks", "SN_MAIN"},
		{user, "/networks", "every block from 1,000,000 on; the state from block 1,200,000 on; proofs from block 1,230,000 on"},
		{user, "/console", "eth_getBlockByNumber"},
		{user, "/console?network=starknet", "starknet_blockNumber"},
		{user, "/account", "somebody@example.org"},
		{operator, "/keys", "; 7 a second"},
		{operator, "/keys/" + id, "a key"},
		{operator, "/keys/" + id + "/rotate", "Keep the old key valid for"},
		{operator, "/keys/" + id + "/revoke", "Revoke the key"},
		{user, "/networks", "operators can see the reason"},
		{operator, "/networks", "the node does not answer"},
		{user, "/networks", "The service needs an update: the fork X is scheduled."},
		{operator, "/service", "No calls in the last 24 hours."},
		{operator, "/keys/" + id + "/failures", "No request of this key failed."},
		{operator, "/service?time=90", "Calls a second"},
		{operator, "/people", "somebody@example.org"},
		{operator, "/people/" + other.ID.String(), "Make a link"},
		{operator, "/invitations", "Invite a user"},
		{operator, "/limits", "limits.<wbr>account_<wbr>daily"},
	} {
		p := c.who.get(c.path)
		p.says(t, 200, c.want, `<html lang="en">`, `class="skip"`, `<main id="content"`, "</html>")
		for _, bad := range []string{" style=", "<style", "onclick", "javascript:", "ZgotmplZ", "%!", "<no value>"} {
			if strings.Contains(p.body, bad) {
				t.Errorf("%s: %q is in the page", c.path, bad)
			}
		}
		for _, other := range []string{`src="http`, `href="http`, `src="//`, `href="//`, `action="http`} {
			if strings.Contains(p.body, other) {
				t.Errorf("%s: %q, something from elsewhere", c.path, other)
			}
		}
		if strings.Contains(p.body, key.APIKey) {
			t.Errorf("%s: shows a key", c.path)
		}
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin",
			"Cache-Control": "no-store", "Content-Type": "text/html; charset=utf-8",
		} {
			if got := p.header.Get(name); got != want {
				t.Errorf("%s: %s is %q, expected %q", c.path, name, got, want)
			}
		}
	}
}

// A page without access redirects to the sign-in page, is refused, or is not found.
func TestWhoMaySeeWhat(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	user, _ := s.newUser("somebody@example.org", account.RoleUser)
	_, other := s.newUser("other@example.org", account.RoleUser)
	key, err := s.keys.Of(other.ID).Create(t.Context(), account.NewKey{Name: "not yours"})
	if err != nil {
		t.Fatal(err)
	}
	id := key.Key.ID.String()
	pages := []string{"/keys/" + id, "/keys/" + id + "/rotate", "/keys/" + id + "/revoke"}
	for _, path := range append(pages, "/keys", "/usage", "/usage.csv", "/networks", "/console", "/account", "/people", "/limits") {
		s.browser().get(path).leads(t, "/signin?next="+url.QueryEscape(path))
	}
	for _, path := range append(pages, "/keys/0000000000000000", "/keys/not-an-id", "/keys/not yours", "/nothing", "/assets/nothing.css") {
		p := user.get(strings.ReplaceAll(path, " ", "%20"))
		p.says(t, 404, "Page not found")
		if strings.Contains(p.body, "not yours") {
			t.Errorf("%s shows the name of another account's key", path)
		}
	}
	for _, path := range pages {
		p := user.post(path, url.Values{"name": {"mine now"}, "overlap": {"0"}})
		p.says(t, 404, "Page not found")
		s.browser().post(path, nil).leads(t, "/signin?next="+url.QueryEscape(path))
	}
	if k, err := s.keys.Find(id); err != nil || !k.Live() || k.Name != "not yours" || !k.Rotated.IsZero() {
		t.Errorf("another account's key was changed: %+v, %v", k, err)
	}
	for _, path := range []string{"/service", "/people", "/people/" + other.ID.String(), "/invitations", "/limits"} {
		user.get(path).says(t, 403, "This page is for operators")
	}
	for _, path := range []string{"/people/" + other.ID.String(), "/invitations"} {
		user.post(path, url.Values{"do": {"disable"}}).says(t, 403, "This page is for operators")
	}
	if a, err := s.accounts.Find(other.ID.String()); err != nil || !a.Enabled() {
		t.Errorf("a user who is not an operator disabled an account: %+v, %v", a, err)
	}
}

// A form from another site changes nothing, with or without a session.
func TestFormsOfOtherSites(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	user, a := s.newUser("somebody@example.org", account.RoleUser)
	for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Site", "", "Origin", "https://evil.test"}, {"Sec-Fetch-Site", "", "Origin", "null"}} {
		for _, path := range []string{"/keys/new", "/signin", "/signout", "/account/sessions"} {
			user.post(path, url.Values{"name": {"evil"}}, header...).says(t, 403, "Request from another site")
		}
	}
	if keys, err := s.keys.Of(a.ID).List(t.Context()); err != nil || len(keys) != 0 {
		t.Errorf("keys %+v, %v", keys, err)
	}
	user.get("/keys").says(t, 200)
}

// An internal failure is shown without its cause.
func TestFailuresTellNothing(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	user, _ := s.newUser("somebody@example.org", account.RoleUser)
	s.broken = errors.New("/secret/path is broken")
	for _, path := range []string{"/", "/networks", "/console", "/keys/new"} {
		p := user.get(path)
		p.says(t, 500, "Internal error", "</html>")
		if strings.Contains(p.body, "secret") {
			t.Errorf("%s tells %s", path, p.text())
		}
	}
}

func TestLargeForms(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	user, _ := s.newUser("somebody@example.org", account.RoleUser)
	user.post("/keys/new", url.Values{"methods": {strings.Repeat("a", 256<<10)}}).says(t, 413, "Request too large")
	large := url.Values{"email": {"b@example.org"}, "password": {strings.Repeat("a", 16<<10)}}
	s.browser().post("/signin", large).says(t, 413, "Request too large")
	large.Set("password", strings.Repeat("a", 15<<10))
	s.browser().post("/signin", large).says(t, 422)
	request, err := http.NewRequest(http.MethodPost, s.url+"/console", strings.NewReader("request=%zz"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	user.do(request).says(t, 400, "Unreadable request")
}

func TestAssets(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	home := s.browser().get("/")
	found := regexp.MustCompile(`/assets/[^"]+`).FindAllString(home.body, -1)
	if len(found) < 3 {
		t.Fatalf("the page loads %q, expected a style, a script and an icon", found)
	}
	for _, path := range found {
		p := s.browser().get(path)
		if p.status != 200 || p.body == "" || !strings.Contains(p.header.Get("Cache-Control"), "immutable") || p.header.Get("Content-Type") == "" {
			t.Errorf("%s: %d, %v", path, p.status, p.header)
		}
	}
}
