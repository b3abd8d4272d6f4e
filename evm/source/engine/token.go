package engine

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Secret is the secret shared with the consensus client. It signs the client's tokens.
type Secret [32]byte

// LoadSecret reads a secret in hexadecimal from a file. If the file does not exist,
// LoadSecret creates it with a new secret, readable by its owner only.
func LoadSecret(path string) (Secret, error) {
	secret, err := readSecret(path)
	if errors.Is(err, fs.ErrNotExist) {
		return createSecret(path)
	}
	return secret, err
}

// CheckSecret returns what is wrong with a file with a secret, nil if it does not exist.
func CheckSecret(path string) error {
	if _, err := readSecret(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func readSecret(path string) (Secret, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Secret{}, err
	}
	var secret Secret
	digits := strings.TrimPrefix(strings.TrimSpace(string(text)), "0x")
	if n, err := hex.Decode(secret[:], []byte(digits[:min(len(digits), hex.EncodedLen(len(secret)))])); err != nil || n != len(secret) || len(digits) != hex.EncodedLen(n) {
		return Secret{}, fmt.Errorf("%s: expected a secret of 32 bytes in hexadecimal and nothing else", path)
	}
	return secret, nil
}

// createSecret creates the file atomically.
func createSecret(path string) (secret Secret, err error) {
	if _, err := rand.Read(secret[:]); err != nil {
		return secret, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return secret, err
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // with the mode 0600
	if err != nil {
		return secret, err
	}
	_, err = file.WriteString(hex.EncodeToString(secret[:]) + "\n")
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(file.Name()))
	}
	return secret, err
}

const (
	// tokenBytes is the maximum size of a token, larger than that of any client.
	tokenBytes = 4096
	// tokenWindow is the maximum difference between now and the issue time of a token.
	tokenWindow = time.Minute
)

// Errors of tokens. They reveal nothing about valid tokens.
var (
	errNoToken    = errors.New("missing token: expected the header Authorization: Bearer TOKEN")
	errMalformed  = errors.New("malformed token: expected three parts of base64")
	errAlgorithm  = errors.New("wrong algorithm: expected a token with HS256")
	errSignature  = errors.New("invalid signature: expected one made with the secret that both sides share")
	errNoIssuedAt = errors.New("missing claim iat: expected when the token was made")
	errStale      = errors.New("stale token: expected one that was made within 60 seconds of now; are both clocks right?")
	errExpired    = errors.New("expired token")
)

// check returns what is wrong with the value of an Authorization header.
func (s Secret) check(authorization string, now time.Time) error {
	scheme, token, ok := strings.Cut(authorization, " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") || len(token) > tokenBytes {
		return errNoToken
	}
	var claims jwt.RegisteredClaims
	_, err := tokenParser.ParseWithClaims(strings.TrimSpace(token), &claims, func(t *jwt.Token) (any, error) {
		if t.Method != jwt.SigningMethodHS256 {
			return nil, errAlgorithm
		}
		return s[:], nil
	})
	switch {
	case errors.Is(err, jwt.ErrTokenUnverifiable):
		return errAlgorithm
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return errSignature
	case err != nil:
		return errMalformed
	case claims.IssuedAt == nil:
		return errNoIssuedAt
	case now.Sub(claims.IssuedAt.Time).Abs() > tokenWindow:
		return errStale
	case claims.ExpiresAt != nil && !now.Before(claims.ExpiresAt.Time):
		return errExpired
	}
	return nil
}

// tokenParser does not validate the claims. [Secret.check] does, since the Engine API
// limits the age of a token and the library does not.
var tokenParser = jwt.NewParser(jwt.WithoutClaimsValidation())
