package dashboard

import (
	"strings"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/account/usage"
	"ashlar/dashboard/site"
)

// The status page shows networks that should be served and are not, without the reason.
func TestStatusOfUnservedNetworks(t *testing.T) {
	s := serve(t, account.RegistrationClosed)
	s.public = true
	s.unserved = []site.Unserved{{Name: "damaged", Why: "a file is internal", Missed: true}, {Name: "halfway", Why: "its import is internal"}}
	p := s.browser().get("/status")
	p.says(t, 200, "mainnet", "damaged", `<span class="badge bad">not served</span>`)
	if strings.Contains(p.body, "internal") || strings.Contains(p.body, "halfway") {
		t.Error("the page shows what is not public")
	}
}

// The status page needs no account, exists only if it is enabled, and shows shares, not
// numbers of calls.
func TestStatus(t *testing.T) {
	s := serve(t, account.RegistrationClosed)
	today := site.Day(time.Now())
	s.lines = []usage.Line{
		{Time: today, Network: "mainnet", Counts: usage.Counts{Requests: 98765, Errors: 1, Time: 98765 * time.Millisecond}},
		{Time: today.AddDate(0, 0, -1), Network: "mainnet", Counts: usage.Counts{Requests: 100, Errors: 30}},
		{Time: today.AddDate(0, 0, -90), Network: "mainnet", Counts: usage.Counts{Requests: 1e9, Errors: 1e9}},
		{Time: today, Network: "starknet", Counts: usage.Counts{Requests: 100, Errors: 7}},
	}
	b := s.browser()
	b.get("/status").says(t, 404)
	if strings.Contains(b.get("/").body, "/status") {
		t.Error("the home page links to a page that does not exist")
	}
	s.public = true
	p := b.get("/status")
	p.says(t, 200, "mainnet", "1,234,567", "not following", "&lt; 0.1 %", "7.0 %", `<rect class="bad" x="880"`, `<rect class="good" x="890"`, `<rect class="warn" x="890"`, `<rect class="none" x="0"`)
	if strings.Contains(p.body, "98,765") || strings.Contains(p.body, "the node does not answer") {
		t.Error("the page shows what is not public")
	}
	b.get("/").says(t, 200, `href="/status"`)
	s.lines = nil
	b.get("/status").says(t, 200, `<rect class="bad"`) // not read again so soon
}
