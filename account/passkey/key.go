package passkey

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
)

// PublicKey is a public key, as an X.509 SubjectPublicKeyInfo in DER: Ed25519, ECDSA on P-256,
// or RSA of 2048 to 4096 bits.
type PublicKey []byte

// The algorithms' numbers in COSE.
const (
	algorithmEd25519 = -8
	algorithmP256    = -7
	algorithmRSA     = -257
)

// maxKey is longer than an RSA key of 4096 bits, in bytes.
const maxKey = 1024

func (k PublicKey) parse() (crypto.PublicKey, error) {
	if len(k) > maxKey {
		return nil, fmt.Errorf("public key: %d bytes (want at most %d)", len(k), maxKey)
	}
	parsed, err := x509.ParsePKIXPublicKey(k)
	if err != nil {
		return nil, fmt.Errorf("public key: %w", err)
	}
	switch key := parsed.(type) {
	case ed25519.PublicKey:
		return key, nil
	case *ecdsa.PublicKey:
		if key.Curve == elliptic.P256() {
			return key, nil
		}
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits >= 2048 && bits <= 4096 && key.E >= 3 {
			return key, nil
		}
	}
	return nil, fmt.Errorf("public key: unsupported %T or size (want Ed25519, ECDSA on P-256, or RSA of 2048 to 4096 bits)", parsed)
}

// Check returns an error unless the key is one that this package supports.
func (k PublicKey) Check() error {
	_, err := k.parse()
	return err
}

func (k PublicKey) verify(signed, signature []byte) bool {
	parsed, err := k.parse()
	if err != nil {
		return false
	}
	hash := sha256.Sum256(signed)
	switch key := parsed.(type) {
	case ed25519.PublicKey:
		return ed25519.Verify(key, signed, signature)
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(key, hash[:], signature)
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(key, crypto.SHA256, hash[:], signature) == nil
	}
	return false
}
