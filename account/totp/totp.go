// Package totp makes and checks time-based one-time passwords (RFC 6238), as authenticator
// apps show them: six digits, a new code every 30 seconds, HMAC-SHA-1.
package totp

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base32"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"
)

const (
	secretBytes = 20 // the recommendation of RFC 4226
	period      = 30 // seconds
	// tolerated is how many periods the clock of a device may be ahead or behind.
	tolerated = 1
)

// Secret is shared with the user's device. Its text is the base32 form that users can type.
type Secret string

var encoding = base32.StdEncoding.WithPadding(base32.NoPadding)

// NewSecret returns a random secret.
func NewSecret() Secret {
	var b [secretBytes]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	return Secret(encoding.EncodeToString(b[:]))
}

// Check returns an error unless s has the form that NewSecret returns.
func (s Secret) Check() error {
	b, err := encoding.DecodeString(string(s))
	if err != nil || len(b) != secretBytes {
		return fmt.Errorf("a secret of %d characters that is not valid (want %d bytes in base32)", len(s), secretBytes)
	}
	return nil
}

// URL returns the otpauth URL that a QR code shows to a device. The issuer names the service.
func (s Secret) URL(issuer, user string) string {
	issuer = strings.ReplaceAll(issuer, ":", " ") // separates the issuer from the user
	query := url.Values{"secret": {string(s)}, "issuer": {issuer}}.Encode()
	return "otpauth://totp/" + url.PathEscape(issuer) + ":" + url.PathEscape(user) + "?" + strings.ReplaceAll(query, "+", "%20")
}

// Step returns the number of the period in which a time lies.
func Step(at time.Time) uint64 { return uint64(at.Unix()) / period }

// Code returns the code of a period.
func (s Secret) Code(step uint64) (string, error) {
	code, err := hotp.GenerateCodeCustom(string(s), step, hotp.ValidateOpts{Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1})
	if err != nil {
		return "", fmt.Errorf("one-time password: %w", err)
	}
	return code, nil
}

// Match returns the period whose code the user typed. Only periods after the one that was
// used last are valid, so that a code works once.
func (s Secret) Match(typed string, now time.Time, used uint64) (step uint64, ok bool) {
	typed = strings.Join(strings.Fields(typed), "")
	current := Step(now)
	for candidate := current - tolerated; candidate <= current+tolerated; candidate++ {
		code, err := s.Code(candidate)
		if err == nil && candidate > used && subtle.ConstantTimeCompare([]byte(code), []byte(typed)) == 1 {
			step, ok = candidate, true
		}
	}
	return step, ok
}
