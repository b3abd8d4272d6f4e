package account

import (
	"cmp"
	"encoding/hex"
	"net/mail"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"ashlar/account/password"
)

// ID identifies an account. It is random, and written in hexadecimal digits.
type ID [8]byte

func (id ID) String() string { return hex.EncodeToString(id[:]) }

// IsZero reports whether id identifies no account.
func (id ID) IsZero() bool { return id == ID{} }

// MarshalText implements encoding.TextMarshaler.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *ID) UnmarshalText(text []byte) error { return decodeDigits(id[:], text, "ID of an account") }

// Role determines what an account may do.
type Role string

// The roles.
const (
	RoleUser     Role = "user"     // manages its own keys and sees their usage
	RoleOperator Role = "operator" // also manages all accounts
)

func (r Role) check() error {
	if r != RoleUser && r != RoleOperator {
		return invalid(FieldRole, "unknown role %q (want %s or %s)", string(r), RoleUser, RoleOperator)
	}
	return nil
}

// Limits apply to all keys of an account together. A zero stands for the server's
// default.
type Limits struct {
	PerSecond uint32 `json:"perSecond,omitempty"` // credits
	PerDay    uint64 `json:"perDay,omitempty"`    // credits
	Keys      uint32 `json:"keys,omitempty"`      // live at the same time
}

// Account describes an account. Times are whole seconds, UTC.
type Account struct {
	ID       ID        `json:"id"`
	Email    string    `json:"email"`          // in lower case; empty for a team
	Team     string    `json:"team,omitempty"` // the team's name; empty for an account of a user
	Role     Role      `json:"role"`
	Created  time.Time `json:"created"`
	Disabled time.Time `json:"disabled,omitzero"` // zero while the account is enabled
	Password bool      `json:"password"`          // the account has a password
	Verified time.Time `json:"verified,omitzero"` // when the user proved to receive mail at Email; zero: never
	Resets   time.Time `json:"resets,omitzero"`   // when the token to set a password expires
	Limits   Limits    `json:"limits,omitzero"`
	// SecondFactor is since when signing in needs an authenticator app or a passkey; zero: it
	// does not.
	SecondFactor  time.Time `json:"secondFactor,omitzero"`
	App           bool      `json:"app,omitempty"`           // there is an authenticator app
	Passkeys      int       `json:"passkeys,omitempty"`      // number
	RecoveryCodes int       `json:"recoveryCodes,omitempty"` // unused ones
	Provider      string    `json:"provider,omitempty"`      // URL of the OpenID Connect provider with which the user signs in; may be empty
	Unsaved       bool      `json:"unsaved,omitempty"`       // a restriction is in effect but not durable
	// Unreadable is why the account's newest row cannot be read, which disables the
	// account; empty for other accounts.
	Unreadable string `json:"unreadable,omitempty"`

	deleted bool // everything else but ID is zero
}

// Enabled reports whether the account may be used.
func (a *Account) Enabled() bool { return a.Disabled.IsZero() && a.Unreadable == "" && !a.deleted }

// IsTeam reports whether the account is that of a team, which nobody signs in to.
func (a *Account) IsTeam() bool { return a.Team != "" }

// Label returns the text by which people know the account: its e-mail address, or the name of the
// team; its ID if neither can be read.
func (a *Account) Label() string { return cmp.Or(a.Email, a.Team, a.ID.String()) }

// person is one revision of an account with its private fields. It is immutable once stored in a holder.
type person struct {
	Account
	number   uint64 // revision: the sort key of its row
	password string // hashed by package password; empty: none
	epoch    uint64 // sessions of any other epoch have ended
	reset    *hash  // of the token that sets a password, valid until Resets
	// resetMailed says that the token was sent to Email, which its use verifies.
	resetMailed bool
	tokens      []tokenRecord // immutable; expired ones may be among them
	factor      *factorRecord // immutable; nil: none
	identity    *identityRecord
	invitation  *hash       // of the invitation's token used to register
	team        *teamRecord // immutable; nil for an account of a user
}

// holder points to the current revision of an account.
type holder struct{ state atomic.Pointer[person] }

func (h *holder) load() *person { return h.state.Load() }

const (
	maxEmail    = 254 // bytes, the limit of SMTP
	minPassword = 10  // characters
	maxPassword = 256 // bytes
)

// foldEmail returns an e-mail address in the form in which it is stored and looked up.
func foldEmail(text string) (string, error) {
	email := strings.ToLower(strings.TrimSpace(text))
	parsed, err := mail.ParseAddress(email)
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) } // it could control a terminal
	if err != nil || parsed.Address != email || len(email) > maxEmail || strings.ContainsFunc(email, unprintable) {
		return "", invalid(FieldEmail, "invalid e-mail address %.100q (want one such as somebody@example.org)", text)
	}
	return email, nil
}

// checkPassword returns an error if typed is not acceptable as a new password.
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
		return invalid(FieldPassword, "the password is the e-mail address: choose a secret one")
	case password.Guessable(typed, email, name, domain):
		return invalid(FieldPassword, "the password is easy to guess: it consists of little more than common words, sequences, repetitions or years")
	}
	return nil
}
