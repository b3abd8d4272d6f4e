package dashboard

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/dashboard/site"
)

var (
	apiKeyShown   = regexp.MustCompile(`<pre id="api-key">([0-9a-f]{32})</pre>`)
	passwordShown = regexp.MustCompile(`<pre id="api-password">([0-9a-f]{32})</pre>`)
)

// A new key is shown once, with its real URLs and with the rules that were typed.
func TestCreateKey(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, a := s.newUser("a@example.org", account.RoleUser)
	contract := "0x" + strings.Repeat("ab", 20)
	p := b.post("/keys/new", url.Values{
		"name": {" Wallet "}, "networks": {"starknet"}, "methods": {"eth_call\r\nstarknet_*"}, "contracts": {contract},
		"origins": {"https://app.example.org"}, "addresses": {"192.0.2.7, 2001:db8::/32"}, "per-second": {"50"}, "per-day": {"1000000"},
		"expires": {"2100-01-01"}, "guarded": {"yes"},
	})
	p.says(t, 200, "Your new key", "Wallet")
	shown, password := apiKeyShown.FindStringSubmatch(p.body), passwordShown.FindStringSubmatch(p.body)
	if shown == nil || password == nil {
		t.Fatalf("no key or password in %s", p.text())
	}
	port := s.url[strings.LastIndexByte(s.url, ':'):]
	p.says(t, 200, "http://starknet.test"+port+"/v3/"+shown[1], "ws://starknet.test"+port+"/ws/v3/"+shown[1], "starknet.js", "-u :"+password[1])
	if strings.Contains(p.body, "/mainnet/") {
		t.Error("lines for a network that the key may not be used on")
	}
	k, ok := s.keys.Check(shown[1])
	if !ok || k.Owner != a.ID || !k.Accepts(password[1]) || k.Accepts("") || !k.Expires.Equal(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Fatalf("the key is %+v", k)
	}
	var of account.Contract
	if err := of.UnmarshalText([]byte(contract)); err != nil {
		t.Fatal(err)
	}
	want := &account.Rules{
		Networks: []string{"starknet"}, Methods: []string{"eth_call", "starknet_*"}, Contracts: []account.Contract{of}, Origins: []string{"https://app.example.org"},
		Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.7/32"), netip.MustParsePrefix("2001:db8::/32")}, PerSecond: 50, PerDay: 1_000_000,
	}
	if !reflect.DeepEqual(k.Rules, want) {
		t.Errorf("rules %+v, expected %+v", k.Rules, want)
	}
	page := b.get("/keys/" + k.ID.String())
	page.says(t, 200, `value="Wallet"`, "eth_call\nstarknet_*", contract, "192.0.2.7\n2001:db8::/32", `value="2100-01-01"`, `value="starknet" checked`, site.KeyPlace)
	for _, secret := range []string{shown[1], password[1]} {
		if strings.Contains(page.body, secret) {
			t.Error("a secret is shown again")
		}
	}
}

func TestKeyFormsComeBack(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, a := s.newUser("a@example.org", account.RoleUser)
	for _, c := range []struct{ field, typed, want string }{
		{"networks", "unknown", `id="networks-error">&#34;unknown&#34; is not one of these: choose again.`},
		{"methods", "eth call!", `id="methods-error"`},
		{"contracts", "0x12", `id="contracts-error">Invalid contract address &#34;0x12&#34;`},
		{"origins", "example.org", `id="origins-error"`},
		{"origins", "https://app.example.org/", "(want https://app.example.org)"},
		{"addresses", "300.1.1.1", `id="addresses-error">Invalid address &#34;300.1.1.1&#34;`},
		{"per-second", "-1", `id="per-second-error">Expected a whole number from 1 to 4,294,967,295, or leave this empty.`},
		{"per-day", "1e9", `id="per-day-error"`},
		{"expires", "tomorrow", `id="expires-error">Expected a date`},
		{"expires", "2001-01-01", `id="expires-error"`},
		{"name", strings.Repeat("n", 101), `id="name-error"`},
	} {
		t.Run(c.field, func(t *testing.T) {
			p := b.post("/keys/new", url.Values{c.field: {c.typed}})
			p.says(t, 422, c.want, c.typed)
			if unfolded := strings.Contains(p.body, `<details class="fold" open>`); unfolded != (c.field != "name") {
				t.Errorf("the field is shown: %t", unfolded)
			}
		})
	}
	if keys, err := s.keys.Of(a.ID).List(t.Context()); err != nil || len(keys) != 0 {
		t.Errorf("keys were made: %+v, %v", keys, err)
	}
}

