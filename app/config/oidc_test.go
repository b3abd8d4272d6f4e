package config

import (
	"os"
	"path/filepath"
	"testing"
)

func TestOIDC(t *testing.T) {
	for _, c := range []struct {
		o    OIDC
		want bool
	}{
		{OIDC{}, true}, {OIDC{Client: "a"}, false}, {OIDC{Create: true}, false}, {OIDC{Issuer: "https://id.test"}, false},
		{OIDC{Issuer: "https://id.test/realm", Client: "a", Domains: []string{"example.org"}}, true},
		{OIDC{Issuer: "http://id.test", Client: "a"}, false}, {OIDC{Issuer: "http://localhost:80", Client: "a"}, true},
		{OIDC{Issuer: "id.test", Client: "a"}, false}, {OIDC{Issuer: "https://id.test", Client: "a", Domains: []string{"@example.org"}}, false},
	} {
		if err := c.o.check(); (err == nil) != c.want {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
	o := OIDC{Issuer: "https://id.test", Client: "a"}
	t.Setenv(oidcSecret, "")
	if _, err := o.Open(); err == nil {
		t.Error("no secret is needed")
	}
	t.Setenv(oidcSecret, "s")
	if p, err := o.Open(); err != nil || p.Name() != "id.test" {
		t.Errorf("%+v, %v", p, err)
	}
	o.SecretFile = filepath.Join(t.TempDir(), "secret")
	if _, err := o.Open(); err == nil {
		t.Error("a missing file is ignored")
	}
	if err := os.WriteFile(o.SecretFile, []byte("s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Open(); err != nil {
		t.Error(err)
	}
}
