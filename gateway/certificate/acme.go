package certificate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"

	"github.com/caddyserver/certmagic"
)

// ACME configures where certificates are obtained.
type ACME struct {
	Domains   []string // names on the certificates
	Email     string   // the operator's address, for the authority; may be empty
	Directory string   // URL of the authority's directory; empty: Let's Encrypt's
	Folder    string   // stores the ACME account and the certificates
	// Port is the listener's port as seen from outside; 0 means 443. Public authorities
	// connect to 443 only; test authorities may use others.
	Port int
	// Roots verify the authority's own certificate; nil means the system's roots.
	Roots *x509.CertPool
}

// Files returns the files that hold the certificates of the domains, from the authority. The folder may
// also hold those of domains and authorities that were configured before: nothing renews them.
func (a ACME) Files() (stored []string) {
	folder := certmagic.FileStorage{Path: a.Folder}
	issuer := (&certmagic.ACMEIssuer{CA: a.authority()}).IssuerKey()
	for _, domain := range a.Domains {
		file := folder.Filename(certmagic.StorageKeys.SiteCert(issuer, domain))
		if _, err := os.Stat(file); err == nil { // else it was not issued yet
			stored = append(stored, file)
		}
	}
	return stored
}

// authority returns the URL of the authority's directory.
func (a ACME) authority() string {
	if a.Directory == "" {
		return certmagic.LetsEncryptProductionCA
	}
	return a.Directory
}

// FromACME returns a configuration that obtains and renews certificates in the
// background until ctx is done. It uses the TLS-ALPN challenge, which the listener itself
// answers, so the listener must be running.
func FromACME(ctx context.Context, a ACME, log *slog.Logger) (*tls.Config, error) {
	logger := newLogger(log)
	var magic *certmagic.Config
	cache := certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return magic, nil },
		Logger:           logger,
	})
	context.AfterFunc(ctx, cache.Stop)
	magic = certmagic.New(cache, certmagic.Config{Storage: &certmagic.FileStorage{Path: a.Folder}, Logger: logger})
	template := certmagic.ACMEIssuer{
		CA: a.authority(), Email: a.Email, Agreed: true, DisableHTTPChallenge: true,
		AltTLSALPNPort: a.Port, TrustedRoots: a.Roots, Logger: logger,
	}
	magic.Issuers = []certmagic.Issuer{certmagic.NewACMEIssuer(magic, template)}
	if err := magic.ManageAsync(ctx, a.Domains); err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	config := magic.TLSConfig()
	config.NextProtos = append([]string{"h2", "http/1.1"}, config.NextProtos...)
	return config, nil
}
