package account

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// MaxOverlap is the longest time for which a rotated secret may stay valid.
const MaxOverlap = 90 * 24 * time.Hour

// NewKey describes a key to be created.
type NewKey struct {
	Name    string    `json:"name"`
	Owner   ID        `json:"owner,omitzero"` // account; zero: the operator. Ignored by the Keyring of one account
	Rules   Rules     `json:"rules,omitzero"`
	Expires time.Time `json:"expires,omitzero"`  // zero: never
	Guarded bool      `json:"guarded,omitempty"` // create a password that requests must send with the key
}

// Issued is a new or changed key with its secrets, which cannot be read again.
type Issued struct {
	Key      Key    `json:"key"`
	APIKey   string `json:"apiKey,omitempty"`   // the secret, as used in URLs
	Password string `json:"password,omitempty"` // sent with HTTP Basic authentication
}

// Create creates a key. The key is durable when Create returns.
func (r *Keyring) Create(ctx context.Context, n NewKey) (Issued, error) {
	if r.only != nil {
		n.Owner = *r.only
	}
	if err := r.check(&n); err != nil {
		return Issued{}, err
	}
	if err := r.admit(n.Owner); err != nil {
		return Issued{}, err
	}
	var elsewhere []*revision
	if !n.Owner.IsZero() { // else there is no limit
		unlock, err := r.accounts.rows.lock(ctx, onceDurable)
		if err != nil {
			return Issued{}, err
		}
		defer unlock()
		if elsewhere, err = r.storedElsewhere(ctx, n.Owner); err != nil {
			return Issued{}, err
		}
	}
	r.write.Lock()
	defer r.write.Unlock()
	owner, err := r.ownerFor(n.Owner, elsewhere)
	if err != nil {
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
	if err := r.put(ctx, onceDurable, k, "create"); err != nil {
		return Issued{}, fmt.Errorf("account: create a key: %w", err)
	}
	issued.Key = k.Key
	return issued, nil
}

// admit refuses a new key of an account that has no place for one by what this process knows, and counts the change
// otherwise. So no client can make all changes of a cluster wait for keys that are refused.
func (r *Keyring) admit(owner ID) error {
	r.write.Lock()
	defer r.write.Unlock()
	if _, err := r.ownerFor(owner, nil); err != nil {
		return err
	}
	return r.countChange()
}

// check validates a key to be created.
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
		return invalid(FieldExpires, "%s is in the past: expected a time in the future", at.UTC().Format(time.DateTime))
	}
	return nil
}

// ownerFor returns the account for a new key, nil for the operator, or ErrTooMany if it has
// as many live keys as it may. elsewhere is as for hasPlace. The write lock is held.
func (r *Keyring) ownerFor(id ID, elsewhere []*revision) (*holder, error) {
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
	return h, r.hasPlace(&owner.Account, elsewhere)
}

// hasPlace returns ErrTooMany if an account has as many keys that can be used as it may. elsewhere is what other
// processes have stored of its keys, which this one may not know; of two revisions of a key, the later one counts.
func (r *Keyring) hasPlace(owner *Account, elsewhere []*revision) error {
	live, now, known := 0, r.now(), r.keys.Load().byFirst
	for _, k := range known {
		if k.Owner == owner.ID && !k.Ended(now) {
			live++
		}
	}
	for _, k := range elsewhere {
		here := known[k.first]
		switch {
		case here == nil:
		case !here.Live() || here.number >= k.number: // it is counted as it is
			continue
		case !here.Ended(now):
			live--
		}
		if !k.Ended(now) {
			live++
		}
	}
	if most := r.accounts.MaxKeys(owner); live >= most {
		return fmt.Errorf("%w: the account has as many keys as it may have at once (%d): revoke one first", ErrTooMany, most)
	}
	return nil
}

// Revoke ends a key permanently. The key is given by its ID, or by its name if only one
// live key has it. Revoking a revoked key changes nothing and returns it. When Revoke
// returns, no later Check accepts the key. The change is durable, unless the returned key
// is Unsaved.
func (r *Keyring) Revoke(ctx context.Context, idOrName string) (Key, error) {
	r.write.Lock()
	defer r.write.Unlock()
	// It waits for no other process: a key that one of its revisions revokes is revoked, whatever the others say.
	known, err := r.find(idOrName)
	if err != nil {
		return Key{}, err
	}
	return r.next(ctx, known, "revoke", atOnce, func(k *revision) error {
		if !k.Live() {
			return errUnchanged
		}
		k.Revoked, k.Unreadable = wholeSeconds(r.now()), ""
		return nil
	})
}

// Restrict replaces the rules of a key.
func (r *Keyring) Restrict(ctx context.Context, idOrName string, rules Rules) (Key, error) {
	return r.Edit(ctx, idOrName, KeyEdit{Rules: &rules})
}

