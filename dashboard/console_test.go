package dashboard

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/dashboard/site"
)

// The console sends the typed request with a key or with the session, and shows the answer.
func TestConsole(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, a := s.newUser("a@example.org", account.RoleUser)
	_, other := s.newUser("b@example.org", account.RoleUser)
	key, err := s.keys.Of(a.ID).Create(t.Context(), account.NewKey{Name: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := s.keys.Of(other.ID).Create(t.Context(), account.NewKey{Name: "theirs"})
	if err != nil {
		t.Fatal(err)
	}
	request := `{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}`
	for _, c := range []struct {
		name, key string
		want      account.KeyID
	}{
		{"a key", key.Key.ID.String(), key.Key.ID},
		{"the session", "session", account.KeyID(a.ID)},
		{"another account's key", theirs.Key.ID.String(), account.KeyID(a.ID)},
		{"nonsense", "nonsense", account.KeyID(a.ID)},
	} {
		b.post("/console", url.Values{"network": {"mainnet"}, "key": {c.key}, "request": {request}}).says(t, 200, "HTTP 200", `&#34;result&#34;: &#34;0x1&#34;`)
		call := s.called[len(s.called)-1]
		if call.Network != "mainnet" || call.Key.ID != c.want || call.Key.Owner != a.ID || string(call.Request) != request || !call.Client.IsLoopback() {
			t.Errorf("%s: called %+v with key %s", c.name, call, call.Key.ID)
		}
	}
	s.answer = site.Answer{Status: 429, Body: []byte(`{"error":{"message":"<script>"}}`), Retry: 1500 * time.Millisecond}
	p := b.post("/console", url.Values{"request": {request}})
	p.says(t, 200, "HTTP 429", "may be tried again after 1.5 s", "&lt;script&gt;")
	// An error within an answer does not make the HTTP status look like one.
	for body, want := range map[string]string{
		`{"id":1,"error":{"code":-32602,"message":"missing"}}`: `<span class="badge ">HTTP 200</span> <span class="badge bad">error -32602</span>`,
		`[{"id":1,"result":1},{"id":2,"error":{"code":3}}]`:    `<span class="badge ">HTTP 200</span> <span class="badge bad">1 of 2 calls failed</span>`,
		`{"id":1,"result":{"error":{"code":3}}}`:               `<span class="badge good">HTTP 200</span> `,
	} {
		s.answer = site.Answer{Status: 200, Body: []byte(body)}
		b.post("/console", url.Values{"request": {request}}).says(t, 200, want)
	}
	s.answer = site.Answer{Status: 200, Body: []byte(strings.Repeat("é", 256<<10))}
	b.post("/console", url.Values{"request": {request}}).says(t, 200, "The first 256.0 KiB are shown.")
	s.answer = site.Answer{Status: 200}
	b.post("/console", url.Values{"request": {request}}).says(t, 200, "the request was a notification")
	b.post("/console", url.Values{"request": {" "}}).says(t, 422, `id="request-error"`)
}

var requestShown = regexp.MustCompile(`(?s)<textarea id="request"[^>]*>\n(.*?)</textarea>`)

// The examples that the console shows can be sent unchanged.
func TestExamplesAreRequests(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, _ := s.newUser("a@example.org", account.RoleUser)
	for _, path := range []string{"/console", "/console?network=starknet", "/console?network=mainnet&method=eth_blockNumber", "/console?network=none&method=none&key=none"} {
		p := b.get(path)
		p.says(t, 200)
		shown := requestShown.FindStringSubmatch(p.body)
		var request struct{ Method string }
		if shown == nil || json.Unmarshal([]byte(strings.ReplaceAll(shown[1], "&#34;", `"`)), &request) != nil || request.Method == "" {
			t.Errorf("%s begins with %q", path, shown)
		}
	}
	b.get("/console?network=mainnet&method=eth_getBlockByNumber").says(t, 200, "&#34;0x12d687&#34;", "Returns what eth_getBlockByNumber returns.")
}
