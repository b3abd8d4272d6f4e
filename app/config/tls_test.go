package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Without a data directory, as in a cluster, certificates would be stored in the working directory.
func TestACMENeedsData(t *testing.T) {
	t.Chdir(t.TempDir())
	config := TLS{ACME: ACME{Domains: []string{"a.example.org"}, Directory: "https://127.0.0.1:1/dir"}}
	if _, err := config.Open(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "want the entry data") {
		t.Errorf("%v, expected that the data directory is missing", err)
	}
}

// The folder of certificates keeps those of domains and authorities that were configured before. They are not
// renewed, so they must not be taken for the listener's.
func TestFilesAreOfConfiguredDomains(t *testing.T) {
	data := t.TempDir()
	folder := filepath.Join(data, "certificates", "certificates")
	const production, staging = "acme-v02.api.letsencrypt.org-directory", "acme-staging-v02.api.letsencrypt.org-directory"
	for _, dir := range []string{
		filepath.Join(production, "a.example.org"), filepath.Join(production, "gone.example.org"), filepath.Join(staging, "a.example.org"),
	} {
		if err := os.MkdirAll(filepath.Join(folder, dir), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, dir, filepath.Base(dir)+".crt"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := func(issuer, domain string) string { return filepath.Join(folder, issuer, domain, domain+".crt") }
	for _, test := range []struct {
		name string
		tls  TLS
		want []string
	}{
		{"a domain, and one without a certificate yet", TLS{ACME: ACME{Domains: []string{"a.example.org", "new.example.org"}}}, []string{file(production, "a.example.org")}},
		{"another authority", TLS{ACME: ACME{Domains: []string{"a.example.org"}, Directory: "https://acme-staging-v02.api.letsencrypt.org/directory"}}, []string{file(staging, "a.example.org")}},
		{"a file", TLS{Certificate: "own.pem", Key: "own.key"}, []string{"own.pem"}},
		{"no certificate", TLS{}, nil},
	} {
		if got := test.tls.Files(data); !slices.Equal(got, test.want) {
			t.Errorf("%s: the files are %v, expected %v", test.name, got, test.want)
		}
	}
}
