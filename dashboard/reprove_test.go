package dashboard

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/account/passkey/passkeytest"
	"ashlar/account/password"
	"ashlar/account/totp"
	"ashlar/dashboard/site"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// sensitive is an action of operators that needs a proof of who they are.
type sensitive struct {
	path   string
	form   url.Values
	prefix string // of the fields of the proof
	done   func() bool
}

// sensitiveActions lists all by name, with what prepares each.
func sensitiveActions() map[string]func(*service, account.Account) sensitive {
	const proof = "proof-"
	return map[string]func(*service, account.Account) sensitive{
		"invite an operator": func(s *service, _ account.Account) sensitive {
			form := url.Values{"email": {"new@example.org"}, "role": {"operator"}, "expires": {"30"}}
			return sensitive{"/invitations", form, proof, func() bool {
				all, _ := s.accounts.Invitations(s.t.Context())
				return len(all) == 1 && all[0].Role == account.RoleOperator && all[0].Email == "new@example.org" && all[0].Expires.Sub(all[0].Created) == 30*24*time.Hour
			}}
		},
		"make an operator": func(s *service, _ account.Account) sensitive {
			a := s.create("other@example.org", account.RoleUser)
			return sensitive{personOf(a), url.Values{"do": {"save"}, "role": {"operator"}, "per-second": {"7"}}, proof, func() bool {
				return s.now(a).Role == account.RoleOperator && s.now(a).Limits == account.Limits{PerSecond: 7}
			}}
		},
		"make an operator a user": func(s *service, _ account.Account) sensitive {
			a := s.create("other@example.org", account.RoleOperator)
			return sensitive{personOf(a), url.Values{"do": {"save"}, "role": {"user"}}, proof, func() bool { return s.now(a).Role == account.RoleUser }}
		},
		"enable an operator": func(s *service, _ account.Account) sensitive {
			a := s.create("other@example.org", account.RoleOperator)
			if _, err := s.accounts.Disable(s.t.Context(), a.ID.String()); err != nil {
				s.t.Fatal(err)
			}
			return sensitive{personOf(a), url.Values{"do": {"enable"}}, proof, func() bool { return s.now(a).Disabled.IsZero() }}
		},
		"link for a password": func(s *service, _ account.Account) sensitive {
			_, a := s.newUser("other@example.org", account.RoleUser)
			return sensitive{personOf(a), url.Values{"do": {"reset"}}, proof, func() bool { return !s.now(a).Resets.IsZero() }}
		},
		"link for the own password": func(s *service, o account.Account) sensitive {
			return sensitive{personOf(o), url.Values{"do": {"reset"}}, proof, func() bool { return !s.now(o).Resets.IsZero() }}
		},
		"reset a second factor": func(s *service, _ account.Account) sensitive {
			b, a := s.newUser("other@example.org", account.RoleUser)
			newFactor(s.t, b)
			return sensitive{personOf(a), url.Values{"do": {"reset-factor"}}, proof, func() bool { return s.now(a).SecondFactor.IsZero() }}
		},
		"delete an account": func(s *service, _ account.Account) sensitive {
			a := s.create("other@example.org", account.RoleUser)
			return sensitive{personOf(a) + "/delete", url.Values{"name": {"other@example.org"}}, "", func() bool { return s.gone(a) }}
		},
		"invite to a team": func(s *service, _ account.Account) sensitive {
			team, _ := s.teamOfOthers()
			form := url.Values{"email": {"new@example.org"}, "role": {"owner"}, "expires": {"1"}}
			return sensitive{"/teams/" + team.ID.String() + "/invitations", form, proof, func() bool {
				open, _ := s.accounts.TeamInvitations(s.t.Context(), team.ID)
				return len(open) == 1 && open[0].TeamRole == account.TeamOwner && open[0].Email == "new@example.org"
			}}
		},
		"higher role in a team": func(s *service, _ account.Account) sensitive {
			team, member := s.teamOfOthers()
			return sensitive{"/teams/" + team.ID.String() + "/members/" + member.ID.String(), url.Values{"role": {"owner"}}, proof, func() bool {
				_, role, err := s.accounts.InTeam(team.ID, member.ID)
				return err == nil && role == account.TeamOwner
			}}
		},
		"delete a team": func(s *service, _ account.Account) sensitive {
			team, _ := s.teamOfOthers()
			return sensitive{personOf(team) + "/delete", url.Values{"name": {"Stone"}}, "", func() bool { return s.gone(team) }}
		},
	}
}

func personOf(a account.Account) string { return "/people/" + a.ID.String() }

