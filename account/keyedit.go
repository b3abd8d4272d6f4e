package account

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// KeyEdit lists the changes to a key. Nil fields are left unchanged.
type KeyEdit struct {
	Name    *string
	Rules   *Rules     // replaces the key's rules
	Expires *time.Time // zero: never
	// From is the key from which the edit was made. Then it changes only what differs from there, each part of the rules
	// by itself, and fails with a [*KeyConflict] if such a part has become something else since. nil: it changes all that
	// it lists.
	From *Key
	// Versions are those of the key ([Key.Version]) to which the edit applies; it fails with ErrKeyVersion if the key has
	// another one. Empty: it applies to all.
	Versions []string
}

// Edit applies all changes in e to a live key, named as for Revoke, or none if any of them
// is invalid. When Edit returns, every later Check sees the changes. They are durable, unless
// the returned key is Unsaved.
func (r *Keyring) Edit(ctx context.Context, idOrName string, e KeyEdit) (Key, error) {
	k, err := r.changeLive(ctx, idOrName, "change", atOnce, func(k *revision) error {
		renews, err := r.edit(k, e)
		if err != nil || !renews {
			return err
		}
		if err := r.hasPlace(k.Account(), nil); err != nil || !r.accounts.rows.shared {
			return err
		}
		return cmp.Or(r.countChange(), errRenews)
	})
	if errors.Is(err, errRenews) {
		return r.renew(ctx, idOrName, e)
	}
	return k, err
}

// errRenews means that an edit makes an expired key of a shared store valid again, which [Keyring.renew] does. The
// change is counted.
var errRenews = errors.New("an expired key becomes valid again")

// renew is Edit for an expired key of a shared store that becomes valid again. As when a key is created, no other
// process gives the account one meanwhile, and those that others have given it count.
func (r *Keyring) renew(ctx context.Context, idOrName string, e KeyEdit) (Key, error) {
	known, err := r.find(idOrName)
	if err != nil {
		return Key{}, err
	}
	unlock, err := r.accounts.rows.lock(ctx, onceDurable)
	if err != nil {
		return Key{}, err
	}
	defer unlock()
	elsewhere, err := r.storedElsewhere(ctx, known.Owner)
	if err != nil {
		return Key{}, err
	}
	return r.changeLocked(ctx, known, "change", onceDurable, ofLive(func(k *revision) error {
		renews, err := r.edit(k, e)
		if err != nil || !renews {
			return err
		}
		return r.hasPlace(k.Account(), elsewhere)
	}))
}

// edit applies e to k. It reports whether that makes an expired key of an account valid again: expired keys do not
// count, so it needs a place. It returns errUnchanged if nothing changes.
func (r *Keyring) edit(k *revision, e KeyEdit) (renews bool, err error) {
	before := k.Key
	if err := e.rebase(&before); err != nil {
		return false, err
	}
	if err := r.checkEdit(&e, &before); err != nil {
		return false, err
	}
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
		return false, errUnchanged
	}
	now := r.now()
	return before.Ended(now) && !k.Ended(now) && k.Account() != nil, nil
}

// checkEdit validates what an edit of a key changes. Values that the key has may be older than the checks.
func (r *Keyring) checkEdit(e *KeyEdit, before *Key) error {
	if e.Name != nil && *e.Name != before.Name {
		if err := checkName(*e.Name); err != nil {
			return err
		}
	}
	if e.Expires != nil && !wholeSeconds(*e.Expires).Equal(before.Expires) {
		if err := r.checkExpiry(*e.Expires); err != nil {
			return err
		}
	}
	if e.Rules != nil {
		return e.Rules.CheckChange(before.Rules)
	}
	return nil
}
