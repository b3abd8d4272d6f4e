// Package passkey checks the answers of passkeys (Web Authentication, level 3) for a site that
// does not ask which device made them: attestation is "none", so a registration is as
// trustworthy as the page that it came from. A browser decodes the public key, so this package
// reads no CBOR. The usual library, github.com/go-webauthn/webauthn v0.18.2, is not
// used: it adds 2.1 MB to the binary and six modules, nearly all of it for attestations.
//
// A [Ceremony] begins with a random challenge. It is kept where the client cannot modify it,
// and forgotten when an answer has come, right or wrong.
package passkey

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"
)

// MaxID is the greatest length of a credential's ID, in bytes.
const MaxID = 1023

// maxAnswer is longer than any answer, in bytes.
const maxAnswer = 32 << 10

// Time is how long a ceremony may take.
const Time = 5 * time.Minute

var (
	// ErrAnswer means that an answer is not one to the ceremony.
	ErrAnswer = errors.New("this answer of a passkey is not valid")
	// ErrLate means that a ceremony took too long, or has had its answer.
	ErrLate = errors.New("this took too long, or was answered already: try again")
	// ErrSite means that browsers support no passkeys for a site.
	ErrSite = errors.New("passkeys need a host name, and HTTPS unless it is localhost")
)

// Site is what passkeys are bound to.
type Site struct {
	Origin string // such as https://rpc.example.org:8443
	Host   string // of the origin, without the port: the ID of the relying party
}

// SiteOf returns the site of pages with a scheme and a host, which may have a port.
func SiteOf(scheme, host string) (Site, error) {
	host = strings.ToLower(host)
	name, port, err := net.SplitHostPort(host)
	if err != nil { // no port
		name = strings.Trim(host, "[]")
	} else if scheme == "https" && port == "443" || scheme == "http" && port == "80" {
		host = name // browsers leave it out
	}
	_, err = netip.ParseAddr(name)
	if err == nil || name == "" || scheme != "https" && name != "localhost" && !strings.HasSuffix(name, ".localhost") {
		return Site{}, fmt.Errorf("%w: this is %s://%s", ErrSite, scheme, host)
	}
	return Site{scheme + "://" + host, name}, nil
}

// Ceremony is a registration or a use of a passkey that has begun.
type Ceremony struct {
	Site      Site
	Challenge string // base64url
	Until     int64  // Unix seconds
}

// Begin returns a new ceremony.
func Begin(site Site, now time.Time) Ceremony {
	var challenge [32]byte
	_, _ = rand.Read(challenge[:]) // documented never to fail
	return Ceremony{site, base64.RawURLEncoding.EncodeToString(challenge[:]), now.Add(Time).Unix()}
}

// base64url is bytes that JSON has in base64url.
type base64url []byte

func (b base64url) MarshalText() ([]byte, error) {
	return base64.RawURLEncoding.AppendEncode(nil, b), nil
}

func (b *base64url) UnmarshalText(text []byte) (err error) {
	*b, err = base64.RawURLEncoding.Strict().AppendDecode(nil, text)
	return err
}

// credential names a passkey in options and answers.
type credential struct {
	Type string    `json:"type"`
	ID   base64url `json:"id"`
}

func credentials(ids [][]byte) []credential {
	all := make([]credential, len(ids))
	for i, id := range ids {
		all[i] = credential{"public-key", id}
	}
	return all
}

// clientData is what the browser says of the page that asked.
type clientData struct {
	Type        string `json:"type"`
	Challenge   string `json:"challenge"`
	Origin      string `json:"origin"`
	CrossOrigin bool   `json:"crossOrigin"`
	TopOrigin   string `json:"topOrigin"`
}

// decode decodes an answer, which the browser writes as JSON.
func decode(text string, answer any) error {
	if len(text) > maxAnswer {
		return fmt.Errorf("%w: %d bytes", ErrAnswer, len(text))
	}
	if err := json.Unmarshal([]byte(text), answer); err != nil {
		return fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	return nil
}

// check checks that an answer is to this ceremony, and returns what the authenticator says.
// kind is webauthn.create or webauthn.get.
func (c Ceremony) check(kind string, now time.Time, client, authenticator []byte) (authenticatorData, error) {
	if c.Challenge == "" || now.Unix() >= c.Until {
		return authenticatorData{}, ErrLate
	}
	var said clientData
	if err := json.Unmarshal(client, &said); err != nil {
		return authenticatorData{}, fmt.Errorf("%w: client data: %w", ErrAnswer, err)
	}
	data, err := parseAuthenticatorData(authenticator)
	if err != nil {
		return authenticatorData{}, err
	}
	host := sha256.Sum256([]byte(c.Site.Host))
	switch {
	case said.Type != kind:
		err = fmt.Errorf("%w: its type is %q (want %s)", ErrAnswer, said.Type, kind)
	case subtle.ConstantTimeCompare([]byte(said.Challenge), []byte(c.Challenge)) != 1:
		err = ErrLate // the answer to an earlier challenge
	case said.Origin != c.Site.Origin || said.CrossOrigin || said.TopOrigin != "":
		err = fmt.Errorf("%w: it is from a page of %.200q in one of %.200q (want %s)", ErrAnswer, said.Origin, said.TopOrigin, c.Site.Origin)
	case data.host != host:
		err = fmt.Errorf("%w: it is for another host (want %s)", ErrAnswer, c.Site.Host)
	case !data.present:
		err = fmt.Errorf("%w: nobody touched the authenticator", ErrAnswer)
	}
	return data, err
}
