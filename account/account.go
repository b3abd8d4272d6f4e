package account

import (
	"encoding/hex"
	"net/mail"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"ashlar/account/password"
)

// ID names an account. It is random, and written in hexadecimal digits.
type ID [8]byte

func (id ID) String() string { return hex.EncodeToString(id[:]) }

// IsZero says whether id names no account.
func (id ID) IsZero() bool { return id == ID{} }

// MarshalText implements encoding.TextMarshaler.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *ID) UnmarshalText(text []byte) error { return decodeDigits(id[:], text, "ID of an account") }

// Role is what an account may do.
type Role string

// The roles.
const (
	RoleUser     Role = "user"     // has keys, and sees what is done with them
	RoleOperator Role = "operator" // looks after all accounts too
)

func (r Role) check() error {
	if r != RoleUser && r != RoleOperator {
		return invalid(FieldRole, "%q is no role: expected %s or %s", string(r), RoleUser, RoleOperator)
	}
	return nil
}

// Limits are those of all keys of an account together. Zeros are as the server has it
// for all accounts.
type Limits struct {
	PerSecond uint32 `json:"perSecond,omitempty"` // credits
	PerDay    uint64 `json:"perDay,omitempty"`    // credits
	Keys      uint32 `json:"keys,omitempty"`      // that may be live at once
}

// Account is what is known of an account. Times are whole seconds, UTC.
type Account struct {
	ID       ID        `json:"id"`
	Email    string    `json:"email"` // in lower case
	Role     Role      `json:"role"`
	Created  time.Time `json:"created"`
	Disabled time.Time `json:"disabled,omitzero"` // zero while the account is enabled
	Password bool      `json:"password"`          // there is one to sign in with
	Resets   time.Time `json:"resets,omitzero"`   // until when a token to set a password may be used
	Limits   Limits    `json:"limits,omitzero"`
}

// Enabled says whether the account may be used.
func (a *Account) Enabled() bool { return a.Disabled.IsZero() }

// person is a state of an account, and what nobody sees of it.
type person struct {
	Account
	number     uint64 // revision, as the sort key of its row
	password   string // as package password makes it; empty: none
	epoch      uint64 // of sessions: those of another one are over
	reset      *hash  // of the token that sets a password, until Resets
	invitation *hash  // with which the account was made
}

// holder holds the state of an account for those who must know it at any time.
type holder struct{ state atomic.Pointer[person] }

func (h *holder) load() *person { return h.state.Load() }

const (
	maxEmail    = 254 // bytes, as SMTP has it
	minPassword = 10  // characters
	maxPassword = 256 // bytes
)

// foldEmail returns an e-mail address as it is stored and looked for.
func foldEmail(text string) (string, error) {
	email := strings.ToLower(strings.TrimSpace(text))
	parsed, err := mail.ParseAddress(email)
	if err != nil || parsed.Address != email || len(email) > maxEmail {
		return "", invalid(FieldEmail, "%.100q is no e-mail address: expected one such as somebody@example.org", text)
	}
	return email, nil
}

// checkPassword says what is wrong with a password that somebody wants to have.
func checkPassword(email, typed string) error {
	name, domain, _ := strings.Cut(email, "@")
	switch {
	case utf8.RuneCountInString(typed) < minPassword:
		return invalid(FieldPassword, "the password is too short: expected at least %d characters", minPassword)
	case len(typed) > maxPassword:
		return invalid(FieldPassword, "the password is too long: expected at most %d bytes", maxPassword)
	case !utf8.ValidString(typed):
		return invalid(FieldPassword, "the password is not UTF-8")
	case strings.EqualFold(typed, email):
		return invalid(FieldPassword, "the password is the e-mail address: expected one that nobody knows")
	case password.Guessable(typed, email, name, domain):
		return invalid(FieldPassword, "the password is easy to guess, being little more than common words, sequences, repeats or years: expected one with more in it that nobody knows")
	}
	return nil
}
