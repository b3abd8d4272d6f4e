package people

import (
	"net/url"
	"strconv"
	"strings"

	"ashlar/account"
	"ashlar/dashboard/site"
)

// auditPage is the data of the template audit.
type auditPage struct {
	Query   string
	Problem string // why the search finds nothing; may be empty
	Entries []auditLine
	Next    string // link to older entries; empty if there are none
}

// auditLine is an entry of the audit log.
type auditLine struct {
	account.AuditEntry
	Who  string
	Link string // to the account that was changed; may be empty
	Of   string // its e-mail address or name
}

// auditPerPage is the number of entries on a page.
const auditPerPage = 50

// showAudit shows operators who changed accounts, keys and invitations.
func showAudit(v *site.Visit) error {
	query := v.R.URL.Query()
	p := auditPage{Query: strings.TrimSpace(query.Get("account"))}
	q := account.AuditQuery{Limit: auditPerPage + 1}
	if before, err := strconv.ParseUint(query.Get("before"), 10, 63); err == nil {
		q.Before = before
	}
	if p.Query != "" {
		a, err := v.Config.Accounts.Find(p.Query)
		if q.Account = a.ID; err != nil && q.Account.UnmarshalText([]byte(p.Query)) != nil { // a deleted account has its ID in the log
			p.Problem = site.Sentence(err.Error())
			return v.Show(200, "audit", "Audit log", p)
		}
	}
	entries, err := v.Config.Accounts.Audit(v.R.Context(), q)
	if err != nil {
		return err
	}
	if len(entries) > auditPerPage {
		entries = entries[:auditPerPage]
		older := strconv.FormatUint(entries[auditPerPage-1].Position, 10)
		p.Next = "/audit?" + url.Values{"account": {p.Query}, "before": {older}}.Encode()
	}
	for _, e := range entries {
		p.Entries = append(p.Entries, lineOf(v, e))
	}
	return v.Show(200, "audit", "Audit log", p)
}

func lineOf(v *site.Visit, e account.AuditEntry) auditLine {
	line := auditLine{AuditEntry: e, Who: labelOf(v, e.By.Account)}
	switch {
	case line.Who != "":
	case e.By.Via == "":
		line.Who = "the shell"
	default:
		line.Who = "a visitor"
	}
	if line.Of = labelOf(v, e.Account); line.Of != "" {
		line.Link = "/people/" + e.Account.String()
	}
	return line
}

// labelOf returns the e-mail address of an account or the name of a team, its ID if that is not
// known; empty for no account.
func labelOf(v *site.Visit, id account.ID) string {
	if id.IsZero() {
		return ""
	}
	if a, err := v.Config.Accounts.Find(id.String()); err == nil {
		return a.Label()
	}
	return id.String()
}
