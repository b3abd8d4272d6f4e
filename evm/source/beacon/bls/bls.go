// Package bls verifies the aggregate signatures of Ethereum's consensus layer: BLS on the curve
// BLS12-381, with public keys in G1, signatures in G2 and proofs of possession, which every
// validator gives with its deposit.
package bls

import (
	"errors"
	"fmt"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
)

// Sizes of what is encoded, compressed.
const (
	PublicKeySize = bls12381.SizeOfG1AffineCompressed
	SignatureSize = bls12381.SizeOfG2AffineCompressed
)

// suite is the ciphersuite's name, which is hashed with every message.
const suite = "BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_"

// PublicKey is a valid public key: a point of the group other than the identity.
type PublicKey struct{ point bls12381.G1Affine }

// ParsePublicKey decodes a public key and checks that it is valid (KeyValidate).
func ParsePublicKey(encoded [PublicKeySize]byte) (key PublicKey, err error) {
	if _, err := key.point.SetBytes(encoded[:]); err != nil { // it checks curve and subgroup
		return key, fmt.Errorf("invalid public key %#x: %w", encoded, err)
	}
	if key.point.IsInfinity() {
		return key, fmt.Errorf("invalid public key %#x: it is the identity", encoded)
	}
	return key, nil
}

// errSignature means that the signers have not signed the message.
var errSignature = errors.New("the signature is not one of these signers for this message")

// Verify returns an error unless the signature is that of all signers together for a message
// (FastAggregateVerify). There must be at least one.
func Verify(signers []PublicKey, message [32]byte, signature [SignatureSize]byte) error {
	if len(signers) == 0 {
		return errors.New("a signature without signers")
	}
	var sig bls12381.G2Affine
	if _, err := sig.SetBytes(signature[:]); err != nil { // it checks curve and subgroup
		return fmt.Errorf("invalid signature: %w", err)
	}
	var sum bls12381.G1Jac
	sum.FromAffine(&signers[0].point)
	for i := range signers[1:] {
		sum.AddMixed(&signers[i+1].point)
	}
	var key bls12381.G1Affine
	key.FromJacobian(&sum)
	if key.IsInfinity() {
		return errors.New("the keys of the signers add up to the identity")
	}
	hashed, err := bls12381.HashToG2(message[:], []byte(suite))
	if err != nil {
		return fmt.Errorf("hash the message to the curve: %w", err)
	}
	// e(key, hashed) = e(generator, signature)
	_, _, generator, _ := bls12381.Generators()
	generator.Neg(&generator)
	ok, err := bls12381.PairingCheck([]bls12381.G1Affine{key, generator}, []bls12381.G2Affine{hashed, sig})
	if err != nil {
		return fmt.Errorf("pairing: %w", err)
	}
	if !ok {
		return errSignature
	}
	return nil
}
