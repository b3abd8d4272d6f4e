package dashboard

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/account/usage"
	"ashlar/dashboard/site"
)

// The overview, the keys and the account show the limit that applies, who set it, its use and
// when it resets, and what calls cost.
func TestLimitsAreShown(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, a := s.newUser("a@example.org", account.RoleUser)
	key, err := s.keys.Of(a.ID).Create(t.Context(), account.NewKey{Name: "k", Rules: account.Rules{PerSecond: 30}})
	if err != nil {
		t.Fatal(err)
	}
	s.used = 1160
	s.lines = []usage.Line{{Time: time.Now(), Key: key.Key.ID, Network: "mainnet", Counts: usage.Counts{Requests: 7, Credits: 7}}}
	of := "<strong>1,160</strong> of 3,000 credits today"
	for path, wants := range map[string][]string{
		"/":                            {"<strong>1,160</strong> of 3,000<", `width="38.7"`, "set by the service for each key", "Resets at 00:00 UTC, in ", "<strong>1,160</strong> of 5,000<", "A call costs from 1 to 20 credits"},
		"/keys":                        {of, `width="38.7"`, "resets at 00:00 UTC, in ", "; 30 a second", "of 5,000 credits", "A call costs from 1 to 20 credits"},
		"/keys/" + key.Key.ID.String(): {of, "of 30 credits now", "set in the key’s rules", "A call costs from 1 to 20 credits", "Also: 1,160 of 5,000 credits today, set by the service for all keys of an account together."},
		"/keys/new":                    {"A call costs from 1 to 20 credits"},
		"/account":                     {"<strong>1,160</strong> of 5,000 credits today", "set by the service for all keys of an account together", "/docs/limits#prices"},
	} {
		p := b.get(path)
		p.says(t, 200, wants...)
		if strings.Contains(p.body, "style=") {
			t.Errorf("%s: a style that the page's policy forbids", path)
		}
	}
}

// One credit, call and key are written in the singular.
func TestOneCredit(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	b, a := s.newUser("a@example.org", account.RoleUser)
	key, err := s.keys.Of(a.ID).Create(t.Context(), account.NewKey{Name: "k", Rules: account.Rules{PerSecond: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.accounts.SetLimits(t.Context(), a.ID.String(), account.Limits{PerSecond: 1, PerDay: 1, Keys: 1}); err != nil {
		t.Fatal(err)
	}
	s.lines = []usage.Line{{Time: time.Now(), Key: key.Key.ID, Network: "mainnet", Counts: usage.Counts{Requests: 1, Credits: 1}}}
	boss, _ := s.newUser("boss@example.org", account.RoleOperator)
	for path, c := range map[string]struct {
		by   *browser
		want string
	}{
		"/keys":                        {b, "<strong>1</strong> credit today"},
		"/keys/" + key.Key.ID.String(): {b, "of 1 credit now"},
		"/account":                     {b, "<strong>1</strong> credit today"},
		"/usage":                       {b, "1 call, 0 % failed; 1 credit;"},
		"/people":                      {boss, "1 credit a second, 1 credit a day, 1 key<"},
	} {
		c.by.get(path).says(t, 200, c.want)
	}
}

// Limits are read of keys that can be used only, because each that is asked for is counted from then on.
func TestLimitsOfEndedKeys(t *testing.T) {
	var asked []account.KeyID
	s := serveWith(t, account.RegistrationOpen, func(_ string, c *site.Config) {
		allowed := c.Allowance
		c.Allowance = func(k *account.Key) account.Allowance {
			asked = append(asked, k.ID)
			return allowed(k)
		}
	})
	b, a := s.newUser("a@example.org", account.RoleUser)
	operator, _ := s.newUser("operator@example.org", account.RoleOperator)
	own := s.keys.Of(a.ID)
	var ended account.KeyID
	for _, name := range []string{"live", "ended"} {
		issued, err := own.Create(t.Context(), account.NewKey{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		ended = issued.Key.ID
	}
	if _, err := own.Revoke(t.Context(), ended.String()); err != nil {
		t.Fatal(err)
	}
	b.get("/keys").says(t, 200, "live", "1 expired or revoked", ended.String())
	operator.get("/people/"+a.ID.String()).says(t, 200, "live", ended.String(), `<td data-label="Credits">–</td>`)
	b.get("/").says(t, 200)
	if len(asked) == 0 || slices.Contains(asked, ended) {
		t.Errorf("the limits of %v were read", asked)
	}
}
