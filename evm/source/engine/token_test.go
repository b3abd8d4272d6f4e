package engine

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// token makes a token of a header and claims, both as text.
func token(secret Secret, header, claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(header)) + "." + encode([]byte(claims))
	mac := hmac.New(sha256.New, secret[:])
	mac.Write([]byte(signed))
	return signed + "." + encode(mac.Sum(nil))
}

const head = `{"alg":"HS256","typ":"JWT"}`

func TestTokens(t *testing.T) {
	secret, now := Secret{1, 2, 3}, time.Unix(1_700_000_000, 500e6)
	at := func(seconds int64) string { return fmt.Sprintf(`{"iat":%d}`, now.Unix()+seconds) }
	right := token(secret, head, at(0))
	parts := strings.Split(right, ".")
	for _, test := range []struct {
		name, authorization string
		want                error
	}{
		{"right", "Bearer " + right, nil},
		{"scheme in another case", "bearer " + right, nil},
		{"a minute ago, nearly", "Bearer " + token(secret, head, at(-59)), nil},
		{"in a minute, nearly", "Bearer " + token(secret, head, at(60)), nil},
		{"a fraction of a second", "Bearer " + token(secret, head, `{"iat":1700000000.25}`), nil},
		{"more claims", "Bearer " + token(secret, head, `{"iat":1700000000,"id":"a","clv":"b","x":[1]}`), nil},
		{"not expired", "Bearer " + token(secret, head, `{"iat":1700000000,"exp":1700000001}`), nil},
		{"nothing", "", errNoToken},
		{"another scheme", "Basic " + right, errNoToken},
		{"no scheme", right, errNoToken},
		{"huge", "Bearer " + strings.Repeat("a", tokenBytes+1), errNoToken},
		{"two parts", "Bearer " + parts[0] + "." + parts[1], errMalformed},
		{"one part", "Bearer " + parts[0], errMalformed},
		{"four parts", "Bearer " + right + ".x", errMalformed},
		{"no base64", "Bearer !." + parts[1] + "." + parts[2], errMalformed},
		{"no JSON", "Bearer " + token(secret, "x", at(0)), errMalformed},
		{"claims that are no JSON", "Bearer " + token(secret, head, "x"), errMalformed},
		{"no algorithm", "Bearer " + token(secret, `{"alg":"none"}`, at(0)), errAlgorithm},
		{"no algorithm, no signature", "Bearer " + base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + parts[1] + ".", errAlgorithm},
		{"another algorithm", "Bearer " + token(secret, `{"alg":"HS512"}`, at(0)), errAlgorithm},
		{"another secret", "Bearer " + token(Secret{9}, head, at(0)), errSignature},
		{"no signature", "Bearer " + parts[0] + "." + parts[1] + ".", errSignature},
		{"a part of the signature", "Bearer " + right[:len(right)-4], errSignature},
		{"other claims under the signature", "Bearer " + parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(at(1))) + "." + parts[2], errSignature},
		{"not made at any time", "Bearer " + token(secret, head, `{}`), errNoIssuedAt},
		{"too old", "Bearer " + token(secret, head, at(-61)), errStale},
		{"too new", "Bearer " + token(secret, head, at(62)), errStale},
		{"of no time", "Bearer " + token(secret, head, `{"iat":1e308}`), errStale},
		{"expired", "Bearer " + token(secret, head, `{"iat":1700000000,"exp":1699999999}`), errExpired},
	} {
		if err := secret.check(test.authorization, now); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, expected %v", test.name, err, test.want)
		}
	}
}

// A token that another program made is right.
func TestTokenOfAnotherProgram(t *testing.T) {
	var secret Secret
	for i := range secret {
		secret[i] = byte(i)
	}
	const made = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpYXQiOjE3MDAwMDAwMDAsImlkIjoibWFkZSB3aXRoIGFub3RoZ" +
		"XIgbGlicmFyeSJ9.JfxQfDqv3_-IXdtgU3C_8RRSfgf0cqa_-k-nZng3rQU"
	if err := secret.check("Bearer "+made, time.Unix(1_700_000_000, 0)); err != nil {
		t.Error(err)
	}
}

func TestSecretFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "below", "jwt.hex")
	made, err := LoadSecret(path)
	if err != nil || made == (Secret{}) {
		t.Fatalf("made %x, %v", made, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("there is more than the secret: %v", left)
	}
	if again, err := LoadSecret(path); err != nil || again != made {
		t.Errorf("read %x, %v, expected %x", again, err, made)
	}
	digits := hex.EncodeToString(made[:])
	for text, right := range map[string]bool{
		digits: true, "0x" + digits + "\r\n": true, "  " + digits: true, strings.ToUpper(digits): true,
		"": false, digits[2:]: false, digits + "00": false, digits[1:]: false, "zz" + digits[2:]: false, digits + " x": false,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := LoadSecret(path); (err == nil) != right || right && got != made {
			t.Errorf("%q: %x, %v", text, got, err)
		}
	}
	if _, err := LoadSecret(dir); err == nil {
		t.Error("a folder was read as a secret")
	}
}
