package account

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// An edit of a key is often made from what a page or a script has read some time ago. KeyEdit.From and
// KeyEdit.Versions keep it from undoing what somebody else has changed since.

// The parts of [Rules], each of which an edit changes by itself.
const (
	FieldNetworks  Field = "networks"
	FieldMethods   Field = "methods"
	FieldContracts Field = "contracts"
	FieldOrigins   Field = "origins"
	FieldAddresses Field = "addresses"
	FieldPerSecond Field = "per-second"
	FieldPerDay    Field = "per-day"
)

// ErrKeyVersion means that a key has none of the versions that an edit is for.
var ErrKeyVersion = errors.New("the key was changed meanwhile: read it again")

// KeyConflict means that an edit would have undone a change that somebody else has made since the edit was begun.
type KeyConflict struct {
	Key    Key     // as it is now
	Fields []Field // that both have changed
}

func (*KeyConflict) Error() string {
	return "the key was changed meanwhile, also what this changes: read it again"
}

// Version identifies what callers see of a key. It changes with every change of the key that they can see.
func (k *Key) Version() string {
	seen := *k
	seen.Unsaved = false          // which ends without a change
	text, _ := json.Marshal(seen) // cannot fail
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// rebase makes an edit that was made from e.From one of now. It returns a [*KeyConflict] if both have changed the
// same.
func (e *KeyEdit) rebase(now *Key) error {
	if len(e.Versions) > 0 && !slices.Contains(e.Versions, now.Version()) {
		return ErrKeyVersion
	}
	if e.From == nil {
		return nil
	}
	var both []Field
	e.Name = rebased(&both, FieldName, e.Name, &e.From.Name, &now.Name, equal[string])
	e.Expires = rebased(&both, FieldExpires, e.Expires, &e.From.Expires, &now.Expires, func(a, b *time.Time) bool { return wholeSeconds(*a).Equal(wholeSeconds(*b)) })
	if e.Rules != nil {
		e.Rules = e.Rules.rebased(&both, e.From.Rules.orNone(), now.Rules.orNone())
	}
	if len(both) > 0 {
		return &KeyConflict{*now, both}
	}
	return nil
}

// rebased is rebase for rules.
func (r *Rules) rebased(both *[]Field, from, now *Rules) *Rules {
	return &Rules{
		Networks:  *rebased(both, FieldNetworks, &r.Networks, &from.Networks, &now.Networks, equalLists[string]),
		Methods:   *rebased(both, FieldMethods, &r.Methods, &from.Methods, &now.Methods, equalLists[string]),
		Origins:   *rebased(both, FieldOrigins, &r.Origins, &from.Origins, &now.Origins, equalLists[string]),
		Addresses: *rebased(both, FieldAddresses, &r.Addresses, &from.Addresses, &now.Addresses, equalLists),
		Contracts: *rebased(both, FieldContracts, &r.Contracts, &from.Contracts, &now.Contracts, equalLists),
		PerSecond: *rebased(both, FieldPerSecond, &r.PerSecond, &from.PerSecond, &now.PerSecond, equal),
		PerDay:    *rebased(both, FieldPerDay, &r.PerDay, &from.PerDay, &now.PerDay, equal),
	}
}

// rebased returns what a part of a key becomes by an edit to a value, nil if it is not edited. The edit was made when
// the part was from; it adds the field to both if the part was changed to something else since.
func rebased[T any](both *[]Field, field Field, to, from, now *T, same func(a, b *T) bool) *T {
	if to == nil || same(to, from) {
		return now
	}
	if !same(now, from) && !same(now, to) {
		*both = append(*both, field)
	}
	return to
}

func equal[T comparable](a, b *T) bool { return *a == *b }

func equalLists[T comparable](a, b *[]T) bool { return slices.Equal(*a, *b) }

// orNone returns the rules, empty ones if there are none.
func (r *Rules) orNone() *Rules {
	if r == nil {
		return new(Rules)
	}
	return r
}
