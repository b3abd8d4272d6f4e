package dashboard

import (
	"net/url"
	"strings"
	"testing"

	"ashlar/account"
)

// Operators see who changed what, of all accounts or of one, in pages.
func TestAudit(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	operator, _ := s.newUser("operator@example.org", account.RoleOperator)
	b, a := s.newUser("a@example.org", account.RoleUser)
	operator.post("/people/"+a.ID.String(), url.Values{"do": {"disable"}}).leads(t, "/people/"+a.ID.String())
	operator.post("/people/"+a.ID.String(), url.Values{"do": {"enable"}}).leads(t, "/people/"+a.ID.String())
	b.get("/audit").leads(t, "/signin?next=%2Faudit")
	page := operator.get("/audit")
	page.says(t, 200, "Disable account "+a.ID.String(), "127.0.0.1", "the shell", "Create account "+a.ID.String())
	if p := operator.get("/audit?account=a@example.org"); strings.Count(p.body, "<tr>") != strings.Count(page.body, "<tr>")-2 || strings.Contains(p.body, "No changes") {
		t.Errorf("of one account: %s", p.text())
	}
	operator.get("/audit?account=nobody@example.org").says(t, 200, "No such account")
	operator.get("/audit?before=1").says(t, 200, "No changes.")
	for range 50 / 2 {
		operator.post("/people/"+a.ID.String(), url.Values{"do": {"disable"}})
		operator.post("/people/"+a.ID.String(), url.Values{"do": {"enable"}})
	}
	operator.get("/audit").says(t, 200, "/audit?account=&amp;before=")
}
