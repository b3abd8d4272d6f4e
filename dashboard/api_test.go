package dashboard

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/dashboard/api"
	"ashlar/dashboard/site"
)

// ask sends a request to the API.
func (b *browser) ask(method, path, token, body string) page {
	b.s.t.Helper()
	request, err := http.NewRequest(method, b.s.url+path, strings.NewReader(body))
	if err != nil {
		b.s.t.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return b.do(request)
}

var tokenShown = regexp.MustCompile(`<pre id="token">(ashlar_[0-9a-f]{48})</pre>`)

// A script with a token does with the account's keys what its user can, and nothing with
// those of others.
func TestAPI(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, a := s.newUser("a@example.org", account.RoleUser)
	_, other := s.newUser("b@example.org", account.RoleOperator)
	theirs, err := s.keys.Of(other.ID).Create(t.Context(), account.NewKey{Name: "theirs"})
	if err != nil {
		t.Fatal(err)
	}
	b.post("/account/tokens", url.Values{"name": {strings.Repeat("n", 101)}, "expires": {"7"}, "password": {goodPassword}}).says(t, 422, `id="name-error">The name has 101 bytes`)
	shown := b.post("/account/tokens", url.Values{"name": {"CI"}, "expires": {"7"}, "password": {goodPassword}})
	found := tokenShown.FindStringSubmatch(shown.body)
	if found == nil {
		t.Fatalf("no token in %s", shown.text())
	}
	token := found[1]
	if strings.Contains(b.get("/account/tokens").body, token) {
		t.Error("the token is shown again")
	}
	script := s.browser() // without cookies
	made := script.ask("POST", "/api/v1/keys", token, `{"name":"wallet","rules":{"perDay":5}}`)
	made.says(t, 201, `"apiKey":"`, `"perDay":5`)
	var issued account.Issued
	if err := json.Unmarshal([]byte(made.body), &issued); err != nil {
		t.Fatal(err)
	}
	path := "/api/v1/keys/" + issued.Key.ID.String()
	if k, ok := s.keys.Check(issued.APIKey); !ok || k.Owner != a.ID {
		t.Errorf("the key %+v", k)
	}
	script.ask("GET", "/api/v1/keys", token, "").says(t, 200, `"wallet"`)
	script.ask("PATCH", path, token, `{"name":"other"}`).says(t, 200, `"name":"other"`, `"perDay":5`)
	script.ask("GET", path, token, "").says(t, 200, `"name":"other"`)
	script.ask("POST", path+"/rotate", token, `{"overlapSeconds":60}`).says(t, 200, `"apiKey":"`, `"overlap":"`)
	script.ask("DELETE", path, token, "").says(t, 200, `"revoked":"`)
	for _, c := range []struct {
		method, path, token, body string
		status                    int
		want                      string
	}{
		{"GET", "/api/v1/keys", "", "", 401, "this token is not valid"},
		{"GET", "/api/v1/keys", token[:len(token)-1] + "x", "", 401, "this token is not valid"},
		{"GET", "/api/v1/keys/" + theirs.Key.ID.String(), token, "", 404, "no such key"},
		{"DELETE", "/api/v1/keys/" + theirs.Key.ID.String(), token, "", 404, "no such key"},
		{"GET", "/api/v1/keys/other", token, "", 404, "no such key"},
		{"POST", "/api/v1/keys", token, `{"nmae":"x"}`, 400, "the body is not valid"},
		{"POST", "/api/v1/keys", token, `{"owner":"` + other.ID.String() + `"}`, 201, `"owner":"` + a.ID.String()},
		{"POST", "/api/v1/keys", token, `{"name":"` + strings.Repeat("n", 101) + `"}`, 422, `"field":"name"`},
		{"POST", path + "/rotate", token, `{"overlapSeconds":-1}`, 422, "overlapSeconds"},
	} {
		if p := script.ask(c.method, c.path, c.token, c.body); p.status != c.status || !strings.Contains(p.body, c.want) {
			t.Errorf("%s %s %s: %d %s, expected %d %s", c.method, c.path, c.body, p.status, p.body, c.status, c.want)
		}
	}
	if p := b.ask("GET", "/api/v1/keys", "", ""); p.status != 401 {
		t.Errorf("with the cookie of a session: %d", p.status)
	}
	tokens, err := s.accounts.Tokens(a.ID)
	if err != nil || len(tokens) != 1 {
		t.Fatalf("tokens %+v, %v", tokens, err)
	}
	entries, err := s.accounts.Audit(t.Context(), account.AuditQuery{Limit: 100, Account: a.ID})
	if err != nil || !slices.ContainsFunc(entries, func(e account.AuditEntry) bool { return e.By.Via == "token" && e.Did == "revoke" }) {
		t.Errorf("the audit log does not show what the token did: %+v, %v", entries, err)
	}
	revoke := "/account/tokens/" + tokens[0].ID + "/revoke"
	b.get("/account/tokens").says(t, 200, `href="`+revoke+`"`)
	b.get(revoke).says(t, 200, "Revoke this token?", tokens[0].Name, "cannot be undone")
	if got := script.ask("GET", "/api/v1/keys", token, ""); got.status != 200 {
		t.Errorf("after the question alone, the token gets %d", got.status)
	}
	b.post(revoke, nil).leads(t, "/account/tokens")
	b.get(revoke).leads(t, "/account/tokens") // it has ended
	script.ask("GET", "/api/v1/keys", token, "").says(t, 401)
}

// A script changes only the version of a key that it has read, if it says so.
func TestChangesOfAVersion(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	_, a := s.newUser("a@example.org", account.RoleUser)
	token, _, err := s.accounts.CreateToken(t.Context(), a.ID, "CI", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	issued, err := s.keys.Of(a.ID).Create(t.Context(), account.NewKey{Name: "k"})
	if err != nil {
		t.Fatal(err)
	}
	script, path := s.browser(), "/api/v1/keys/"+issued.Key.ID.String()
	edit := func(body, match string) page {
		t.Helper()
		request, err := http.NewRequest(http.MethodPatch, s.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer "+token)
		if match != "" {
			request.Header.Set("If-Match", match)
		}
		return script.do(request)
	}
	read := script.ask("GET", path, token, "").header.Get("ETag")
	if len(read) < 10 || read != script.ask("GET", path, token, "").header.Get("ETag") {
		t.Fatalf("ETag %s, which differs without a change or is empty", read)
	}
	first := edit(`{"rules":{"perDay":5}}`, read)
	first.says(t, 200, `"perDay":5`)
	edit(`{"rules":{"perDay":6}}`, read).says(t, 412, "read it again")
	edit(`{"name":"n"}`, `"x", W/`+first.header.Get("ETag")).says(t, 412)
	if k, _ := s.keys.Check(issued.APIKey); k.Name != "k" || k.Rules.PerDay != 5 {
		t.Errorf("a refused change has made it %+v", k)
	}
	edit(`{"rules":{"perDay":7}}`, `"x", `+first.header.Get("ETag")).says(t, 200, `"perDay":7`)
	edit(`{"rules":{"perDay":8}}`, "*").says(t, 200, `"perDay":8`)
	edit(`{"rules":{"perDay":9}}`, "").says(t, 200, `"perDay":9`)
	rotated := script.ask("GET", path, token, "").header.Get("ETag")
	script.ask("POST", path+"/rotate", token, `{"overlapSeconds":60}`).says(t, 200)
	edit(`{"name":"n"}`, rotated).says(t, 412)
	if tag := edit(`{"nmae":"n"}`, "").header.Get("ETag"); tag != "" {
		t.Errorf("an error has the ETag %s", tag)
	}
}

// The OpenAPI document describes the operations that there are, and needs no token.
func TestAPIIsDescribed(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal([]byte(s.browser().get("/api/openapi.json").body), &document); err != nil {
		t.Fatal(err)
	}
	var described, served []string
	for path, operations := range document.Paths {
		for method := range operations {
			if method != "parameters" {
				described = append(described, strings.ToUpper(method)+" "+path)
			}
		}
	}
	for pattern := range api.Handlers(&site.Config{}) {
		if !strings.HasSuffix(pattern, "/api/openapi.json") {
			served = append(served, pattern)
		}
	}
	slices.Sort(described)
	slices.Sort(served)
	if !slices.Equal(described, served) {
		t.Errorf("described %q, served %q", described, served)
	}
}

// A session alone creates no token: it may have leaked, and a token stays valid when it ends.
func TestTokensNeedAProof(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, a := s.newUser("a@example.org", account.RoleUser)
	form := url.Values{"name": {"CI"}, "expires": {"7"}}
	b.get("/account/tokens").says(t, 200, `name="password"`)
	b.post("/account/tokens", form).says(t, 422, `id="password-error"`)
	form.Set("password", "not the password")
	b.post("/account/tokens", form).says(t, 422, "This is not your current password")
	_, recovery := newFactor(t, b)
	form.Set("password", goodPassword)
	b.post("/account/tokens", form).says(t, 422, `id="code-error"`)
	form.Set("code", "0000-0000-0000-0000")
	b.post("/account/tokens", form).says(t, 422, `id="code-error"`)
	if tokens, err := s.accounts.Tokens(a.ID); err != nil || len(tokens) != 0 {
		t.Errorf("tokens without a proof: %+v, %v", tokens, err)
	}
	form.Set("code", recovery[0])
	form.Set("name", strings.Repeat("n", 101))
	b.post("/account/tokens", form).says(t, 422, `id="name-error"`) // and the code was not used
	form.Set("name", "CI")
	if p := b.post("/account/tokens", form); tokenShown.FindString(p.body) == "" {
		t.Errorf("no token in %s", p.text())
	}
}

// A new password ends no token, because scripts use them. The user learns that they go on.
func TestTokensOutliveThePassword(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, a := s.newUser("a@example.org", account.RoleUser)
	text, _, err := s.accounts.CreateToken(t.Context(), a.ID, "CI", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	const left = "1 API token still works: revoke it on the page of the account if it may be known to others."
	b.post("/account/password", url.Values{"present": {goodPassword}, "password": {goodPassword + "!"}}).leads(t, "/account")
	b.get("/account").says(t, 200, left)
	b.post("/account/sessions", nil).leads(t, "/account")
	b.get("/account").says(t, 200, left)
	reset, _, err := s.accounts.Reset(t.Context(), a.Email)
	if err != nil {
		t.Fatal(err)
	}
	other := s.browser()
	other.post("/reset", url.Values{"token": {reset}, "password": {goodPassword}}).leads(t, "/")
	other.get("/").says(t, 200, left)
	if _, err := s.accounts.WithToken(text, netip.Addr{}); err != nil {
		t.Error(err)
	}
}