// create creates an account without a password.
func (s *service) create(email string, role account.Role) account.Account {
	s.t.Helper()
	_, a, err := s.accounts.Create(s.t.Context(), account.NewAccount{Email: email, Role: role})
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

// teamOfOthers creates a team with an owner and a member.
func (s *service) teamOfOthers() (team, member account.Account) {
	s.t.Helper()
	team, err := s.accounts.CreateTeam(s.t.Context(), "Stone", s.create("other@example.org", account.RoleUser).ID)
	if err != nil {
		s.t.Fatal(err)
	}
	member = s.create("member@example.org", account.RoleUser)
	if _, err := s.accounts.AddMember(s.t.Context(), team.ID, member.ID.String(), account.TeamMember); err != nil {
		s.t.Fatal(err)
	}
	return team, member
}

// now returns the current state of an account.
func (s *service) now(a account.Account) account.Account {
	s.t.Helper()
	a, err := s.accounts.Find(a.ID.String())
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

func (s *service) gone(a account.Account) bool {
	_, err := s.accounts.Find(a.ID.String())
	return err != nil
}

// changeable describes the accounts and invitations.
func (s *service) changeable() string {
	s.t.Helper()
	people, err := s.accounts.List(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	invitations, err := s.accounts.Invitations(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	text, err := json.Marshal([]any{people, invitations})
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// with returns a form with more values, as pairs.
func with(form url.Values, more ...string) url.Values {
	all := url.Values{}
	for name, values := range form {
		all[name] = values
	}
	for i := 0; i < len(more); i += 2 {
		all.Set(more[i], more[i+1])
	}
	return all
}

// Operators prove who they are for each action with which a stolen session would give lasting access, or would
// take that of others. Without a proof, with half of one or with a wrong one, nothing changes.
func TestOperatorsProveWhoTheyAre(t *testing.T) {
	for name, prepare := range sensitiveActions() {
		t.Run(name, func(t *testing.T) {
			s := serve(t, account.RegistrationOpen)
			s.t = t
			operator, o := s.newUser("operator@example.org", account.RoleOperator)
			_, codes := newFactor(t, operator)
			a := prepare(s, s.now(o))
			before := s.changeable()
			password, code := a.prefix+"password", a.prefix+"code"
			refused := func(p page, status int, texts ...string) page {
				t.Helper()
				p.says(t, status, append(texts, `name="`+password+`"`, `name="`+code+`"`)...)
				if after := s.changeable(); after != before || a.done() {
					t.Fatalf("without a proof\n%s\nbecame\n%s", before, after)
				}
				for _, secret := range append(codes, goodPassword, "wrong wrong") {
					if strings.Contains(p.body, secret) {
						t.Errorf("the page repeats %q", secret)
					}
				}
				return p
			}
			first := http.StatusOK
			if a.prefix == "" { // the form itself asks for the proof
				first = http.StatusUnprocessableEntity
			}
			refused(operator.post(a.path, a.form), first)
			refused(operator.post(a.path, with(a.form, password, goodPassword)), 422, `id="`+code+`-error">This field is required`)
			refused(operator.post(a.path, with(a.form, code, codes[0])), 422, `id="`+password+`-error">This field is required`)
			refused(operator.post(a.path, with(a.form, password, "wrong wrong", code, codes[0])), 422, `id="`+password+`-error">This is not your current password`)
			p := refused(operator.post(a.path, with(a.form, password, goodPassword, code, "abcd-efgh-abcd-efgh")), 422, `id="`+code+`-error">This code is not valid`)

			form := p.typed(password, goodPassword) // with what the page keeps
			form.Set(code, codes[0])
			p = operator.post(a.path, form)
			if p.status >= 400 || !a.done() {
				t.Fatalf("with a proof: %d %s", p.status, p.text())
			}
			if p := operator.post("/people/"+o.ID.String(), url.Values{"do": {"reset"}, "proof-password": {goodPassword}, "proof-code": {codes[0]}}); p.status != 422 {
				t.Errorf("the same proof counts twice: %d %s", p.status, p.text())
			}
		})
	}
}

// Comparing a password takes a while. An operator who becomes a user meanwhile can do no more than one.
func TestProofOfAFormerOperator(t *testing.T) {
	store, err := pebble.Open(pebble.Options{Path: "accounts", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	var meanwhile atomic.Pointer[func()]
	quick := password.Params{MemoryKiB: 8, Passes: 1, Lanes: 1}
	accounts, err := account.OpenAccounts(t.Context(), store, account.Config{Registration: account.RegistrationOpen, Password: quick, Now: func() time.Time {
		if f := meanwhile.Swap(nil); f != nil {
			(*f)()
		}
		return time.Now()
	}})
	if err != nil {
		t.Fatal(err)
	}
	s := serveWith(t, account.RegistrationOpen, func(_ string, c *site.Config) { c.Accounts = accounts })
	s.accounts = accounts
	operator, o := s.newUser("operator@example.org", account.RoleOperator)
	_, other := s.newUser("other@example.org", account.RoleOperator)
	demote := func() {
		if _, err := accounts.SetRole(t.Context(), o.ID.String(), account.RoleUser); err != nil {
			t.Error(err)
		}
	}
	meanwhile.Store(&demote) // called while the attempt is counted
	if p := operator.post(personOf(other), url.Values{"do": {"reset"}, "proof-password": {goodPassword}}); p.status != http.StatusForbidden {
		t.Errorf("status %d, expected %d: %s", p.status, http.StatusForbidden, p.text())
	}
	if meanwhile.Load() != nil || !s.now(other).Resets.IsZero() {
		t.Error("there is a link to set the password of another account")
	}
}

// What else is wrong with a form is said before a proof is asked for, and does not consume it.
func TestProofIsAskedForLast(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	operator, o := s.newUser("operator@example.org", account.RoleOperator)
	_, codes := newFactor(t, operator)
	a := s.create("a@example.org", account.RoleUser)
	proof := []string{"proof-password", goodPassword, "proof-code", codes[0], "password", goodPassword, "code", codes[0]}
	invitation := url.Values{"email": {"a@example.org"}, "role": {"operator"}, "expires": {"7"}}
	operator.post("/invitations", with(invitation, proof...)).says(t, 422, `id="email-error"`)
	operator.post("/invitations", with(invitation, append(proof, "email", "no address")...)).says(t, 422, `id="email-error"`)
	operator.post(personOf(a), with(url.Values{"do": {"save"}, "role": {"operator"}, "per-day": {"x"}}, proof...)).says(t, 422, `id="per-day-error"`)
	operator.post(personOf(a), with(url.Values{"do": {"reset-factor"}}, proof...)).says(t, 422, "The account has no second factor")
	operator.post(personOf(o), with(url.Values{"do": {"save"}, "role": {"user"}}, proof...)).says(t, 422, `id="role-error"`)
	operator.post(personOf(a)+"/delete", with(url.Values{"name": {"b@example.org"}}, proof...)).says(t, 422, `id="name-error"`)
	operator.post(personOf(a), with(url.Values{"do": {"reset"}}, proof...)).says(t, 200, "Send this link")
}

// Operators take access to a team away without a proof, and manage their own teams as other owners do.
func TestOperatorsOfTeamsWithoutProof(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	operator, o := s.newUser("operator@example.org", account.RoleOperator)
	team, member := s.teamOfOthers()
	members := "/teams/" + team.ID.String() + "/members"
	of := members + "/" + member.ID.String()
	operator.post(of, url.Values{"role": {"viewer"}}).leads(t, members)
	operator.post(of, url.Values{"role": {"king"}}).says(t, 422, "Unknown role")
	operator.post(of+"/remove", nil).leads(t, members)
	operator.post(members+"/0102030405060708", url.Values{"role": {"owner"}}).says(t, 404)

	own, err := s.accounts.CreateTeam(t.Context(), "Own", o.ID)
	if err != nil {
		t.Fatal(err)
	}
	operator.post("/teams/"+own.ID.String()+"/invitations", url.Values{"role": {"owner"}, "expires": {"1"}}).says(t, 200, "Send this link")
}

// Trying proofs counts as attempts to sign in. When these are used up, the right proof is not accepted either.
func TestProofsOfOperatorsAreLimited(t *testing.T) {
	s := serve(t, account.RegistrationOpen)
	operator, _ := s.newUser("operator@example.org", account.RoleOperator)
	_, a := s.newUser("a@example.org", account.RoleUser)
	form := url.Values{"do": {"reset"}, "proof-password": {"wrong wrong"}}
	s.stopClock()
	p := operator.post(personOf(a), form)
	for tries := 1; p.status == 422; tries++ {
		if tries > 10 {
			t.Fatal("more than ten passwords are tried")
		}
		p = operator.post(personOf(a), form)
	}
	p.says(t, http.StatusTooManyRequests, "Too many attempts")
	operator.post(personOf(a), with(form, "proof-password", goodPassword)).says(t, http.StatusTooManyRequests)
	if now := s.now(a); !now.Resets.IsZero() {
		t.Errorf("a link was made: %+v", now)
	}
}

// operatorWithoutPassword is withoutPassword for an operator, with an action that is prepared.
func operatorWithoutPassword(t *testing.T, ago time.Duration, prepare func(*service, account.Account) sensitive) (*service, *browser, sensitive) {
	t.Helper()
	s, b, o, _ := withoutPassword(t, ago)
	if _, err := s.accounts.SetRole(t.Context(), o.ID.String(), account.RoleOperator); err != nil {
		t.Fatal(err)
	}
	return s, b, prepare(s, s.now(o))
}

// An operator without a password and a second factor must have signed in recently.
func TestOperatorsWithoutPassword(t *testing.T) {
	const again = "no password that could be asked for: sign out, sign in again, and repeat this within 10 minutes."
	for name, prepare := range sensitiveActions() {
		t.Run(name, func(t *testing.T) {
			s, operator, a := operatorWithoutPassword(t, 11*time.Minute, prepare)
			before := s.changeable()
			operator.post(a.path, a.form).says(t, 422, again)
			if after := s.changeable(); after != before || a.done() {
				t.Errorf("without a proof\n%s\nbecame\n%s", before, after)
			}
			_, operator, a = operatorWithoutPassword(t, 9*time.Minute, prepare)
			if p := operator.post(a.path, a.form); p.status >= 400 || !a.done() {
				t.Errorf("soon after signing in: %d %s", p.status, p.text())
			}
		})
	}
}

// An operator without a password who has a second factor proves that, however long ago the sign-in was.
func TestOperatorsWithSecondFactorAlone(t *testing.T) {
	s, operator, o, _ := withoutPassword(t, 9*time.Minute)
	if _, err := s.accounts.SetRole(t.Context(), o.ID.String(), account.RoleOperator); err != nil {
		t.Fatal(err)
	}
	found := shownSecret.FindStringSubmatch(operator.get("/account/factor").body)
	if found == nil {
		t.Fatal("the page shows no secret")
	}
	code, err := totp.Secret(found[1]).Code(totp.Step(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	codes := shownCodes.FindAllString(operator.post("/account/factor", url.Values{"secret": found[1:], "code": {code}}).body, -1)
	if len(codes) != 10 {
		t.Fatalf("recovery codes %q", codes)
	}
	_, a := s.newUser("other@example.org", account.RoleUser)
	p := operator.post(personOf(a), url.Values{"do": {"reset"}})
	p.says(t, 200, `name="proof-code"`)
	if strings.Contains(p.body, "proof-password") {
		t.Error("a password is asked for, which the account does not have")
	}
	operator.post(personOf(a), p.typed("proof-code", code)).says(t, 422, `id="proof-code-error"`) // it was used
	if now := s.now(a); !now.Resets.IsZero() {
		t.Errorf("a link was made: %+v", now)
	}
	operator.post(personOf(a), p.typed("proof-code", codes[0])).says(t, 200, "Send this link")
}

// A passkey replaces the code, once, and not the password.
func TestOperatorsProveWithPasskey(t *testing.T) {
	s := atLocalhost(t)
	operator, _ := s.newUser("operator@example.org", account.RoleOperator)
	d, _ := newPasskey(t, operator, "Laptop", nil)
	_, a := s.newUser("a@example.org", account.RoleUser)
	ask := func() page { return operator.post(personOf(a), url.Values{"do": {"reset"}}) }
	form := url.Values{"do": {"reset"}, "proof-password": {goodPassword}}
	answer := d.Get(ask().options(t))
	operator.post(personOf(a), with(form, "proof-password", "wrong wrong", "passkey", answer)).says(t, 422, `id="proof-password-error"`)
	operator.post(personOf(a), with(form, "passkey", answer)).says(t, 422, `id="proof-code-error">This took too long, or was answered already`)
	operator.post(personOf(a), with(form, "proof-password", "", "passkey", d.Get(ask().options(t)))).says(t, 422, `id="proof-password-error"`)
	stranger := passkeytest.New(t, s.url)
	operator.post(personOf(a), with(form, "passkey", stranger.Get(ask().options(t)))).says(t, 422, "This passkey is not registered here")
	if now := s.now(a); !now.Resets.IsZero() {
		t.Errorf("a link was made: %+v", now)
	}
	operator.post(personOf(a), with(form, "passkey", d.Get(ask().options(t)))).says(t, 200, "Send this link")

	path := personOf(a) + "/delete"
	p := operator.get(path)
	p.says(t, 200, "Use a passkey instead")
	operator.post(path, url.Values{"name": {"a@example.org"}, "password": {goodPassword}, "passkey": {d.Get(p.options(t))}}).leads(t, "/people")
}
