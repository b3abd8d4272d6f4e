package config

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"path/filepath"

	"ashlar/gateway/certificate"
)

func (t *TLS) check() error {
	switch files := t.Certificate != "" || t.Key != ""; {
	case files && (t.Certificate == "" || t.Key == ""):
		return errors.New("only one of certificate and key is set (want both or neither)")
	case files && len(t.ACME.Domains) > 0:
		return errors.New("both certificate files and acme are set (want one of them)")
	case len(t.ACME.Domains) == 0 && (t.ACME.Email != "" || t.ACME.Directory != ""):
		return errors.New("acme.domains is empty (want the domains of the certificates)")
	}
	return nil
}

// Files returns the files with the certificates of the public listener. data is the data directory.
func (t *TLS) Files(data string) []string {
	if t.Certificate != "" {
		return []string{t.Certificate}
	}
	return t.acme(data).Files()
}

// acme returns where certificates of ACME.Domains are obtained and stored.
func (t *TLS) acme(data string) certificate.ACME {
	return certificate.ACME{
		Domains: t.ACME.Domains, Email: t.ACME.Email, Directory: t.ACME.Directory, Folder: filepath.Join(data, certificatesFolder),
	}
}

// certificatesFolder is the folder in the data directory for certificates from ACME.
const certificatesFolder = "certificates"

// Open returns the TLS configuration of the public listener, or nil for no TLS. data is the
// data directory.
func (t *TLS) Open(ctx context.Context, data string) (*tls.Config, error) {
	log := slog.With("part", "certificates")
	switch {
	case t.Certificate != "":
		return certificate.FromFiles(t.Certificate, t.Key, log)
	case len(t.ACME.Domains) > 0 && data == "":
		return nil, errors.New("tls.acme: there is no data directory, in which certificates are stored (want the entry data)")
	case len(t.ACME.Domains) > 0:
		return certificate.FromACME(ctx, t.acme(data), log)
	}
	return nil, nil
}
