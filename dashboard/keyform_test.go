package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/account/password"
	"ashlar/dashboard/site"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A form that was open while somebody else changed the key changes only what its user has changed. If both have changed
// the same, it is refused and shows what is there now.
func TestKeyFormThatWasOpenForLong(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, a := s.newUser("a@example.org", account.RoleUser)
	expires := time.Date(2100, 1, 1, 6, 3, 0, 0, time.UTC)
	before := account.Rules{
		Networks: []string{"starknet", "mainnet"}, Methods: []string{"eth_call"}, Origins: []string{"https://a.example.org"},
		Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.7/24")}, Contracts: []account.Contract{{1}}, PerSecond: 5, PerDay: 50,
	}
	issued, err := s.keys.Of(a.ID).Create(t.Context(), account.NewKey{Name: "before", Rules: before, Expires: expires})
	if err != nil {
		t.Fatal(err)
	}
	path := "/keys/" + issued.Key.ID.String()
	opened := b.get(path)
	is := func(name string, want account.Rules) {
		t.Helper()
		if k, ok := s.keys.Check(issued.APIKey); !ok || k.Name != name || !k.Expires.Equal(expires) || !reflect.DeepEqual(*k.Rules, want) {
			t.Errorf("it is %q until %v with %+v, expected %q until %v with %+v", k.Name, k.Expires, k.Rules, name, expires, want)
		}
	}
	now := account.Rules{Networks: []string{"mainnet"}, Methods: []string{"eth_*"}, Origins: before.Origins, Addresses: before.Addresses, Contracts: []account.Contract{{2}}, PerSecond: 3}
	name := "other"
	expires = expires.Add(time.Hour)
	if _, err := s.keys.Edit(t.Context(), issued.Key.ID.String(), account.KeyEdit{Name: &name, Rules: &now, Expires: &expires}); err != nil {
		t.Fatal(err)
	}
	sent := opened.typed("origins", "https://b.example.org")
	b.post(path, sent).leads(t, path)
	now.Origins = []string{"https://b.example.org"}
	is("other", now)

	sent = opened.typed("name", "mine")
	sent.Set("addresses", "192.0.2.8")
	sent.Set("per-day", "60")
	refused := b.post(path, sent)
	refused.says(t, 422, "The key was changed while this page was open", `id="name-error">This was changed meanwhile. It is now: other`, `value="mine"`,
		`id="per-day-error">This was changed meanwhile. It is now: nothing`, `value="60"`, "eth_*", "192.0.2.8")
	if strings.Contains(refused.body, `id="addresses-error"`) {
		t.Error("what only this user has changed is marked")
	}
	is("other", now)
	sent = refused.typed("name", "mine")
	wrong := b.post(path, refused.typed("methods", "?"))
	wrong.says(t, 422, `id="methods-error"`)
	wrong.says(t, 422, `value="mine"`, "192.0.2.8") // and what the form showed at first is still known
	if got := wrong.typed("methods", "eth_*"); got.Get("shown") != sent.Get("shown") {
		t.Errorf("shown: %s, expected %s", got.Get("shown"), sent.Get("shown"))
	}
	b.post(path, sent).leads(t, path)
	now.PerDay, now.Addresses = 60, []netip.Prefix{netip.MustParsePrefix("192.0.2.8/32")}
	is("mine", now)
}

// A form that changes the name of a key leaves a limit that another process has just set.
func TestKeyFormLeavesOtherChanges(t *testing.T) {
	store, err := pebble.Open(pebble.Options{Path: "accounts", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	open := func() (*account.Accounts, *account.Keyring) {
		t.Helper()
		quick := password.Params{MemoryKiB: 8, Passes: 1, Lanes: 1}
		accounts, err := account.OpenAccounts(t.Context(), store, account.Config{Registration: account.RegistrationOpen, Password: quick, Shared: true})
		if err != nil {
			t.Fatal(err)
		}
		keys, err := account.OpenKeyring(t.Context(), accounts)
		if err != nil {
			t.Fatal(err)
		}
		return accounts, keys
	}
	accounts, keys := open()
	s := serveWith(t, account.RegistrationOpen, func(_ string, c *site.Config) { c.Accounts, c.Keys = accounts, keys })
	s.accounts, s.keys = accounts, keys
	b, a := s.newUser("a@example.org", account.RoleUser)
	issued, err := keys.Of(a.ID).Create(t.Context(), account.NewKey{Name: "before", Rules: account.Rules{PerSecond: 5}})
	if err != nil {
		t.Fatal(err)
	}
	path := "/keys/" + issued.Key.ID.String()
	shown := b.get(path)
	_, there := open()
	if _, err := there.Restrict(t.Context(), issued.Key.ID.String(), account.Rules{PerSecond: 3}); err != nil {
		t.Fatal(err)
	}
	b.post(path, shown.typed("name", "renamed")).leads(t, path)
	if k, ok := keys.Check(issued.APIKey); !ok || k.Name != "renamed" || k.Rules == nil || k.Rules.PerSecond != 3 {
		t.Errorf("renamed, it is %+v, expected the limit of the other process", k)
	}
}

// What a form claims to have shown is ignored if no key can be like that.
func TestKeyFormClaimsTooMuch(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, a := s.newUser("a@example.org", account.RoleUser)
	issued, err := s.keys.Of(a.ID).Create(t.Context(), account.NewKey{Name: "before"})
	if err != nil {
		t.Fatal(err)
	}
	path := "/keys/" + issued.Key.ID.String()
	sent := b.get(path).typed("per-second", "many")
	var networks []string
	for i := range 101 {
		networks = append(networks, fmt.Sprintf("claimed%d", i))
	}
	claim, err := json.Marshal(map[string]any{"name": "before", "rules": account.Rules{Networks: networks}})
	if err != nil {
		t.Fatal(err)
	}
	sent.Set("shown", string(claim))
	if p := b.post(path, sent); p.status != http.StatusUnprocessableEntity || strings.Contains(p.text(), "claimed") {
		t.Errorf("status %d, expected 422 and none of the claimed networks:\n%s", p.status, p.text())
	}
}
