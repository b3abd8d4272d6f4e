package account

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// Each change of an account, a key or an invitation has an entry that names who made it, from
// where, and what it was. Entries outlive a restart, until they are old.
func TestAuditLog(t *testing.T) {
	f := newFixture(t, Config{})
	_, boss, err := f.accounts.Create(f.Context(), NewAccount{Email: "boss@example.org", Role: RoleOperator})
	if err != nil {
		t.Fatal(err)
	}
	_, user, err := f.accounts.Create(f.Context(), NewAccount{Email: "user@example.org"})
	if err != nil {
		t.Fatal(err)
	}
	f.pass(36 * time.Hour)
	by := Actor{boss.ID, netip.MustParseAddr("192.0.2.7"), "dashboard"}
	ctx := WithActor(f.Context(), by)
	if _, err := f.accounts.Disable(ctx, user.ID.String()); err != nil {
		t.Fatal(err)
	}
	if _, err := f.accounts.Enable(ctx, user.ID.String()); err != nil {
		t.Fatal(err)
	}
	f.pass(time.Second)
	issued, err := f.keys.Of(user.ID).Create(WithActor(f.Context(), Actor{Account: user.ID, Via: "dashboard"}), NewKey{Name: "first"})
	if err != nil {
		t.Fatal(err)
	}
	f.pass(time.Second)
	if _, err := f.keys.Revoke(ctx, issued.Key.ID.String()); err != nil {
		t.Fatal(err)
	}
	if _, err := f.keys.Revoke(ctx, issued.Key.ID.String()); err != nil { // changes nothing
		t.Fatal(err)
	}
	f.pass(time.Second)
	_, invitation, err := f.accounts.Invite(ctx, NewInvitation{By: boss.ID})
	if err != nil {
		t.Fatal(err)
	}
	f.reopen()
	read := func(q AuditQuery) (texts []string, all []AuditEntry) {
		t.Helper()
		all, err := f.accounts.Audit(f.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			texts = append(texts, e.Did+" "+e.What)
		}
		return texts, all
	}
	want := []string{"create invitation " + invitation.ID, "revoke key " + issued.Key.ID.String(), "create key " + issued.Key.ID.String()}
	texts, all := read(AuditQuery{Limit: 3})
	if fmt.Sprint(texts) != fmt.Sprint(want) || all[1].By != by || all[1].Account != user.ID || !all[0].At.Equal(f.Now()) {
		t.Errorf("entries %q, the second by %+v", texts, all[1])
	}
	if texts, _ := read(AuditQuery{Limit: 100}); len(texts) != 7 {
		t.Errorf("entries %q, expected 7", texts)
	}
	if texts, _ := read(AuditQuery{Limit: 100, Account: user.ID}); len(texts) != 5 {
		t.Errorf("entries of the user %q, expected 5", texts)
	}
	if texts, _ := read(AuditQuery{Limit: 100, Before: all[2].Position}); len(texts) != 4 {
		t.Errorf("older entries %q, expected 4", texts)
	}
	f.pass((AuditKeep + 1) * 24 * time.Hour)
	f.reopen()
	if texts, _ := read(AuditQuery{Limit: 100, Before: all[2].Position + 1}); len(texts) != 0 {
		t.Errorf("old entries are kept: %q", texts)
	}
}
