package certificate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"

	"github.com/caddyserver/certmagic"
)

// ACME is how certificates are got from an authority.
type ACME struct {
	Domains   []string // that the certificates are for
	Email     string   // where the authority can reach the operator; may be empty
	Directory string   // URL of the authority's directory; empty: Let's Encrypt's
	Folder    string   // where account and certificates are kept
	// Port is where the listener can be reached from outside; 0: 443. An authority
	// connects to 443 only; test authorities may use others.
	Port int
	// Roots are what the authority's own certificate is checked against; nil: the
	// system's.
	Roots *x509.CertPool
}

// FromACME returns a configuration whose certificates are got, and renewed in time, by
// the TLS-ALPN challenge, which the listener answers itself. They are got in the
// background, until ctx is done: the listener must be up for that.
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
		CA: a.Directory, Email: a.Email, Agreed: true, DisableHTTPChallenge: true,
		AltTLSALPNPort: a.Port, TrustedRoots: a.Roots, Logger: logger,
	}
	if template.CA == "" {
		template.CA = certmagic.LetsEncryptProductionCA
	}
	magic.Issuers = []certmagic.Issuer{certmagic.NewACMEIssuer(magic, template)}
	if err := magic.ManageAsync(ctx, a.Domains); err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	config := magic.TLSConfig()
	config.NextProtos = append([]string{"h2", "http/1.1"}, config.NextProtos...)
	return config, nil
}
