package account

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// MaxOverlap is the longest that a key's text may go on to work after it got another.
const MaxOverlap = 90 * 24 * time.Hour

// NewKey is a key to be made.
type NewKey struct {
	Name    string    `json:"name"`
	Owner   ID        `json:"owner,omitzero"` // the account that it belongs to; zero: the operator. Not looked at by the keys of one account
	Rules   Rules     `json:"rules,omitzero"`
	Expires time.Time `json:"expires,omitzero"`  // zero: never
	Guarded bool      `json:"guarded,omitempty"` // gets a password, which must come with it
}

// Issued is a key with what nobody can see of it again.
type Issued struct {
	Key      Key    `json:"key"`
	APIKey   string `json:"apiKey,omitempty"`   // its text, as it stands in URLs
	Password string `json:"password,omitempty"` // that must come with it by HTTP's Basic authentication
}

// Create makes a key. When it returns, the key is durable.
func (r *Keyring) Create(ctx context.Context, n NewKey) (Issued, error) {
	if r.only != nil {
		n.Owner = *r.only
	}
	if err := r.check(&n); err != nil {
		return Issued{}, err
	}
	r.write.Lock()
	defer r.write.Unlock()
	owner, err := r.ownerFor(n.Owner)
	if err != nil {
		return Issued{}, err
	}
	if err := r.countChange(); err != nil {
		return Issued{}, err
	}
	issued := Issued{APIKey: newSecret()}
	first, _ := hashOf(issued.APIKey)
	created := wholeSeconds(r.now())
	k := &revision{first: first, secrets: []secretRecord{{Hash: first, Made: toSeconds(created)}}}
	k.Key = Key{ID: first.keyID(), Owner: n.Owner, Name: n.Name, Created: created, Expires: wholeSeconds(n.Expires), owner: owner}
	k.Rules = n.Rules.stored()
	if n.Guarded {
		issued.Password = k.guard()
	}
	if err := r.put(ctx, k); err != nil {
		return Issued{}, fmt.Errorf("account: create a key: %w", err)
	}
	issued.Key = k.Key
	return issued, nil
}

// check says what is wrong with a key that is to be made.
func (r *Keyring) check(n *NewKey) error {
	if err := checkName(n.Name); err != nil {
		return err
	}
	if err := r.checkExpiry(n.Expires); err != nil {
		return err
	}
	return n.Rules.checkTyped()
}

func (r *Keyring) checkExpiry(at time.Time) error {
	if !at.IsZero() && !at.After(r.now()) {
		return invalid(FieldExpires, "%s is over: expected a time to come", at.UTC().Format(time.DateTime))
	}
	return nil
}

// ownerFor returns the account that is to have one key more, nil for the operator. The
// write lock is held.
func (r *Keyring) ownerFor(id ID) (*holder, error) {
	if id.IsZero() {
		return nil, nil
	}
	h, err := r.accounts.holder(id)
	if err != nil {
		return nil, err
	}
	owner := h.load()
	if !owner.Enabled() {
		return nil, ErrDisabled
	}
	live, now := 0, r.now()
	for _, k := range r.keys.Load().byFirst {
		if k.Owner == id && !k.Ended(now) {
			live++
		}
	}
	if most := r.accounts.keysOf(&owner.Account); live >= most {
		return nil, fmt.Errorf("%w: the account has %d keys, and may have %d at once: revoke one first", ErrTooMany, live, most)
	}
	return h, nil
}

// Revoke ends a key for good, named by its ID or, if only one live key has it, by
// its name. Of a key revoked before it returns the state, unchanged. When Revoke
// returns, the end is durable, and no Check that begins later accepts the key.
func (r *Keyring) Revoke(ctx context.Context, idOrName string) (Key, error) {
	return r.change(ctx, idOrName, "revoke", func(k *revision) error {
		if !k.Live() {
			return errUnchanged
		}
		k.Revoked = wholeSeconds(r.now())
		return nil
	})
}

// KeyEdit is what is to be changed of a key. What is nil stays as it is.
type KeyEdit struct {
	Name    *string
	Rules   *Rules     // in place of those it has
	Expires *time.Time // zero: never
}

// Edit changes a live key, named as for Revoke: all that is asked for, or nothing where
// something of it is wrong. When Edit returns it is durable, and holds for every Check
// that begins later.
func (r *Keyring) Edit(ctx context.Context, idOrName string, e KeyEdit) (Key, error) {
	if err := r.checkEdit(&e); err != nil {
		return Key{}, err
	}
	return r.changeLive(ctx, idOrName, "change", func(k *revision) error {
		before := k.Key
		if e.Name != nil {
			k.Name = *e.Name
		}
		if e.Rules != nil {
			k.Rules = e.Rules.stored()
		}
		if e.Expires != nil {
			k.Expires = wholeSeconds(*e.Expires)
		}
		if k.Name == before.Name && k.Rules.equal(before.Rules) && k.Expires.Equal(before.Expires) {
			return errUnchanged
		}
		return nil
	})
}

