package browser

import (
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// A user creates a team and invites another one, who joins by the link, switches to the team and
// creates a key. The team keeps the key when the member is removed. Everything works without
// scripts too.
func TestTeams(t *testing.T) {
	t.Parallel()
	chromium(t)
	s := serve(t)
	for name, scripts := range map[string]bool{"with scripts": true, "without scripts": false} {
		t.Run(name, func(t *testing.T) {
			p := &pair{
				owner: openTab(t, s.url, scripts), guest: openTab(t, s.url, scripts), scripts: scripts,
				as: strings.ReplaceAll(name, " ", "-") + "@example.org",
			}
			team, line := p.share(t, s.url)
			p.part(t, team, line)
		})
	}
}

// pair are the browsers of a team's owner and of a guest.
type pair struct {
	owner, guest *tab
	scripts      bool
	as           string // end of their e-mail addresses
}

const teamPassword = "a stone on a stone"

// share makes a team whose owner sees the key that the guest makes. It returns the team's path, and a line
// for a shell with the key.
func (p *pair) share(t *testing.T, url string) (team, line string) {
	owner, guest := p.owner, p.guest
	owner.signUp("owner-"+p.as, teamPassword)
	owner.follow(".side nav a[href='/teams']")
	owner.enter("#name", "Stone & Sons")
	owner.follow("main form button.primary")
	owner.sees(".notice", "The team is ready")
	team = strings.TrimSuffix(owner.path(), "/members")

	owner.enter("#email", "guest-"+p.as)
	owner.follow("form[action$='/invitations'] button.primary")
	link := owner.text("#invitation-link")
	if !strings.HasPrefix(link, url+"/teams/join?invitation=") {
		t.Fatalf("the link is %q", link)
	}
	join := strings.TrimPrefix(link, url)
	guest.open(join)
	guest.sees("main", "Stone & Sons as a member")
	if p.scripts {
		guest.lookedAt(shot{"team-join", at(join)})
	}
	guest.follow("main a[href^='/signup?invitation=']")
	guest.enter("#password", teamPassword)
	guest.follow("main form button.primary")
	guest.sees(".notice", "Welcome")

	guest.follow(".side nav .accounts a[href='" + team + "']")
	guest.sees("main", "All keys of the team")
	guest.follow(".side nav a[href='" + team + "/keys']")
	guest.follow("a.primary[href='" + team + "/keys/new']")
	guest.enter("#name", "First steps")
	guest.follow("main form button.primary")
	line = guest.text(".lines details pre")
	if out := paste(t, line); !strings.Contains(out, `"result":"0x`) {
		t.Fatalf("%s\nanswers %s", line, out)
	}
	owner.open(team + "/keys")
	owner.sees("tbody", "First steps")
	owner.follow(".side nav .accounts li:first-child a")
	owner.sees("main", "You have no key yet")
	if p.scripts {
		for _, one := range teamPages(team) {
			owner.lookedAt(one)
		}
		guest.lookedAt(shot{"team-member", at(team + "/members")})
	}
	return team, line
}

// part makes the guest a viewer, removes it, and deletes the team with its key.
func (p *pair) part(t *testing.T, team, line string) {
	owner, guest := p.owner, p.guest
	owner.open(team + "/members")
	owner.do(chromedp.SendKeys(chromedp.CSS("tr:has([aria-label='Change the role of guest-"+p.as+"']) select"), "Viewer"))
	owner.follow("button[aria-label='Change the role of guest-" + p.as + "']")
	guest.open(team + "/keys")
	guest.follow("tbody a[href^='" + team + "/keys/']")
	if n := run(guest, chromedp.Evaluate[int]("document.querySelectorAll('a[href$=\"/revoke\"], main form button').length")); n > 0 {
		t.Errorf("a viewer is offered %d changes of a key", n)
	}
	if p.scripts {
		guest.lookedAt(shot{"team-viewer", func(b *tab) {
			b.open(team + "/keys")
			b.follow("tbody a[href^='" + team + "/keys/']")
		}})
		guest.lookedAt(shot{"team-refused", at(team + "/keys/new")})
	}
	owner.follow("a[aria-label='Remove guest-" + p.as + "']")
	owner.sees("h1", "Remove guest-"+p.as+"?")
	owner.follow("main form button.danger")
	owner.sees(".notice", "The member was removed")
	guest.open(team + "/keys")
	guest.sees("h1", "Page not found")
	if out := paste(t, line); !strings.Contains(out, `"result":"0x`) {
		t.Errorf("after the member is removed, the team's key\n%s\nanswers %s", line, out)
	}
	owner.open(team + "/delete")
	owner.enter("#name", "Stone & Sons")
	owner.enter("#password", teamPassword)
	owner.follow("main form button.danger")
	owner.sees(".notice", "was deleted")
	if out := paste(t, line); !strings.HasSuffix(out, "401") {
		t.Errorf("with a key of the deleted team\n%s\nanswers %s", line, out)
	}
}

// A member leaves a team, and an invitation is withdrawn, only after a page that asks.
func TestLeaveAndWithdraw(t *testing.T) {
	t.Parallel()
	chromium(t)
	s := serve(t)
	for name, scripts := range map[string]bool{"with scripts": true, "without scripts": false} {
		t.Run(name, func(t *testing.T) {
			const password = "a stone on a stone"
			as := strings.ReplaceAll(name, " ", "-") + "@example.org"
			owner, guest := openTab(t, s.url, scripts), openTab(t, s.url, scripts)
			owner.signUp("founder-"+as, password)
			owner.open("/teams")
			owner.enter("#name", "Stone & Sons")
			owner.follow("main form button.primary")
			team := strings.TrimSuffix(owner.path(), "/members")
			invite := func(email string) (join string) {
				owner.enter("#email", email)
				owner.follow("form[action$='/invitations'] button.primary")
				return strings.TrimPrefix(owner.text("#invitation-link"), s.url)
			}
			join := invite("leaver-" + as)
			guest.signUp("leaver-"+as, password)
			guest.open(join)
			guest.follow("main form button.primary")

			guest.open(team + "/members")
			guest.follow("main a[href='" + team + "/leave']")
			guest.sees("h1", "Leave Stone & Sons?")
			guest.follow("main form a")
			guest.sees("h1", "Members of Stone & Sons")
			guest.follow("main a[href='" + team + "/leave']")
			guest.follow("main form button.danger")
			guest.sees(".notice", "You have left the team")
			guest.open(team + "/keys")
			guest.sees("h1", "Page not found")

			join = invite("late-" + as)
			withdraw := "a[aria-label='Withdraw the invitation for late-" + as + "']"
			owner.follow(withdraw)
			owner.sees("h1", "Withdraw this invitation?")
			owner.follow("main form a")
			owner.follow(withdraw)
			owner.follow("main form button.danger")
			owner.sees(".notice", "The invitation was withdrawn")
			guest.open(join)
			guest.sees("main", "This invitation is not valid")
		})
	}
}

// teamPages returns the pages of a team that its owner sees.
func teamPages(team string) []shot {
	return []shot{
		{"teams", at("/teams")},
		{"team-overview", at(team)},
		{"team-keys", at(team + "/keys")},
		{"team-members", at(team + "/members")},
		{"team-invited", func(b *tab) {
			b.open(team + "/members")
			b.enter("#email", "c"+longEmail()[1:])
			b.follow("form[action$='/invitations'] button.primary")
			b.there("#invitation-link")
		}},
		{"team-remove", func(b *tab) {
			b.open(team + "/members")
			b.follow("a[aria-label^='Remove ']")
		}},
		{"team-withdraw", func(b *tab) {
			b.open(team + "/members")
			b.follow("a[aria-label^='Withdraw ']")
		}},
		{"team-leave", at(team + "/leave")},
		{"team-last-owner", func(b *tab) {
			b.open(team + "/leave")
			b.follow("main form button.danger")
			b.there(".notice.bad")
		}},
		{"team-delete", func(b *tab) {
			b.open(team + "/delete")
			b.enter("#name", "another")
			b.enter("#password", "a stone on a stone")
			b.follow("main form button.danger")
			b.there("#name-error")
		}},
		{"team-menu", func(b *tab) {
			b.open(team + "/keys")
			run(b, chromedp.Evaluate[bool]("document.querySelector('.menu').open = true"))
		}},
	}
}

// lookedAt is lookAt, and then displays pages as before.
func (b *tab) lookedAt(one shot) {
	b.Helper()
	b.lookAt(one, screenshots(b.T))
	b.do(chromedp.EmulateViewport(1280, 900))
}

// path returns the path of the current page.
func (b *tab) path() string {
	b.Helper()
	u, err := url.Parse(run(b, chromedp.Location()))
	if err != nil {
		b.Fatal(err)
	}
	return u.Path
}