func TestChangeRotateAndRevokeAKey(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, a := s.newUser("a@example.org", account.RoleUser)
	first, err := s.keys.Of(a.ID).Create(t.Context(), account.NewKey{Name: "before", Rules: account.Rules{PerSecond: 5}})
	if err != nil {
		t.Fatal(err)
	}
	path := "/keys/" + first.Key.ID.String()
	b.post(path, url.Values{"name": {"after"}, "networks": {"mainnet"}}).leads(t, path)
	b.get(path).says(t, 200, "Saved.", "after")
	if k, ok := s.keys.Check(first.APIKey); !ok || k.Name != "after" || k.Rules.PerSecond != 0 || !reflect.DeepEqual(k.Rules.Networks, []string{"mainnet"}) {
		t.Errorf("changed to %+v", k)
	}
	b.post(path, url.Values{"name": {"after"}, "methods": {"?"}}).says(t, 422, `id="methods-error"`)

	b.post(path+"/rotate", url.Values{"overlap": {"forever"}}).says(t, 422, `id="overlap-error"`)
	p := b.post(path+"/rotate", url.Values{"overlap": {"24"}})
	p.says(t, 200, "Your rotated key", "The old key works until")
	second := apiKeyShown.FindStringSubmatch(p.body)
	if second == nil || second[1] == first.APIKey {
		t.Fatalf("no new key in %s", p.text())
	}
	for _, text := range []string{first.APIKey, second[1]} {
		if _, ok := s.keys.Check(text); !ok {
			t.Errorf("%s is refused during the overlap", text)
		}
	}
	p = b.post(path+"/rotate", url.Values{"overlap": {"0"}})
	if strings.Contains(p.body, "The one before it works") {
		t.Error("the page mentions an overlap that does not exist")
	}
	third := apiKeyShown.FindStringSubmatch(p.body)[1]

	b.get(path+"/revoke").says(t, 200, "Revoke this key?", "cannot be undone")
	if _, ok := s.keys.Check(third); !ok {
		t.Error("the question alone revokes the key")
	}
	b.post(path+"/revoke", nil).leads(t, "/keys")
	b.get("/keys").says(t, 200, "after was revoked.", "1 expired or revoked", "You have no active key.")
	if _, ok := s.keys.Check(third); ok {
		t.Error("a revoked key is accepted")
	}
	b.get(path).says(t, 200, "This key cannot be used")
	b.get(path+"/rotate").says(t, 404)
	b.post(path, url.Values{"name": {"again"}}).says(t, 404)
}

// A restriction to a network stays while that network is not served, until the user removes
// it.
func TestNetworksThatAreNotServed(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, a := s.newUser("a@example.org", account.RoleUser)
	issued, err := s.keys.Of(a.ID).Create(t.Context(), account.NewKey{Name: "before", Rules: account.Rules{Networks: []string{"sepolia"}}})
	if err != nil {
		t.Fatal(err)
	}
	path := "/keys/" + issued.Key.ID.String()
	shown := b.get(path)
	shown.says(t, 200, `name="networks" value="sepolia" checked> sepolia (not served now)`)
	b.post(path, shown.typed("name", "renamed")).leads(t, path)
	if k, ok := s.keys.Check(issued.APIKey); !ok || k.Name != "renamed" || k.Rules.AllowsNetwork("mainnet") || !k.Rules.AllowsNetwork("sepolia") {
		t.Errorf("renamed, it is %+v with the rules %+v", k, k.Rules)
	}
	b.post(path, url.Values{"networks": {"holesky"}}).says(t, 422, `id="networks-error"`)
	b.post(path, url.Values{"networks": {"mainnet"}}).leads(t, path)
	if k, _ := s.keys.Check(issued.APIKey); !reflect.DeepEqual(k.Rules.Networks, []string{"mainnet"}) {
		t.Errorf("changed to %+v", k.Rules)
	}
}

// A rejected form changes nothing, even if its other fields are valid.
func TestRefusedKeyFormsChangeNothing(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, a := s.newUser("a@example.org", account.RoleUser)
	issued, err := s.keys.Of(a.ID).Create(t.Context(), account.NewKey{Name: "before", Rules: account.Rules{Methods: []string{"eth_call"}}})
	if err != nil {
		t.Fatal(err)
	}
	b.post("/keys/"+issued.Key.ID.String(), url.Values{"name": {"after"}, "methods": {""}, "expires": {"2020-01-01"}}).says(t, 422, `id="expires-error"`)
	if k, ok := s.keys.Check(issued.APIKey); !ok || !reflect.DeepEqual(*k, issued.Key) {
		t.Errorf("it was %+v and is %+v", issued.Key, k)
	}
}

// A key whose rules have an origin that no browser sends, from before such were refused, can be renamed. Another such
// origin is refused.
func TestKeyWithAnOldOrigin(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, a := s.newUser("a@example.org", account.RoleUser)
	issued, err := s.keys.Of(a.ID).Create(t.Context(), account.NewKey{Name: "before", Rules: account.Rules{Origins: []string{"https://app.example.org"}}})
	if err != nil {
		t.Fatal(err)
	}
	const unsent = "https://App.example.org"
	k, ok := s.keys.Check(issued.APIKey)
	if !ok {
		t.Fatal("the key is not there")
	}
	k.Rules.Origins[0] = unsent // as it was stored by an older version
	path := "/keys/" + issued.Key.ID.String()
	b.post(path, url.Values{"name": {"after"}, "origins": {unsent + "\nhttps://B.example.org"}}).says(t, 422, `id="origins-error"`, "want https://b.example.org")
	b.post(path, url.Values{"name": {"after"}, "origins": {unsent}}).leads(t, path)
	if k, _ := s.keys.Check(issued.APIKey); k.Name != "after" || !reflect.DeepEqual(k.Rules.Origins, []string{unsent}) {
		t.Errorf("it is %+v", k)
	}
	b.post("/keys/new", url.Values{"origins": {unsent}}).says(t, 422, `id="origins-error"`)
}