// Expire sets the time at which a key expires; zero: never.
func (r *Keyring) Expire(ctx context.Context, idOrName string, at time.Time) (Key, error) {
	return r.Edit(ctx, idOrName, KeyEdit{Expires: &at})
}

// Rotate gives a live key a new secret. The previous one stays valid for overlap, so that
// users of the key can switch without an interruption; an older one that is still valid
// ends now. The key's ID, password and everything else stay the same.
func (r *Keyring) Rotate(ctx context.Context, idOrName string, overlap time.Duration) (Issued, error) {
	if overlap < 0 || overlap > MaxOverlap {
		return Issued{}, invalid(FieldOverlap, "an overlap of %v: expected from 0 to %d days", overlap, int(MaxOverlap.Hours()/24))
	}
	issued := Issued{APIKey: newSecret()}
	added, _ := hashOf(issued.APIKey)
	var err error
	issued.Key, err = r.changeLive(ctx, idOrName, "rotate", onceDurable, func(k *revision) error {
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

// Guard gives a live key a new password, which requests must send from now on.
func (r *Keyring) Guard(ctx context.Context, idOrName string) (issued Issued, err error) {
	issued.Key, err = r.changeLive(ctx, idOrName, "guard", atOnce, func(k *revision) error {
		issued.Password = k.guard()
		return nil
	})
	if err != nil {
		return Issued{}, err
	}
	return issued, nil
}

// Unguard removes the password of a live key.
func (r *Keyring) Unguard(ctx context.Context, idOrName string) (Key, error) {
	return r.changeLive(ctx, idOrName, "unguard", onceDurable, func(k *revision) error {
		k.password = nil
		return nil
	})
}

// guard sets a new password for a key and returns it.
func (k *revision) guard() string {
	password := newSecret()
	h, _ := hashOf(password)
	k.password = &h
	return password
}

// errUnchanged is returned by an edit that has nothing to change.
var errUnchanged = errors.New("unchanged")

// changeLive is change for keys that were not revoked. Others fail with ErrNoKey.
func (r *Keyring) changeLive(ctx context.Context, idOrName, doing string, o order, edit func(*revision) error) (Key, error) {
	return r.change(ctx, idOrName, doing, o, ofLive(func(k *revision) error {
		if err := edit(k); err != nil {
			return err
		}
		return r.countChange()
	}))
}

// ofLive returns an edit that fails with ErrNoKey for a key that was revoked, and with ErrUnreadable for one that can
// only be revoked.
func ofLive(edit func(*revision) error) func(*revision) error {
	return func(k *revision) error {
		if !k.Live() {
			return fmt.Errorf("%w: key %s is revoked", ErrNoKey, k.ID)
		}
		if k.Unreadable != "" {
			return fmt.Errorf("%w: key %s: %s: it can only be revoked", ErrUnreadable, k.ID, k.Unreadable)
		}
		return edit(k)
	}
}

// countChange charges a change to the rate limit of the account, if r is that of an
// account. Revoking is not charged: it happens once per key, whose creation was charged,
// and a leaked key must be revoked without delay.
func (r *Keyring) countChange() error {
	if r.only == nil {
		return nil
	}
	return r.accounts.countChange(*r.only)
}

// change edits a copy of the newest revision of a key and stores it as the next one. While it waits for
// other processes, and for the store, this one can revoke keys and learn what others have revoked.
func (r *Keyring) change(ctx context.Context, idOrName, doing string, o order, edit func(*revision) error) (Key, error) {
	known, err := r.find(idOrName)
	if err != nil {
		return Key{}, err
	}
	unlock, err := r.accounts.rows.lock(ctx, o)
	switch {
	case err == nil:
		defer unlock()
	case o == onceDurable: // a restriction goes without the lock
		return Key{}, err
	}
	return r.changeLocked(ctx, known, doing, o, edit)
}

// changeLocked is change once no other process changes a key, or a restriction has waited for that long enough.
func (r *Keyring) changeLocked(ctx context.Context, known *revision, doing string, o order, edit func(*revision) error) (Key, error) {
	newest, err := r.newest(ctx, o, known)
	if err != nil {
		return Key{}, err
	}
	r.write.Lock()
	defer r.write.Unlock()
	r.apply(newest, known.first)
	before, err := r.find(known.ID.String())
	if err != nil {
		return Key{}, err
	}
	return r.next(ctx, before, doing, o, edit)
}

// next edits a copy of a revision and stores it as the next one. r.write is held.
func (r *Keyring) next(ctx context.Context, before *revision, doing string, o order, edit func(*revision) error) (Key, error) {
	k := *before
	switch err := edit(&k); {
	case errors.Is(err, errUnchanged):
		return r.described(before), nil
	case err != nil:
		return Key{}, err
	}
	k.number = r.accounts.rows.next(k.place(), k.number)
	if err := r.put(ctx, o, &k, doing); err != nil {
		return Key{}, fmt.Errorf("account: %s key %s: %w", doing, k.ID, err)
	}
	return r.described(&k), nil
}
