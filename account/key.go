package account

import (
	"crypto/rand"
	"crypto/sha256"
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

// ID names a key where the key itself must not be seen. It is the beginning of the
// key's hash, in hexadecimal digits when printed.
type ID [8]byte

func (id ID) String() string { return hex.EncodeToString(id[:]) }

// MarshalText implements encoding.TextMarshaler.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *ID) UnmarshalText(text []byte) error {
	if n, err := hex.Decode(id[:], text[:min(len(text), 2*len(id))]); err != nil || n != len(id) || len(text) != 2*len(id) {
		return fmt.Errorf("%q is no ID of a key, expected %d hexadecimal digits", text, 2*len(id))
	}
	return nil
}

// Key is what is known of an API key, all but the key. Times are whole seconds, UTC.
type Key struct {
	ID      ID        `json:"id"`
	Name    string    `json:"name"` // chosen by whoever created it; need not be unique
	Created time.Time `json:"created"`
	Revoked time.Time `json:"revoked,omitzero"` // zero while the key is live
	Rules   *Rules    `json:"rules,omitempty"`  // nil where there are none; never changed
}

// Live says whether requests may be made with the key.
func (k Key) Live() bool { return k.Revoked.IsZero() }

// hash is what a key is stored and looked up by.
type hash [sha256.Size]byte

func (h hash) id() (id ID) {
	copy(id[:], h[:])
	return id
}

// newSecret makes a key.
func newSecret() string {
	var b [secretBytes]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	return hex.EncodeToString(b[:])
}

// hashOf returns the hash of a key, and false if secret cannot be one.
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
		return fmt.Errorf("the key's name has %d bytes, expected at most %d", len(name), maxName)
	}
	if !utf8.ValidString(name) {
		return fmt.Errorf("the key's name %q is not UTF-8", name)
	}
	for _, r := range name {
		if !unicode.IsPrint(r) {
			return fmt.Errorf("the key's name %q has the character %U in it, expected printable ones", name, r)
		}
	}
	return nil
}