// The form shows the day on which a key expires. Saving it unchanged keeps the time of day.
func TestKeysEndWhenTheyDid(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, a := s.newUser("a@example.org", account.RoleUser)
	now := time.Now().UTC().Truncate(time.Second)
	for _, ends := range []time.Time{{}, now.Add(time.Minute), now.Add(48 * time.Hour), time.Date(2100, 1, 1, 6, 3, 0, 0, time.UTC)} {
		issued, err := s.keys.Of(a.ID).Create(t.Context(), account.NewKey{Name: "before", Expires: ends})
		if err != nil {
			t.Fatal(err)
		}
		path := "/keys/" + issued.Key.ID.String()
		b.post(path, b.get(path).typed("name", "after")).leads(t, path)
		if k, _ := s.keys.Check(issued.APIKey); k.Name != "after" || !k.Expires.Equal(ends) {
			t.Errorf("renamed to %q it ends at %v, expected %v", k.Name, k.Expires, ends)
		}
		b.post(path, b.get(path).typed("expires", "2101-02-03")).leads(t, path)
		if k, _ := s.keys.Check(issued.APIKey); !k.Expires.Equal(time.Date(2101, 2, 3, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("on another day it ends at %v", k.Expires)
		}
		b.post(path, b.get(path).typed("expires", "")).leads(t, path)
		if k, _ := s.keys.Check(issued.APIKey); !k.Expires.IsZero() {
			t.Errorf("without an end it ends at %v", k.Expires)
		}
	}
}

// A form in another encoding is rejected, not read as an empty form.
func TestFormsInOtherEncodings(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, a := s.newUser("a@example.org", account.RoleUser)
	typed := url.Values{"name": {"one"}, "methods": {"eth_call"}}
	for _, encoding := range []string{"", "text/plain", "multipart/form-data; boundary=x", "application/json", "x-www-form-urlencoded", "application/x-www-form-urlencoded; ="} {
		b.post("/keys/new", typed, "Content-Type", encoding).says(t, 415, "Unreadable request")
	}
	b.post("/keys", typed, "Content-Type", "application/json").says(t, 404) // which takes no forms
	if keys, err := s.keys.Of(a.ID).List(t.Context()); err != nil || len(keys) != 0 {
		t.Errorf("keys were made: %+v, %v", keys, err)
	}
	b.post("/keys/new", typed, "Content-Type", "application/x-www-form-urlencoded; charset=UTF-8").says(t, 200, "Your new key")
}

func TestAsManyKeysAsThereMayBe(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, a := s.newUser("a@example.org", account.RoleUser)
	if _, err := s.accounts.SetLimits(t.Context(), a.ID.String(), account.Limits{Keys: 1}); err != nil {
		t.Fatal(err)
	}
	b.post("/keys/new", url.Values{"name": {"one"}}).says(t, 200, "Your new key")
	b.post("/keys/new", url.Values{"name": {"two"}}).says(t, 422, "may have at once (1)", `value="two"`)
}

// Changes stay in the store for ever, so too many or too long ones are rejected.
func TestKeysCannotBeChangedForEver(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, a := s.newUser("a@example.org", account.RoleUser)
	issued, err := s.keys.Of(a.ID).Create(t.Context(), account.NewKey{Name: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	path := "/keys/" + issued.Key.ID.String()
	b.post(path, url.Values{"origins": {"https://" + strings.Repeat("a", 300)}}).says(t, 422, `id="origins-error"`, "expected at most 300")
	origins, methods := "", strings.Repeat(strings.Repeat("m", 99)+"\n", 50)
	for i := range 70 {
		origins += fmt.Sprintf("https://%s%d\n", strings.Repeat("a", 200), i)
	}
	b.post(path, url.Values{"origins": {origins}, "methods": {methods}}).says(t, 422, "bytes of rules, expected at most 16384")

	s.stopClock()
	last := b.post(path, url.Values{"per-day": {"1"}})
	for i := 2; last.status == http.StatusSeeOther && i < 1000; i++ {
		last = b.post(path, url.Values{"per-day": {strconv.Itoa(i)}})
	}
	last.says(t, http.StatusTooManyRequests, "Too many changes", "try again in")
	if last.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	b.post("/account/sessions", nil).says(t, http.StatusTooManyRequests, "Too many changes")
	b.post(path+"/revoke", nil).leads(t, "/keys")
}
