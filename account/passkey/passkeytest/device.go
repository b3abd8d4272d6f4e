// Package passkeytest has a device that makes and uses passkeys in tests, as a browser and an
// authenticator do together. Its fields can make it answer wrongly, too.
package passkeytest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"testing"
)

// Device has one passkey.
type Device struct {
	testing.TB
	Origin string // of the page that it is asked by
	Host   string // whose passkey it uses; empty: the one in the options
	Flags  byte
	Count  uint32 // of the last use; 0: it has no counter
	User   []byte // of the registration
	ID     []byte
	Key    crypto.Signer
}

// Flags of authenticators.
const (
	Present    = 1 << 0
	Verified   = 1 << 2
	credential = 1 << 6
)

// New returns a device that verifies its user and has a counter.
func New(t testing.TB, origin string) *Device {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	d := &Device{TB: t, Origin: origin, Flags: Present | Verified, Count: 1, ID: make([]byte, 16), Key: key}
	_, _ = rand.Read(d.ID) // documented never to fail
	return d
}

// options are what Create and Get read of the options of a ceremony.
type options struct {
	Challenge string
	RPID      string `json:"rpId"`
	RP        struct{ ID string }
	User      struct{ ID string }
}

func (d *Device) decode(text string) (o options) {
	d.Helper()
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		d.Fatalf("options %q: %v", text, err)
	}
	return o
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// clientData returns what a browser says of the page.
func (d *Device) clientData(kind, challenge string) []byte {
	raw, err := json.Marshal(map[string]any{"type": kind, "challenge": challenge, "origin": d.Origin, "crossOrigin": false})
	if err != nil {
		d.Fatal(err)
	}
	return raw
}

func (d *Device) authenticatorData(host string, flags byte) []byte {
	if d.Host != "" {
		host = d.Host
	}
	hash := sha256.Sum256([]byte(host))
	return binary.BigEndian.AppendUint32(append(hash[:], flags), d.Count)
}

// Create answers the options of a registration.
func (d *Device) Create(text string) string {
	d.Helper()
	o := d.decode(text)
	user, err := base64.RawURLEncoding.DecodeString(o.User.ID)
	if err != nil {
		d.Fatal(err)
	}
	d.User = user
	public, err := x509.MarshalPKIXPublicKey(d.Key.Public())
	if err != nil {
		d.Fatal(err)
	}
	data := append(d.authenticatorData(o.RP.ID, d.Flags|credential), make([]byte, 16)...)
	data = append(binary.BigEndian.AppendUint16(data, uint16(len(d.ID))), d.ID...)
	return d.answer(map[string]any{
		"clientDataJSON":    encode(d.clientData("webauthn.create", o.Challenge)),
		"authenticatorData": encode(append(data, 0xa0)), // an empty map of CBOR
		"publicKey":         encode(public),
	})
}

// Get answers the options of a use.
func (d *Device) Get(text string) string {
	d.Helper()
	if d.Count > 0 {
		d.Count++
	}
	o := d.decode(text)
	client, data := d.clientData("webauthn.get", o.Challenge), d.authenticatorData(o.RPID, d.Flags)
	hash := sha256.Sum256(client)
	signed := append(data[:len(data):len(data)], hash[:]...)
	digest, how := sha256.Sum256(signed), crypto.SHA256
	message := digest[:]
	if _, whole := d.Key.(ed25519.PrivateKey); whole {
		message, how = signed, 0
	}
	signature, err := d.Key.Sign(rand.Reader, message, how)
	if err != nil {
		d.Fatal(err)
	}
	return d.answer(map[string]any{
		"clientDataJSON": encode(client), "authenticatorData": encode(data), "signature": encode(signature), "userHandle": encode(d.User),
	})
}

func (d *Device) answer(response map[string]any) string {
	raw, err := json.Marshal(map[string]any{
		"type": "public-key", "id": encode(d.ID), "rawId": encode(d.ID), "response": response,
		"clientExtensionResults": map[string]any{"credProps": map[string]any{"rk": true}},
	})
	if err != nil {
		d.Fatal(err)
	}
	return string(raw)
}
