package totp

import (
	"encoding/base32"
	"net/url"
	"testing"
	"time"
)

// The test vectors of RFC 6238, appendix B, for SHA-1; the last six of their eight digits.
func TestVectors(t *testing.T) {
	secret := Secret(base32.StdEncoding.EncodeToString([]byte("12345678901234567890")))
	for seconds, want := range map[int64]string{
		59: "287082", 1111111109: "081804", 1111111111: "050471", 1234567890: "005924", 2000000000: "279037", 20000000000: "353130",
	} {
		at := time.Unix(seconds, 0)
		code, err := secret.Code(Step(at))
		if err != nil || code != want {
			t.Errorf("%d: %s, %v, expected %s", seconds, code, err, want)
		}
		if step, ok := secret.Match(want[:3]+" "+want[3:], at, 0); !ok || step != Step(at) {
			t.Errorf("%d: step %d, %v", seconds, step, ok)
		}
	}
}

// A code is valid in its period and in the next and previous ones, and once.
func TestMatch(t *testing.T) {
	secret, now := NewSecret(), time.Unix(1_800_000_010, 0)
	if err := secret.Check(); err != nil {
		t.Fatal(err)
	}
	code, err := secret.Code(Step(now))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		late time.Duration
		used uint64
		want bool
	}{
		{0, 0, true}, {30 * time.Second, 0, true}, {-30 * time.Second, 0, true}, {60 * time.Second, 0, false}, {-60 * time.Second, 0, false},
		{0, Step(now) - 1, true}, {0, Step(now), false}, {0, Step(now) + 1, false},
	} {
		if _, ok := secret.Match(code, now.Add(c.late), c.used); ok != c.want {
			t.Errorf("%v later, after %d: %v, expected %v", c.late, c.used, ok, c.want)
		}
	}
	for _, typed := range []string{"", "0", code[:5], code + "0"} {
		if _, ok := secret.Match(typed, now, 0); ok {
			t.Errorf("%q is accepted", typed)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, s := range []Secret{"", "AAAA", "!", NewSecret() + "AAAAAAAA", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"} {
		if s.Check() == nil {
			t.Errorf("%q is accepted", s)
		}
	}
}

func TestURL(t *testing.T) {
	u, err := url.Parse(Secret("ABC").URL("rpc.example.org:8545", "a+b@example.org"))
	if err != nil {
		t.Fatal(err)
	}
	if u.Scheme != "otpauth" || u.Host != "totp" || u.Path != "/rpc.example.org 8545:a+b@example.org" || u.Query().Get("secret") != "ABC" || u.Query().Get("issuer") != "rpc.example.org 8545" {
		t.Errorf("%v", u)
	}
}
