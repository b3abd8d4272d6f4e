package dashboard

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/account/failures"
	"ashlar/account/usage"
	"ashlar/dashboard/keys"
)

// Failures are charted by cause beside the other errors by code, and each leads to its remedy.
func TestFailuresAreExplained(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, a := s.newUser("a@example.org", account.RoleUser)
	key, err := s.keys.Of(a.ID).Create(t.Context(), account.NewKey{Name: "k"})
	if err != nil {
		t.Fatal(err)
	}
	id := key.Key.ID.String()
	refused := make(map[usage.Cause]uint64)
	for _, cause := range usage.Causes() {
		refused[cause] = 1
	}
	s.lines = []usage.Line{{Time: time.Now(), Key: key.Key.ID, Network: "mainnet", Method: "eth_call", Counts: usage.Counts{
		Requests: 100, Errors: 14, Refused: refused, Codes: map[int]uint64{3: 2, -32602: 1, -38014: 1, 0: 1},
	}}}
	p := b.get("/usage?time=day")
	p.says(t, 200, "Refused, by cause", "Call errors, by code", `href="/docs/errors#reverted"`, `href="/docs/errors#params"`, `href="/docs/errors#funds"`, "other codes", `href="/keys/`+id+`/failures">14<`)
	for field, remedy := range map[string]string{
		"limits": "raise the limit", keys.FieldOrigins: "Add the origin", keys.FieldAddresses: "Add the address", keys.FieldNetworks: "Add the network",
		keys.FieldMethods: "Add the method", keys.FieldContracts: "Add the contract",
	} {
		if !strings.Contains(p.body, `<a href="/keys/`+id+`#`+field+`">`) || !strings.Contains(p.body, remedy) {
			t.Errorf("%q does not lead to the field %s of the key", remedy, field)
		}
	}
	keyPage := b.get("/keys/" + id)
	for _, field := range []string{"limits", keys.FieldOrigins, keys.FieldAddresses, keys.FieldNetworks, keys.FieldMethods, keys.FieldContracts} {
		keyPage.says(t, 200, `id="`+field+`"`)
	}
	b.get("/").says(t, 200, "14 of 100 calls failed", "What to do")

	// Failures of several keys lead to the list of keys.
	other := s.lines[0]
	other.Key = account.KeyID(a.ID)
	s.lines = append(s.lines, other)
	if p := b.get("/usage?time=day"); strings.Contains(p.body, `href="/keys/`+id+`#limits"`) || !strings.Contains(p.body, `<a href="/keys">Wait`) {
		t.Error("a remedy for several keys leads to one of them")
	}
}

// The last failed requests of a key are private to its account, and their parameters are shown
// only once the owner has asked for it.
func TestFailedRequests(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, a := s.newUser("a@example.org", account.RoleUser)
	stranger, _ := s.newUser("b@example.org", account.RoleOperator)
	key, err := s.keys.Of(a.ID).Create(t.Context(), account.NewKey{Name: "k"})
	if err != nil {
		t.Fatal(err)
	}
	path := "/keys/" + key.Key.ID.String() + "/failures"
	add := func() {
		s.failed.Add(key.Key.ID, failures.Failure{Network: "mainnet", Method: "eth_call", Code: 3, Message: "execution reverted: <b>", Took: 1500 * time.Microsecond, Origin: "https://a.test"}, []byte(`["<i>"]`))
	}
	b.get(path).says(t, 200, "No request of this key failed.")
	add()
	s.failed.Add(key.Key.ID, failures.Failure{Network: "mainnet", Code: -32005, Message: "daily quota exceeded", Cause: usage.Quota}, nil)
	p := b.get(path)
	p.says(t, 200, "execution reverted: &lt;b&gt;", "1.5 ms", "https://a.test", `href="/docs/errors#reverted"`, `<span class="badge warn">quota</span>`, "#limits", "Keep parameters for an hour")
	if strings.Contains(p.body, "&lt;i&gt;") {
		t.Error("parameters are shown that the owner has not asked for")
	}
	for _, who := range []*browser{stranger, s.browser()} {
		if p := who.get(path); p.status == 200 || strings.Contains(p.body, "reverted") {
			t.Errorf("somebody else sees %s", p.text())
		}
		who.post(path, url.Values{"params": {"keep"}})
	}
	if !s.failed.ParamsUntil(key.Key.ID).IsZero() {
		t.Error("somebody else has asked for the parameters")
	}
	b.post(path, url.Values{"params": {"keep"}}).leads(t, path)
	add()
	b.get(path).says(t, 200, "&lt;i&gt;", "Parameters are kept until", "Stop and delete the parameters")
	b.post(path, url.Values{"params": {"forget"}}).leads(t, path)
	if p := b.get(path); strings.Contains(p.body, "&lt;i&gt;") {
		t.Error("deleted parameters are shown")
	}
	b.post(path, url.Values{"params": {"else"}}).says(t, 400)
}

// The live numbers are those of the last minutes, and can be read alone.
func TestLiveNumbers(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, a := s.newUser("a@example.org", account.RoleUser)
	s.browser().get("/live").leads(t, "/signin?next=%2Flive")
	b.get("/").says(t, 200, "Three steps to the first answer")
	s.lines = []usage.Line{
		{Time: time.Now().Truncate(time.Minute), Key: account.KeyID(a.ID), Network: "mainnet", Counts: usage.Counts{Requests: 60, Errors: 3, Credits: 1200, Latency: [usage.Buckets]uint64{3: 60}}},
		{Time: time.Now().Add(-10 * time.Minute), Key: account.KeyID(a.ID), Network: "mainnet", Counts: usage.Counts{Requests: 7000}},
		{Time: time.Now(), Key: account.KeyID{9}, Network: "mainnet", Counts: usage.Counts{Requests: 8000}},
	}
	p := b.get("/live")
	p.says(t, 200, "60 in 5 minutes", "5.0 %", "3 calls", "1,200 in 5 minutes", "p95 2.9 ms")
	if strings.Contains(p.body, "<html") {
		t.Error("the live numbers are a whole page")
	}
	b.get("/?time=hour").says(t, 200, `data-live="/live"`, "60 in 5 minutes", "Calls per minute")
}
