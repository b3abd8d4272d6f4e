package config

import (
	"strings"
	"testing"
)

// The links of e-mails begin with the dashboard's URL unless they have one of their own, and other links with that if it
// is the only one.
func TestDashboardURL(t *testing.T) {
	const (
		dashboard = "dashboard: {hosts: [a.test], url: 'https://A.test/'}\n"
		mail      = "accounts: {mail: {server: 'm.test:25', from: a@a.test}}\n"
		linked    = "accounts: {mail: {server: 'm.test:25', from: a@a.test, link: 'https://b.test'}}\n"
	)
	for text, want := range map[string]struct{ links, inMails string }{
		"":                 {"", ""},
		dashboard:          {"https://A.test", ""},
		dashboard + mail:   {"https://A.test", "https://A.test/"},
		dashboard + linked: {"https://A.test", "https://b.test"},
		linked:             {"https://b.test", "https://b.test"},
	} {
		c, err := loadText(t, text)
		if err != nil || c.DashboardURL() != want.links || c.Accounts.Mail.Link != want.inMails {
			t.Errorf("%q: links begin with %q, those in e-mails with %q, %v, expected %+v", text, c.DashboardURL(), c.Accounts.Mail.Link, err, want)
		}
	}
	for _, hosts := range []string{"['*']", "['[::1]']"} {
		if _, err := loadText(t, "dashboard: {hosts: "+hosts+", url: 'https://[::1]:8443'}\n"); err != nil {
			t.Errorf("at %s: %v", hosts, err)
		}
	}
}

// A wrong URL is reported once, not also as the link of e-mails, which was not written.
func TestWrongDashboardURL(t *testing.T) {
	_, err := loadText(t, "dashboard: {hosts: [a.test], url: a.test}\naccounts: {mail: {server: 'm.test:25', from: a@a.test}}\n")
	if err == nil || !strings.Contains(err.Error(), "dashboard.url: invalid URL") || strings.Contains(err.Error(), "accounts.mail") {
		t.Errorf("got %v", err)
	}
}
