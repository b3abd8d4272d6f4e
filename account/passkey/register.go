package passkey

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// User is for whom a passkey is made.
type User struct {
	ID   []byte // returned when the passkey is used without a name; at most 64 bytes, not personal
	Name string // shown by the browser, such as an e-mail address
}

// Credential is a registered passkey.
type Credential struct {
	ID    []byte
	Key   PublicKey
	Count uint32 // the signature counter; 0 if the authenticator has none
	// Alone says that it proves who the user is without a name or password: the authenticator
	// verified the user and finds the passkey by the site.
	Alone bool
}

type party struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type userEntity struct {
	ID          base64url `json:"id"`
	Name        string    `json:"name"`
	DisplayName string    `json:"displayName"`
}

type parameter struct {
	Type string `json:"type"`
	Alg  int    `json:"alg"`
}

type selection struct {
	ResidentKey      string `json:"residentKey"`
	UserVerification string `json:"userVerification"`
}

type creationOptions struct {
	RP                     party        `json:"rp"`
	User                   userEntity   `json:"user"`
	Challenge              string       `json:"challenge"`
	PubKeyCredParams       []parameter  `json:"pubKeyCredParams"`
	Timeout                int64        `json:"timeout"` // milliseconds
	ExcludeCredentials     []credential `json:"excludeCredentials"`
	AuthenticatorSelection selection    `json:"authenticatorSelection"`
	Attestation            string       `json:"attestation"`
	Extensions             struct {
		CredProps bool `json:"credProps"`
	} `json:"extensions"`
}

// Creation returns the options with which a browser makes a passkey, as JSON. An authenticator
// that has one of the registered passkeys refuses.
func (c Ceremony) Creation(service string, user User, registered [][]byte) (string, error) {
	o := creationOptions{
		RP: party{c.Site.Host, service}, User: userEntity{user.ID, user.Name, user.Name}, Challenge: c.Challenge,
		PubKeyCredParams:   []parameter{{"public-key", algorithmEd25519}, {"public-key", algorithmP256}, {"public-key", algorithmRSA}},
		Timeout:            Time.Milliseconds(),
		ExcludeCredentials: credentials(registered), AuthenticatorSelection: selection{"preferred", "preferred"}, Attestation: "none",
	}
	o.Extensions.CredProps = true
	raw, err := json.Marshal(o)
	return string(raw), err
}

// registrationAnswer is the JSON of a PublicKeyCredential that was created.
type registrationAnswer struct {
	credential
	Response struct {
		ClientDataJSON    base64url `json:"clientDataJSON"`
		AuthenticatorData base64url `json:"authenticatorData"`
		PublicKey         base64url `json:"publicKey"`
	} `json:"response"`
	Extensions struct {
		CredProps struct {
			Discoverable bool `json:"rk"`
		} `json:"credProps"`
	} `json:"clientExtensionResults"`
}

// Registered returns the passkey that the answer to Creation describes.
func (c Ceremony) Registered(answer string, now time.Time) (Credential, error) {
	var a registrationAnswer
	if err := decode(answer, &a); err != nil {
		return Credential{}, err
	}
	data, err := c.check("webauthn.create", now, a.Response.ClientDataJSON, a.Response.AuthenticatorData)
	if err != nil {
		return Credential{}, err
	}
	if data.id == nil || !bytes.Equal(data.id, a.ID) {
		return Credential{}, fmt.Errorf("%w: credential %x is registered as %.64x", ErrAnswer, data.id, []byte(a.ID))
	}
	key := PublicKey(a.Response.PublicKey)
	if err := key.Check(); err != nil {
		return Credential{}, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	return Credential{bytes.Clone(data.id), key, data.count, data.verified && a.Extensions.CredProps.Discoverable}, nil
}
