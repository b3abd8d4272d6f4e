package bls

import (
	"math/big"
	"strings"
	"testing"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
)

// sign returns the public key of a secret, and its signature of a message.
func sign(t *testing.T, secret int64, message [32]byte) (PublicKey, bls12381.G2Affine) {
	t.Helper()
	_, _, generator, _ := bls12381.Generators()
	var point bls12381.G1Affine
	point.ScalarMultiplication(&generator, big.NewInt(secret))
	key, err := ParsePublicKey(point.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	hashed, err := bls12381.HashToG2(message[:], []byte(suite))
	if err != nil {
		t.Fatal(err)
	}
	var signature bls12381.G2Affine
	return key, *signature.ScalarMultiplication(&hashed, big.NewInt(secret))
}

func TestVerify(t *testing.T) {
	message := [32]byte{1, 2, 3}
	a, signedA := sign(t, 7, message)
	b, signedB := sign(t, 11, message)
	minusA, _ := sign(t, -7, message)
	var both bls12381.G2Affine
	both.Add(&signedA, &signedB)
	var infinity bls12381.G2Affine
	for name, test := range map[string]struct {
		signers   []PublicKey
		message   [32]byte
		signature [SignatureSize]byte
		want      string // part of the error; empty: valid
	}{
		"one":             {[]PublicKey{a}, message, signedA.Bytes(), ""},
		"two":             {[]PublicKey{a, b}, message, both.Bytes(), ""},
		"one of two":      {[]PublicKey{a, b}, message, signedA.Bytes(), "not one of these signers"},
		"one too many":    {[]PublicKey{a}, message, both.Bytes(), "not one of these signers"},
		"another message": {[]PublicKey{a}, [32]byte{1, 2, 4}, signedA.Bytes(), "not one of these signers"},
		"nobody":          {nil, message, infinity.Bytes(), "without signers"},
		"keys cancel out": {[]PublicKey{a, minusA}, message, infinity.Bytes(), "identity"},
		"identity":        {[]PublicKey{a}, message, infinity.Bytes(), "not one of these signers"},
		"no point":        {[]PublicKey{a}, message, [SignatureSize]byte{}, "invalid signature"},
	} {
		err := Verify(test.signers, test.message, test.signature)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// Points of the curve outside of the group are refused, as keys and as signatures: most points
// with a small coordinate are.
func TestPointsOutsideOfTheGroup(t *testing.T) {
	const compressed = 1 << 7
	key, _ := sign(t, 7, [32]byte{})
	keys, signatures := 0, 0
	for x := byte(1); x < 40; x++ {
		var k [PublicKeySize]byte
		k[0], k[PublicKeySize-1] = compressed, x
		if _, err := ParsePublicKey(k); err == nil {
			t.Errorf("the key %#x was accepted", k)
		} else if strings.Contains(err.Error(), "subgroup") {
			keys++
		}
		var s [SignatureSize]byte
		s[0], s[SignatureSize-1] = compressed, x
		if err := Verify([]PublicKey{key}, [32]byte{}, s); err == nil {
			t.Errorf("the signature %#x was accepted", s)
		} else if strings.Contains(err.Error(), "subgroup") {
			signatures++
		}
	}
	if keys == 0 || signatures == 0 {
		t.Errorf("%d keys and %d signatures were on the curve outside of the group, expected some", keys, signatures)
	}
	if _, err := ParsePublicKey([PublicKeySize]byte{compressed | 1<<6}); err == nil || !strings.Contains(err.Error(), "identity") {
		t.Errorf("the identity as a key: %v", err)
	}
}
