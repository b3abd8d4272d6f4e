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

// KeyID identifies a key without revealing its secret. It is the first 8 bytes of the hash
// of the key's first secret, printed in hexadecimal digits.
type KeyID [8]byte

func (id KeyID) String() string { return hex.EncodeToString(id[:]) }

// MarshalText implements encoding.TextMarshaler.
func (id KeyID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *KeyID) UnmarshalText(text []byte) error {
	return decodeDigits(id[:], text, "ID of a key")
}

// decodeDigits decodes text, which must be exactly 2*len(out) hexadecimal digits.
func decodeDigits(out, text []byte, what string) error {
	if len(text) == 2*len(out) {
		if _, err := hex.Decode(out, text); err == nil {
			return nil
		}
	}
	return fmt.Errorf("invalid %s %q (want %d hexadecimal digits)", what, text, 2*len(out))
}

// Key describes an API key without its secret. Times are whole seconds, UTC.
type Key struct {
	ID      KeyID     `json:"id"`
	Owner   ID        `json:"owner,omitzero"` // account; zero: the operator
	Name    string    `json:"name"`           // chosen by the creator; need not be unique
	Created time.Time `json:"created"`
	Rotated time.Time `json:"rotated,omitzero"`  // creation of the current secret; zero if never rotated
	Overlap time.Time `json:"overlap,omitzero"`  // when the previous secret stops working
	Expires time.Time `json:"expires,omitzero"`  // zero: never
	Revoked time.Time `json:"revoked,omitzero"`  // zero while the key is live
	Guarded bool      `json:"guarded,omitempty"` // requests must also send the key's password
	Rules   *Rules    `json:"rules,omitempty"`   // nil: no restrictions; immutable
	Unsaved bool      `json:"unsaved,omitempty"` // a restriction is in effect but not durable
	// Unreadable is why the key's newest row cannot be read, which disables the key; empty
	// for other keys. It can only be revoked.
	Unreadable string `json:"unreadable,omitempty"`

	password *hash // nil unless Guarded
	owner    *holder
}

// Live reports whether the key has not been revoked. A live key may have expired.
func (k *Key) Live() bool { return k.Revoked.IsZero() }

// Ended reports whether the key was revoked or has expired.
func (k *Key) Ended(now time.Time) bool {
	return !k.Live() || !k.Expires.IsZero() && !now.Before(k.Expires)
}

// Account returns the current state of the account that owns the key, nil for the
// operator's keys. It must not be modified.
func (k *Key) Account() *Account {
	if k.owner == nil {
		return nil
	}
	return &k.owner.load().Account
}

// Accepts reports whether password, sent along with the key, is correct. A key that is not
// guarded accepts any password.
func (k *Key) Accepts(password string) bool {
	if k.password == nil {
		return true
	}
	h := sha256.Sum256([]byte(password))
	return subtle.ConstantTimeCompare(h[:], k.password[:]) == 1
}

// hash is the SHA-256 of a secret or token, stored and looked up in its place.
type hash [sha256.Size]byte

func (h hash) keyID() (id KeyID) {
	copy(id[:], h[:])
	return id
}

// MarshalText implements encoding.TextMarshaler.
func (h hash) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(h[:])), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *hash) UnmarshalText(text []byte) error { return decodeDigits(h[:], text, "hash") }

// newSecret returns a random secret: of a key, a key's password or a token.
func newSecret() string {
	var b [secretBytes]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	return hex.EncodeToString(b[:])
}

// hashOf returns the hash of a secret, and false if the text does not have the form that
// newSecret produces.
func hashOf(secret string) (hash, bool) {
	if len(secret) != secretLen {
		return hash{}, false
	}
	var b [secretLen]byte // not a conversion, which would allocate
	copy(b[:], secret)
	return sha256.Sum256(b[:]), true
}

// sumOf returns the hash of a text of any form.
func sumOf(text string) hash { return sha256.Sum256([]byte(text)) }

// checkName rejects names of keys, tokens, passkeys and teams that are too long or would garble a list in a terminal.
func checkName(name string) error {
	if len(name) > maxName {
		return invalid(FieldName, "the name has %d bytes, expected at most %d", len(name), maxName)
	}
	if !utf8.ValidString(name) {
		return invalid(FieldName, "the name %q is not UTF-8", name)
	}
	for _, r := range name {
		if !unicode.IsPrint(r) {
			return invalid(FieldName, "the name %q contains the character %U, expected printable ones", name, r)
		}
	}
	return nil
}
