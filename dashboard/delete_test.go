package dashboard

import (
	"net/url"
	"strings"
	"testing"

	"ashlar/account"
)

// A user deletes the account, given its name, the password and a code of the second factor.
func TestDeleteOwnAccount(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	boss, _ := s.newUser("boss@example.org", account.RoleOperator)
	b, a := s.newUser("a@example.org", account.RoleUser)
	issued, err := s.keys.Of(a.ID).Create(t.Context(), account.NewKey{Name: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	_, recovery := newFactor(t, b)
	b.get("/account").says(t, 200, `href="/account/delete"`)
	b.get("/account/delete").says(t, 200, "1 key stops working at once", "Type a@example.org to confirm", `name="password"`, `name="code"`)
	form := func(name, password, code string) url.Values {
		return url.Values{"name": {name}, "password": {password}, "code": {code}}
	}
	for problem, values := range map[string]url.Values{
		"name-error":     form("b@example.org", goodPassword, recovery[0]),
		"password-error": form("a@example.org", "wrong wrong", recovery[0]),
		"code-error":     form("a@example.org", goodPassword, "000000"),
		"is required":    {},
	} {
		b.post("/account/delete", values).says(t, 422, problem)
	}
	if _, ok := s.keys.Check(issued.APIKey); !ok {
		t.Fatal("the key is rejected already")
	}
	b.post("/account/delete", form("A@example.org", goodPassword, recovery[1])).says(t, 200, "Your account was deleted", "Sign in")
	b.get("/keys").leads(t, "/signin?next=%2Fkeys")
	if _, ok := s.keys.Check(issued.APIKey); ok {
		t.Error("the key is still accepted")
	}
	again := s.browser()
	again.post("/signin", url.Values{"email": {"a@example.org"}, "password": {goodPassword}}).says(t, 422, "is wrong")
	boss.get("/people/"+a.ID.String()).says(t, 404)
	page := boss.get("/audit?account=" + a.ID.String())
	page.says(t, 200, "Delete account "+a.ID.String())
	if strings.Contains(page.body, "127.0.0.1") || strings.Contains(page.body, "a@example.org") {
		t.Errorf("the audit log has personal data: %s", page.text())
	}
}

// An operator deletes other accounts, but not the last operator's.
func TestDeleteOtherAccounts(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	boss, own := s.newUser("boss@example.org", account.RoleOperator)
	b, a := s.newUser("a@example.org", account.RoleUser)
	page := "/people/" + a.ID.String() + "/delete"
	b.get(page).says(t, 403)
	b.post(page, url.Values{"name": {"a@example.org"}}).says(t, 403)
	boss.get("/people/"+a.ID.String()).says(t, 200, page)
	boss.get(page).says(t, 200, "Type a@example.org to confirm")
	boss.post(page, url.Values{"name": {"boss@example.org"}}).says(t, 422, "name-error")
	b.get("/keys").says(t, 200)
	boss.post(page, url.Values{"name": {"a@example.org"}}).says(t, 422, "password-error")
	b.get("/keys").says(t, 200)
	right := url.Values{"name": {"a@example.org"}, "password": {goodPassword}}
	boss.post(page, right).leads(t, "/people")
	boss.get("/people").says(t, 200, "The account a@example.org was deleted.")
	b.get("/keys").leads(t, "/signin?next=%2Fkeys")
	boss.post(page, right).says(t, 404)

	boss.get("/people/"+own.ID.String()+"/delete").leads(t, "/account/delete")
	boss.post("/people/"+own.ID.String()+"/delete", url.Values{"name": {"boss@example.org"}}).leads(t, "/account/delete")
	form := url.Values{"name": {"boss@example.org"}, "password": {goodPassword}}
	boss.post("/account/delete", form).says(t, 422, "the only operator")
	s.newUser("second@example.org", account.RoleOperator)
	boss.post("/account/delete", form).says(t, 200, "Your account was deleted")
}
