package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Files with secrets and certificates that a server could not start without are read before it is started. Secrets in the
// environment are not checked, because whoever checks the file may have another environment than the server.
func TestCheckReadsSecretsAndCertificates(t *testing.T) {
	folder := t.TempDir()
	secret, empty, missing := filepath.Join(folder, "secret"), filepath.Join(folder, "empty"), filepath.Join(folder, "missing")
	for file, text := range map[string]string{secret: "s\n", empty: "\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const (
		cassandra = "store: {cassandra: {hosts: [a.test], %s}}\n"
		mail      = "accounts: {mail: {server: 'a.test:25', from: a@a.test, link: 'https://a.test', user: u, %s}}\n"
		provider  = "accounts: {oidc: {issuer: 'https://a.test', client: c, %s}}\n"
	)
	const engine = "networks: {a: {engine: {listen: '127.0.0.1:8551', %s}}}\n"
	for _, c := range []struct{ text, entry, want string }{
		{engine, "jwt: " + missing, ""}, {engine, "jwt: " + secret, "networks.a.engine.jwt: " + secret + ": expected a secret of 32 bytes in hexadecimal"},
		{cassandra, "user: u, password_file: " + secret, ""}, {cassandra, "user: u", ""},
		{cassandra, "user: u, password_file: " + missing, "store.cassandra: password of Cassandra's user: open " + missing},
		{cassandra, "user: u, password_file: " + empty, "store.cassandra: password of Cassandra's user: " + empty + " is empty"},
		{cassandra, "tls: {enabled: true, ca: " + secret + "}", "store.cassandra: authority of Cassandra's certificates: " + secret + " has no certificate"},
		{mail, "password_file: " + secret, ""}, {mail, "tls: starttls", ""},
		{mail, "password_file: " + missing, "accounts.mail: password_file: open " + missing},
		{mail, "password_file: " + empty, "accounts.mail: password_file: " + empty + " is empty"},
		{mail, "ca: " + secret, "accounts.mail: ca: no certificate in " + secret},
		{provider, "secret_file: " + secret, ""}, {provider, "name: p", ""},
		{provider, "secret_file: " + missing, "accounts.oidc: secret_file: open " + missing},
		{provider, "secret_file: " + empty, "accounts.oidc: secret_file: " + empty + " is empty"},
	} {
		path := filepath.Join(folder, "ashlar.yaml")
		if err := os.WriteFile(path, fmt.Appendf(nil, c.text, c.entry), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Check(path, families())
		if got := fmt.Sprint(err); c.want == "" && err != nil || !strings.Contains(got, c.want) || c.want != "" && !strings.Contains(got, "ashlar.yaml:1: ") {
			t.Errorf("%s: %s, expected %q", c.entry, got, c.want)
		}
	}
}
