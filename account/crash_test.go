package account

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"ashlar/kv"
	"ashlar/kv/pebble"
	"ashlar/kv/pebble/pebbletest"
)

// opened is an open store.
type opened struct {
	store    kv.Store
	accounts *Accounts
	keys     *Keyring
	token    string // of an open invitation
	toTeam   string // token of an invitation to a team
}

func openDisk(t *testing.T, disk *pebbletest.Disk, now func() time.Time) opened {
	t.Helper()
	store, err := disk.Open(pebble.Options{Path: "accounts"})
	if err != nil {
		t.Fatal(err)
	}
	o := opened{store: store, accounts: openAccounts(t, store, Config{Registration: RegistrationOpen, Now: now})}
	if o.keys, err = OpenKeyring(t.Context(), o.accounts); err != nil {
		t.Fatal(err)
	}
	return o
}

// describe returns everything visible in a store.
func (o *opened) describe(t *testing.T) string {
	t.Helper()
	people, err := o.accounts.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	keys, err := o.keys.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	invitations, err := o.accounts.Invitations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal([]any{people, keys, invitations, describeTeams(t, o.accounts)})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// act makes a random change.
func (o *opened) act(t *testing.T, random *rand.Rand, n int) error {
	ctx := t.Context()
	people, _ := o.accounts.List(ctx)
	keys, _ := o.keys.List(ctx)
	invitations, _ := o.accounts.Invitations(ctx)
	email := fmt.Sprintf("n%d@example.org", n)
	var err error
	user := people[:0:0]
	for _, a := range people {
		if !a.IsTeam() {
			user = append(user, a)
		}
	}
	if random.IntN(3) == 0 && len(user) > 0 {
		return o.actOnTeams(t, random, user)
	}
	people = user
	switch what := random.IntN(12); {
	case what == 0 || len(people) == 0:
		_, _, err = o.accounts.Register(ctx, Registrant{Email: email, Password: secret, Address: where(n)})
	case what == 1:
		_, _, err = o.accounts.Create(ctx, NewAccount{Email: email})
	case what == 2 || len(invitations) == 0:
		o.token, _, err = o.accounts.Invite(ctx, NewInvitation{})
	case what == 3 && o.token != "":
		_, _, err = o.accounts.Register(ctx, Registrant{Email: email, Password: secret, Invitation: o.token, Address: where(n)})
		o.token = ""
	case what == 4:
		_, _ = o.accounts.Withdraw(ctx, invitations[random.IntN(len(invitations))].ID) // may have ended
		o.token = ""
	case what == 5:
		_, _, err = o.accounts.Reset(ctx, people[random.IntN(len(people))].Email)
	case what == 6:
		_, err = o.accounts.Disable(ctx, people[random.IntN(len(people))].Email)
	case what == 7:
		_, err = o.accounts.Enable(ctx, people[random.IntN(len(people))].Email)
	case what == 8 || len(keys) == 0:
		_, _ = o.keys.Of(people[random.IntN(len(people))].ID).Create(ctx, NewKey{}) // may be disabled
	case what == 9:
		_, _ = o.keys.Rotate(ctx, keys[random.IntN(len(keys))].ID.String(), time.Hour) // may have been revoked
	case what == 10:
		_, _ = o.keys.Restrict(ctx, keys[random.IntN(len(keys))].ID.String(), Rules{PerDay: uint64(n)})
	default:
		_, err = o.keys.Revoke(ctx, keys[random.IntN(len(keys))].ID.String())
	}
	return err
}

// actOnTeams makes a random change of a team.
func (o *opened) actOnTeams(t *testing.T, random *rand.Rand, users []Account) error {
	ctx, user := t.Context(), users[random.IntN(len(users))]
	role := TeamRoles()[random.IntN(3)]
	all := o.accounts.Teams(user.ID)
	if len(all) == 0 {
		_, err := o.accounts.CreateTeam(ctx, fmt.Sprint("team ", random.IntN(5)), user.ID)
		if errors.Is(err, ErrDisabled) {
			return nil
		}
		return err
	}
	team := all[random.IntN(len(all))].Team
	other := users[random.IntN(len(users))]
	switch random.IntN(7) {
	case 0, 1:
		_, _ = o.accounts.AddMember(ctx, team.ID, other.Email, role) // may be one
	case 2:
		_, _ = o.accounts.SetMemberRole(ctx, team.ID, user.ID, role) // may be the last owner
	case 3:
		_, _ = o.accounts.RemoveMember(ctx, team.ID, user.ID)
	case 4:
		var err error
		o.toTeam, _, err = o.accounts.Invite(ctx, NewInvitation{Team: team.ID, TeamRole: role})
		return err
	case 5:
		_, _ = o.accounts.Join(ctx, o.toTeam, other.ID) // may be used, or the account may be a member or disabled
	default:
		_, err := o.accounts.RenameTeam(ctx, team.ID, fmt.Sprint("team ", random.IntN(5)))
		return err
	}
	return nil
}

// The power is cut during a change and after its acknowledgement: an acknowledged change is
// there; another is there completely or not at all.
func TestPowerCuts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	c := newClock()
	disk := pebbletest.NewDisk()
	o := openDisk(t, disk, c.Now)
	for n := range 150 {
		before := o.describe(t)
		var during *pebbletest.Disk
		at, kept := disk.Operations()+1+random.Int64N(8), random.IntN(101)
		disk.Before(func(op pebbletest.Operation) error {
			if op.Number == at {
				during = disk.PowerCut(kept, rand.New(rand.NewPCG(uint64(n), 3)))
			}
			return nil
		})
		if err := o.act(t, random, n); err != nil {
			t.Fatalf("change %d: %v", n, err)
		}
		disk.Before(func(pebbletest.Operation) error { return nil })
		after := o.describe(t)
		found := func(d *pebbletest.Disk) string {
			t.Helper()
			again := openDisk(t, d, c.Now)
			defer again.store.Close()
			return again.describe(t)
		}
		if got := found(disk.PowerCut(random.IntN(101), random)); got != after {
			t.Fatalf("change %d, acknowledged:\nfound    %s\nexpected %s", n, got, after)
		}
		if during == nil {
			continue
		}
		if got := found(during); got != before && got != after {
			t.Fatalf("change %d, under way:\nfound    %s\nexpected %s\nor       %s", n, got, before, after)
		}
	}
	if err := o.store.Close(); err != nil {
		t.Error(err)
	}
}
