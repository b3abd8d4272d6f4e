package passkey_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"strings"
	"testing"
	"time"

	"ashlar/account/passkey"
	"ashlar/account/passkey/passkeytest"
)

var now = time.Unix(1_800_000_000, 0)

func home(t testing.TB) passkey.Site {
	t.Helper()
	s, err := passkey.SiteOf("https", "rpc.example.org:8443")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// register registers a device.
func register(d *passkeytest.Device, c passkey.Ceremony, at time.Time) (passkey.Credential, error) {
	d.Helper()
	options, err := c.Creation("Service", passkey.User{ID: []byte("somebody"), Name: "a@example.org"}, nil)
	if err != nil {
		d.Fatal(err)
	}
	return c.Registered(d.Create(options), at)
}

// use uses a device's passkey.
func use(d *passkeytest.Device, c passkey.Ceremony, at time.Time) (*passkey.Answer, error) {
	d.Helper()
	options, err := c.Any()
	if err != nil {
		d.Fatal(err)
	}
	return c.Answered(d.Get(options), at)
}

// A passkey of each kind of key registers and signs; another key and another message do not.
func TestKeys(t *testing.T) {
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	site, other := home(t), passkeytest.New(t, "")
	for _, d := range []*passkeytest.Device{passkeytest.New(t, site.Origin), {TB: t, Key: edwards}, {TB: t, Key: rsaKey}} {
		d.Origin, d.Flags, d.Count, d.ID = site.Origin, passkeytest.Present|passkeytest.Verified, 7, []byte("an ID")
		made, err := register(d, passkey.Begin(site, now), now)
		if err != nil || string(made.ID) != "an ID" || made.Count != 7 || !made.Alone {
			t.Fatalf("%T: registered as %+v, %v", d.Key, made, err)
		}
		answer, err := use(d, passkey.Begin(site, now), now)
		if err != nil || string(answer.User) != "somebody" || string(answer.ID) != "an ID" || !answer.Verified || answer.Count != 8 || answer.Host != "rpc.example.org" {
			t.Fatalf("%T: answer %+v, %v", d.Key, answer, err)
		}
		if !answer.SignedBy(made.Key) {
			t.Errorf("%T: the signature is refused", d.Key)
		}
		d.Key = other.Key
		if forged, err := use(d, passkey.Begin(site, now), now); err != nil || forged.SignedBy(made.Key) {
			t.Errorf("the signature of another key is accepted, %v", err)
		}
	}
}

func TestUnsupportedKeys(t *testing.T) {
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	site := home(t)
	for _, d := range []*passkeytest.Device{{TB: t, Key: small}, {TB: t, Key: curve}} {
		d.Origin, d.Flags, d.ID = site.Origin, passkeytest.Present, []byte{1}
		if _, err := register(d, passkey.Begin(site, now), now); !errors.Is(err, passkey.ErrAnswer) {
			t.Errorf("%T: %v", d.Key, err)
		}
	}
}

// An answer is valid for its ceremony only: the challenge, the page, the host, the time.
func TestWrongAnswers(t *testing.T) {
	site := home(t)
	c := passkey.Begin(site, now)
	for name, k := range map[string]struct {
		wrong func(*passkeytest.Device) passkey.Ceremony // changes the device, and returns the ceremony that the answer is checked with
		at    time.Duration
		want  error
	}{
		"another origin":     {func(d *passkeytest.Device) passkey.Ceremony { d.Origin = "https://evil.example"; return c }, 0, passkey.ErrAnswer},
		"another port":       {func(d *passkeytest.Device) passkey.Ceremony { d.Origin = "https://rpc.example.org"; return c }, 0, passkey.ErrAnswer},
		"another host":       {func(d *passkeytest.Device) passkey.Ceremony { d.Host = "evil.example"; return c }, 0, passkey.ErrAnswer},
		"nobody is present":  {func(d *passkeytest.Device) passkey.Ceremony { d.Flags = passkeytest.Verified; return c }, 0, passkey.ErrAnswer},
		"backed up, but not": {func(d *passkeytest.Device) passkey.Ceremony { d.Flags |= 1 << 4; return c }, 0, passkey.ErrAnswer},
		"another challenge":  {func(*passkeytest.Device) passkey.Ceremony { return passkey.Begin(site, now) }, 0, passkey.ErrLate},
		"no ceremony":        {func(*passkeytest.Device) passkey.Ceremony { return passkey.Ceremony{} }, 0, passkey.ErrLate},
		"too late":           {func(*passkeytest.Device) passkey.Ceremony { return c }, passkey.Time, passkey.ErrLate},
	} {
		d := passkeytest.New(t, site.Origin)
		checked := k.wrong(d)
		options, err := c.Creation("Service", passkey.User{ID: []byte{1}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := checked.Registered(d.Create(options), now.Add(k.at)); !errors.Is(err, k.want) {
			t.Errorf("%s, to register: %v", name, err)
		}
		if options, err = c.Any(); err != nil {
			t.Fatal(err)
		}
		if _, err := checked.Answered(d.Get(options), now.Add(k.at)); !errors.Is(err, k.want) {
			t.Errorf("%s, to sign in: %v", name, err)
		}
	}
}

// An answer to one kind of ceremony is not one to the other.
func TestKindsOfAnswers(t *testing.T) {
	site := home(t)
	d, c := passkeytest.New(t, site.Origin), passkey.Begin(home(t), now)
	options, err := c.Creation("Service", passkey.User{ID: []byte{1}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Answered(d.Create(options), now); !errors.Is(err, passkey.ErrAnswer) {
		t.Errorf("a registration, to sign in: %v", err)
	}
	if _, err := c.Registered(d.Get(options), now); !errors.Is(err, passkey.ErrAnswer) {
		t.Errorf("a sign-in, to register: %v", err)
	}
}

func TestCopied(t *testing.T) {
	for _, c := range []struct {
		last, count uint32
		copied      bool
	}{{0, 0, false}, {0, 1, false}, {1, 2, false}, {2, 2, true}, {3, 2, true}, {1, 0, true}} {
		if got := (&passkey.Answer{Count: c.count}).Copied(c.last); got != c.copied {
			t.Errorf("%d after %d: %v", c.count, c.last, got)
		}
	}
}

func TestSites(t *testing.T) {
	for _, c := range []struct{ scheme, host, origin, name string }{
		{"https", "RPC.example.org", "https://rpc.example.org", "rpc.example.org"},
		{"https", "rpc.example.org:443", "https://rpc.example.org", "rpc.example.org"},
		{"http", "localhost:8545", "http://localhost:8545", "localhost"},
		{"http", "rpc.example.org", "", ""},
		{"http", "127.0.0.1:8545", "", ""},
		{"https", "[::1]:8545", "", ""},
		{"https", "[::1]", "", ""},
		{"https", "", "", ""},
	} {
		s, err := passkey.SiteOf(c.scheme, c.host)
		if s != (passkey.Site{Origin: c.origin, Host: c.name}) || (err == nil) != (c.origin != "") {
			t.Errorf("%s://%s: %+v, %v", c.scheme, c.host, s, err)
		}
	}
}

// FuzzAnswers searches for answers that make a decoder panic.
func FuzzAnswers(f *testing.F) {
	site := home(f)
	d, c := passkeytest.New(f, site.Origin), passkey.Begin(site, now)
	options, err := c.Creation("Service", passkey.User{ID: []byte{1}}, nil)
	if err != nil {
		f.Fatal(err)
	}
	for _, answer := range []string{d.Create(options), d.Get(options), "{}", strings.Repeat(" ", 40<<10)} {
		f.Add(answer)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		if made, err := c.Registered(answer, now); err == nil && (len(made.ID) == 0 || made.Key.Check() != nil) {
			t.Errorf("%q is registered as %+v", answer, made)
		}
		if a, err := c.Answered(answer, now); err == nil && a.Host != site.Host {
			t.Errorf("%q is an answer for %s", answer, a.Host)
		}
	})
}
