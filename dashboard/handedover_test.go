package dashboard

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"ashlar/account"
)

// Somebody else who signs in with the same browser sees nothing of the session before.
func TestSessionOfSomebodyElse(t *testing.T) {
	for name, leave := range map[string]func(s *service, email string) error{
		"the session has ended": func(s *service, email string) error {
			_, other, err := s.accounts.SignIn(s.t.Context(), email, goodPassword, netip.Addr{})
			if err == nil {
				_, _, err = s.accounts.EndSessions(s.t.Context(), other)
			}
			return err
		},
		"the session goes on": func(*service, string) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, account.RegistrationOpen)
			b, a := s.newUser("a@example.org", account.RoleUser)
			s.newUser("b@example.org", account.RoleUser)
			const private = "0x00000000000000000000000000000000000000aa"
			b.post("/console", url.Values{"network": {"mainnet"}, "key": {"session"}, "method": {"eth_blockNumber"}, "request": {`{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["` + private + `"]}`}}).says(t, 200, private)
			b.get("/console?again=0").says(t, 200, private)
			b.post("/signin", url.Values{"email": {"a@example.org"}, "password": {goodPassword}}).leads(t, "/")
			b.get("/console?again=0").says(t, 200, private)
			if err := leave(s, a.Email); err != nil {
				t.Fatal(err)
			}
			b.get("/account")
			b.post("/signin", url.Values{"email": {"b@example.org"}, "password": {goodPassword}}).leads(t, "/")
			if p := b.get("/console?again=0"); p.status != 200 || strings.Contains(p.body, private) {
				t.Errorf("%d, another user sees the request: %t", p.status, strings.Contains(p.body, private))
			}
		})
	}
}
