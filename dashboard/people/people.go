// Package people serves the pages with which operators manage accounts and invitations, and the
// audit log.
package people

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"ashlar/account"
	"ashlar/account/usage"
	"ashlar/dashboard/keys"
	"ashlar/dashboard/site"
)

// Pages lists the pages of this package.
func Pages() []site.Page {
	return []site.Page{
		site.ForOperators("GET /people", list),
		site.ForOperators("GET /people/{person}", show),
		site.ForOperators("POST /people/{person}", changePerson),
		site.ForOperators("GET /people/{person}/delete", showDeletion),
		site.ForOperators("POST /people/{person}/delete", deletePerson),
		site.ForOperators("GET /audit", showAudit),
		site.ForOperators("GET /invitations", listInvitations),
		site.ForOperators("POST /invitations", invite),
		site.ForOperators("GET /invitations/{invitation}/withdraw", askWithdrawal),
		site.ForOperators("POST /invitations/{invitation}/withdraw", withdraw),
	}
}

// peoplePage is the data of the template people.
type peoplePage struct {
	People       []personLine
	Registration string
	Query        string
	Found        int    // that match the query
	From, To     int    // positions of those on this page, from 1
	Before, Next string // links to the neighbouring pages; empty if there are none
}

type personLine struct {
	Account account.Account
	Kind    string // role, or team
	Keys    int    // usable ones
	Limits  string
	Calls   uint64 // of today
	Credits uint64 // of today
}

// peoplePerPage is the number of accounts on a page.
const peoplePerPage = 50

func list(v *site.Visit) error {
	config := v.Config
	accounts, err := config.Accounts.List(v.R.Context())
	if err != nil {
		return err
	}
	all, err := config.Keys.List(v.R.Context())
	if err != nil {
		return err
	}
	query := v.R.URL.Query()
	p := peoplePage{Registration: registrationName(config.Accounts.Registration()), Query: strings.TrimSpace(query.Get("q"))}
	accounts = slices.DeleteFunc(accounts, func(a account.Account) bool { return !matchesAccount(&a, p.Query) })
	p.page(len(accounts), query.Get("page"))
	byOwner := make(map[account.ID][]account.Key)
	for _, k := range all {
		byOwner[k.Owner] = append(byOwner[k.Owner], k)
	}
	now := time.Now()
	for _, a := range accounts[max(0, p.From-1):p.To] {
		line := personLine{Account: a, Kind: kindOf(&a), Limits: accountLimits(a.Limits), Keys: keys.Usable(byOwner[a.ID], now)}
		lines, err := config.Usage.Read(v.R.Context(), usage.Query{Keys: keys.IDs(a.ID, byOwner[a.ID], site.Day(now)), From: site.Day(now), To: now})
		if err != nil {
			return err
		}
		for _, l := range lines {
			line.Calls, line.Credits = line.Calls+l.Requests, line.Credits+l.Credits
		}
		p.People = append(p.People, line)
	}
	return v.Show(200, "people", "Accounts", p)
}

// matchesAccount reports whether an account's address or name, role or ID contains every word of
// a search; "disabled" finds those that are, "team" teams.
func matchesAccount(a *account.Account, query string) bool {
	text := strings.ToLower(a.Label()) + " " + kindOf(a) + " " + a.ID.String()
	if !a.Enabled() {
		text += " disabled"
	}
	for word := range strings.FieldsSeq(strings.ToLower(query)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// kindOf returns the role of an account; that of a team is "team".
func kindOf(a *account.Account) string {
	if a.IsTeam() {
		return "team"
	}
	return string(a.Role)
}

// page selects a page of so many accounts.
func (p *peoplePage) page(found int, asked string) {
	last := max(1, (found+peoplePerPage-1)/peoplePerPage)
	n, _ := strconv.Atoi(asked) // the first page for what is not a number
	n = min(max(n, 1), last)
	p.Found, p.From, p.To = found, min(found, (n-1)*peoplePerPage+1), min(found, n*peoplePerPage)
	link := func(n int) string {
		return "/people?" + url.Values{"q": {p.Query}, "page": {strconv.Itoa(n)}}.Encode()
	}
	if n > 1 {
		p.Before = link(n - 1)
	}
	if n < last {
		p.Next = link(n + 1)
	}
}

func registrationName(r account.Registration) string {
	switch r {
	case account.RegistrationOpen:
		return "open"
	case account.RegistrationInvited:
		return "by invitation"
	}
	return "closed"
}

// accountLimits describes the limits of an account in a few words.
func accountLimits(l account.Limits) string {
	var parts []string
	if l.PerSecond > 0 {
		parts = append(parts, site.Amount(l.PerSecond, "credit")+" a second")
	}
	if l.PerDay > 0 {
		parts = append(parts, site.Amount(l.PerDay, "credit")+" a day")
	}
	if l.Keys > 0 {
		parts = append(parts, site.Amount(l.Keys, "key"))
	}
	if len(parts) == 0 {
		return "the service's defaults"
	}
	return strings.Join(parts, ", ")
}
