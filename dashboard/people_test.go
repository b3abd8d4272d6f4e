package dashboard

import (
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/dashboard/site"
)

func TestOperatorsLookAfterAccounts(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	operator, own := s.newUser("operator@example.org", account.RoleOperator)
	b, a := s.newUser("a@example.org", account.RoleUser)
	key, err := s.keys.Of(a.ID).Create(t.Context(), account.NewKey{Name: "theirs"})
	if err != nil {
		t.Fatal(err)
	}
	path := "/people/" + a.ID.String()
	operator.get("/people").says(t, 200, "a@example.org", "Registration is open")
	operator.get(path).says(t, 200, "theirs", key.Key.ID.String())

	operator.post(path, url.Values{"do": {"save"}, "role": {"user"}, "per-second": {"5"}, "per-day": {"x"}}).says(t, 422, `id="per-day-error"`, `value="5"`)
	operator.post(path, url.Values{"do": {"save"}, "role": {"user"}, "per-second": {"5"}, "keys": {"3"}}).leads(t, path)
	operator.get("/people").says(t, 200, "5 credits a second, 3 keys")
	operator.post(path, url.Values{"do": {"save"}, "role": {"user"}, "keys": {"10000"}}).leads(t, path)
	b.get("/account").says(t, 200, "1 of at most 10,000")
	operator.post(path, url.Values{"do": {"save"}, "role": {"user"}, "per-second": {"5"}, "keys": {"3"}}).leads(t, path)
	b.get("/account").says(t, 200, "1 of at most 3", "of 5 credits now", "set by an operator for all keys of the account together")

	operator.post(path, url.Values{"do": {"disable"}}).leads(t, path)
	b.get("/keys").leads(t, "/signin?next=%2Fkeys")
	if _, ok := s.keys.Check(key.APIKey); ok {
		t.Error("the key of a disabled account is accepted")
	}
	operator.post(path, url.Values{"do": {"enable"}}).leads(t, path)

	p := operator.post(path, url.Values{"do": {"reset"}, "proof-password": {goodPassword}})
	link := regexp.MustCompile(`<pre id="reset-link">` + s.url + `(/reset\?token=[0-9a-f]+)</pre>`).FindStringSubmatch(p.body)
	if link == nil {
		t.Fatalf("no link in %s", p.text())
	}
	if strings.Contains(operator.get(path).body, link[1]) {
		t.Error("the link is shown again")
	}
	s.browser().get(link[1]).says(t, 200, "Set a new password")

	operator.post("/people/"+own.ID.String(), url.Values{"do": {"disable"}}).says(t, 422, "You cannot disable your own account")
	operator.post("/people/"+own.ID.String(), url.Values{"do": {"save"}, "role": {"user"}}).says(t, 422, `id="role-error"`)
	operator.post(path, url.Values{"do": {"nonsense"}}).says(t, 400)
	operator.get("/people/0000000000000000").says(t, 404)
	operator.get("/people/a@example.org").says(t, 404)
}

// Operators find accounts by a search and in pages.
func TestFindAccounts(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	operator, _ := s.newUser("operator@example.org", account.RoleOperator)
	for i := range 55 {
		if _, _, err := s.accounts.Create(t.Context(), account.NewAccount{Email: fmt.Sprintf("user%02d@example.net", i)}); err != nil {
			t.Fatal(err)
		}
	}
	first := operator.get("/people")
	first.says(t, 200, "1 to 50 of 56", "page=2")
	if n := strings.Count(first.body, `href="/people/`); n != 50 {
		t.Errorf("%d accounts on a page", n)
	}
	operator.get("/people?page=2").says(t, 200, "51 to 56 of 56", "Previous")
	operator.get("/people?page=nonsense&q=USER07").says(t, 200, "user07@example.net", "1 to 1 of 1")
	operator.get("/people?q=nobody").says(t, 200, "No account matches.")
	if _, err := s.accounts.Disable(t.Context(), "user03@example.net"); err != nil {
		t.Fatal(err)
	}
	operator.get("/people?q=disabled+example.net").says(t, 200, "user03@example.net", "1 to 1 of 1")
}

// Operators see the nodes and the store of a network, others do not.
func TestOperatorsNetworks(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	operator, _ := s.newUser("operator@example.org", account.RoleOperator)
	user, _ := s.newUser("user@example.org", account.RoleUser)
	s.upstreams = []site.Upstream{{Name: "node.internal", Head: 1234560, Used: true, Latency: 12 * time.Millisecond}, {Name: "other.internal", Head: 1234567, Why: "connection refused", Failures: 41}}
	s.stored = site.Store{Memory: 1 << 20, Free: new(int64(2 << 30)), CacheHits: 3, CacheMisses: 1}
	at := time.Date(2026, 3, 1, 12, 0, 7, 0, time.UTC)
	for i := range 7 {
		s.events = map[string][]site.Event{"mainnet": append(s.events["mainnet"], site.Event{Time: at, Text: fmt.Sprintf("reorganization (internal %d)", i)})}
	}
	s.events[""] = []site.Event{{Time: at, Level: slog.LevelError, Text: "certificates: internal <trouble>"}}
	operator.get("/networks").says(t, 200, "Recent events", "1 Mar 2026, 12:00:07 UTC", "reorganization (internal 0)", "2 earlier events since", "error</span> certificates: internal &lt;trouble&gt;")
	operator.get("/networks").says(t, 200, "node.internal", "12 ms", ">7<", "connection refused", ">41<", "1.0 MiB in memory; 75.0 % of reads", "2.0 GiB free")
	if p := user.get("/networks"); strings.Contains(p.body, "internal") || strings.Contains(p.body, "free") {
		t.Error("a user sees what is for operators")
	}
}

// Networks that are not served are on the page, with the reason for operators; users see those that
// should be served.
func TestUnservedNetworks(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	operator, _ := s.newUser("operator@example.org", account.RoleOperator)
	user, _ := s.newUser("user@example.org", account.RoleUser)
	s.unserved = []site.Unserved{{Name: "damaged", Why: "a file is internal", Missed: true}, {Name: "halfway", Why: "its import is internal"}}
	operator.get("/networks").says(t, 200, `id="network-damaged"`, "not served: a file is internal", `id="network-halfway"`, "not served: its import is internal")
	p := user.get("/networks")
	p.says(t, 200, `id="network-damaged"`, "not served: operators can see the reason")
	if strings.Contains(p.body, "internal") || strings.Contains(p.body, "halfway") {
		t.Error("a user sees what is for operators")
	}
}
