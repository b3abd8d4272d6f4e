package passkey

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// requestOptions are the options with which a browser uses a passkey.
type requestOptions struct {
	Challenge        string       `json:"challenge"`
	Timeout          int64        `json:"timeout"` // milliseconds
	RPID             string       `json:"rpId"`
	AllowCredentials []credential `json:"allowCredentials"`
	UserVerification string       `json:"userVerification"`
}

// Any returns the options to use any passkey of the site whose authenticator verifies the user,
// as JSON.
func (c Ceremony) Any() (string, error) { return c.request(nil, "required") }

// OneOf returns the options to use one of these passkeys as a second factor, as JSON.
func (c Ceremony) OneOf(ids [][]byte) (string, error) { return c.request(ids, "discouraged") }

func (c Ceremony) request(ids [][]byte, verification string) (string, error) {
	raw, err := json.Marshal(requestOptions{c.Challenge, Time.Milliseconds(), c.Site.Host, credentials(ids), verification})
	return string(raw), err
}

// Answer is an answer to a ceremony, which is valid if the passkey's key signed it.
type Answer struct {
	ID       []byte // of the passkey
	User     []byte // User.ID of its registration; nil: the authenticator does not say
	Host     string // of the site
	Verified bool   // the authenticator verified the user
	Count    uint32 // the signature counter
	// Challenge is that of the ceremony. Only one answer to it may be accepted.
	Challenge string

	signed, signature []byte
}

// requestAnswer is the JSON of a PublicKeyCredential that was used.
type requestAnswer struct {
	credential
	Response struct {
		ClientDataJSON    base64url `json:"clientDataJSON"`
		AuthenticatorData base64url `json:"authenticatorData"`
		Signature         base64url `json:"signature"`
		UserHandle        base64url `json:"userHandle"`
	} `json:"response"`
}

// Answered returns an answer to the ceremony, whose signature is not checked yet.
func (c Ceremony) Answered(answer string, now time.Time) (*Answer, error) {
	var a requestAnswer
	if err := decode(answer, &a); err != nil {
		return nil, err
	}
	r := &a.Response
	data, err := c.check("webauthn.get", now, r.ClientDataJSON, r.AuthenticatorData)
	if err != nil {
		return nil, err
	}
	if data.id != nil {
		return nil, fmt.Errorf("%w: it registers a credential", ErrAnswer)
	}
	hash := sha256.Sum256(r.ClientDataJSON)
	return &Answer{
		ID: a.ID, User: r.UserHandle, Host: c.Site.Host, Verified: data.verified, Count: data.count, Challenge: c.Challenge,
		signed: slices.Concat(r.AuthenticatorData, hash[:]), signature: r.Signature,
	}, nil
}

// SignedBy reports whether the answer was signed with the private key of key.
func (a *Answer) SignedBy(key PublicKey) bool { return key.verify(a.signed, a.signature) }

// Copied reports whether the counter of an answer shows that the passkey was copied, given the
// counter of the last answer. Authenticators without a counter always say 0.
func (a *Answer) Copied(last uint32) bool {
	return (a.Count != 0 || last != 0) && a.Count <= last
}