// checkEdit says what is wrong with an edit.
func (r *Keyring) checkEdit(e *KeyEdit) error {
	if e.Name != nil {
		if err := checkName(*e.Name); err != nil {
			return err
		}
	}
	if e.Expires != nil {
		if err := r.checkExpiry(*e.Expires); err != nil {
			return err
		}
	}
	if e.Rules != nil {
		return e.Rules.checkTyped()
	}
	return nil
}

// Restrict is an Edit of the rules.
func (r *Keyring) Restrict(ctx context.Context, idOrName string, rules Rules) (Key, error) {
	return r.Edit(ctx, idOrName, KeyEdit{Rules: &rules})
}

// Expire is an Edit of when a key ends by itself; zero: never.
func (r *Keyring) Expire(ctx context.Context, idOrName string, at time.Time) (Key, error) {
	return r.Edit(ctx, idOrName, KeyEdit{Expires: &at})
}

// Rotate gives a live key another text. The one that it had works on for the time of
// overlap, so that whoever uses it can change it without a gap; one that the key had
// before that ends now. Everything else of the key stays, its ID and its password too.
func (r *Keyring) Rotate(ctx context.Context, idOrName string, overlap time.Duration) (Issued, error) {
	if overlap < 0 || overlap > MaxOverlap {
		return Issued{}, invalid(FieldOverlap, "an overlap of %v: expected from 0 to %d days", overlap, int(MaxOverlap.Hours()/24))
	}
	issued := Issued{APIKey: newSecret()}
	added, _ := hashOf(issued.APIKey)
	var err error
	issued.Key, err = r.changeLive(ctx, idOrName, "rotate", func(k *revision) error {
		now := r.now()
		before := k.secrets[0]
		k.secrets = []secretRecord{{Hash: added, Made: toSeconds(now)}}
		if overlap > 0 {
			before.Until = toSeconds(now.Add(overlap))
			k.secrets = append(k.secrets, before)
		}
		return nil
	})
	if err != nil {
		return Issued{}, err
	}
	return issued, nil
}

// Guard gives a live key a new password, which must come with it from now on.
func (r *Keyring) Guard(ctx context.Context, idOrName string) (issued Issued, err error) {
	issued.Key, err = r.changeLive(ctx, idOrName, "guard", func(k *revision) error {
		issued.Password = k.guard()
		return nil
	})
	if err != nil {
		return Issued{}, err
	}
	return issued, nil
}

// Unguard makes a live key work without a password.
func (r *Keyring) Unguard(ctx context.Context, idOrName string) (Key, error) {
	return r.changeLive(ctx, idOrName, "unguard", func(k *revision) error {
		k.password = nil
		return nil
	})
}

// guard gives a key a password and returns it.
func (k *revision) guard() string {
	password := newSecret()
	h, _ := hashOf(password)
	k.password = &h
	return password
}

// errUnchanged says that there is nothing to change.
var errUnchanged = errors.New("unchanged")

// changeLive is change for keys that have not ended.
func (r *Keyring) changeLive(ctx context.Context, idOrName, doing string, edit func(*revision) error) (Key, error) {
	return r.change(ctx, idOrName, doing, func(k *revision) error {
		if !k.Live() {
			return fmt.Errorf("%w: key %s is revoked", ErrNoKey, k.ID)
		}
		if err := edit(k); err != nil {
			return err
		}
		return r.countChange()
	})
}

// countChange counts a change where it is an account's person who makes it. That a key
// is revoked is not counted: it happens once to each that was counted when it was
// created, and whoever must end one cannot wait.
func (r *Keyring) countChange() error {
	if r.only == nil {
		return nil
	}
	return r.accounts.countChange(*r.only)
}

// change has a copy of a key edited, and makes that its state.
func (r *Keyring) change(ctx context.Context, idOrName, doing string, edit func(*revision) error) (Key, error) {
	r.write.Lock()
	defer r.write.Unlock()
	before, err := r.find(idOrName)
	if err != nil {
		return Key{}, err
	}
	k := *before
	switch err := edit(&k); {
	case errors.Is(err, errUnchanged):
		return k.Key, nil
	case err != nil:
		return Key{}, err
	}
	k.number++
	if err := r.put(ctx, &k); err != nil {
		return Key{}, fmt.Errorf("account: %s key %s: %w", doing, k.ID, err)
	}
	return k.Key, nil
}
