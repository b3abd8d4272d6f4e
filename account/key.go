package account

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	secretBytes = 16
	secretLen   = 2 * secretBytes // hexadecimal digits
	maxName     = 100             // bytes
)

// KeyID names a key where the key itself must not be seen. It is the beginning of the
// hash of the first text that the key had, in hexadecimal digits when printed.
type KeyID [8]byte

func (id KeyID) String() string { return hex.EncodeToString(id[:]) }

// MarshalText implements encoding.TextMarshaler.
func (id KeyID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *KeyID) UnmarshalText(text []byte) error {
	return decodeDigits(id[:], text, "ID of a key")
}

// decodeDigits fills out from as many hexadecimal digits as that takes.
func decodeDigits(out, text []byte, what string) error {
	if len(text) == 2*len(out) {
		if _, err := hex.Decode(out, text); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%q is no %s, expected %d hexadecimal digits", text, what, 2*len(out))
}

// Key is what is known of an API key, all but its text. Times are whole seconds, UTC.
type Key struct {
	ID      KeyID     `json:"id"`
	Owner   ID        `json:"owner,omitzero"` // the account that it belongs to; zero: the operator
	Name    string    `json:"name"`           // chosen by whoever created it; need not be unique
	Created time.Time `json:"created"`
	Rotated time.Time `json:"rotated,omitzero"`  // when it got its present text, if not when created
	Overlap time.Time `json:"overlap,omitzero"`  // until when the text before that works too
	Expires time.Time `json:"expires,omitzero"`  // when it ends by itself; zero: never
	Revoked time.Time `json:"revoked,omitzero"`  // zero while the key is live
	Guarded bool      `json:"guarded,omitempty"` // a password must come with it
	Rules   *Rules    `json:"rules,omitempty"`   // nil where there are none; never changed

	password *hash // where it is guarded
	owner    *holder
}

// Live says whether the key was not revoked. It may have expired nevertheless.
func (k *Key) Live() bool { return k.Revoked.IsZero() }

// Ended says whether nothing can be asked with the key any more: it was revoked, or it
// has expired.
func (k *Key) Ended(now time.Time) bool {
	return !k.Live() || !k.Expires.IsZero() && !now.Before(k.Expires)
}

// Account is the account that the key belongs to, as it is now; nil where it is the
// operator's. It must not be changed.
func (k *Key) Account() *Account {
	if k.owner == nil {
		return nil
	}
	return &k.owner.load().Account
}

// Accepts says whether a password that came with the key is the right one. For a key
// that is not guarded any is.
func (k *Key) Accepts(password string) bool {
	if k.password == nil {
		return true
	}
	h := sha256.Sum256([]byte(password))
	return subtle.ConstantTimeCompare(h[:], k.password[:]) == 1
}

// hash is what a text that nobody can guess is stored and looked up by.
type hash [sha256.Size]byte

func (h hash) keyID() (id KeyID) {
	copy(id[:], h[:])
	return id
}

// MarshalText implements encoding.TextMarshaler.
func (h hash) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(h[:])), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *hash) UnmarshalText(text []byte) error { return decodeDigits(h[:], text, "hash") }

// newSecret makes the text of a key, a key's password or a token.
func newSecret() string {
	var b [secretBytes]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	return hex.EncodeToString(b[:])
}

// hashOf returns the hash of a text that newSecret may have made, and false for any
// other.
func hashOf(secret string) (hash, bool) {
	if len(secret) != secretLen {
		return hash{}, false
	}
	var b [secretLen]byte // not a conversion, which would allocate
	copy(b[:], secret)
	return sha256.Sum256(b[:]), true
}

// checkName refuses names that would spoil a list in a terminal.
func checkName(name string) error {
	if len(name) > maxName {
		return invalid(FieldName, "the key's name has %d bytes, expected at most %d", len(name), maxName)
	}
	if !utf8.ValidString(name) {
		return invalid(FieldName, "the key's name %q is not UTF-8", name)
	}
	for _, r := range name {
		if !unicode.IsPrint(r) {
			return invalid(FieldName, "the key's name %q has the character %U in it, expected printable ones", name, r)
		}
	}
	return nil
}
