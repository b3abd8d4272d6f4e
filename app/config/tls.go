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
		return errors.New("only one of certificate and key is given: expected both, or neither")
	case files && len(t.ACME.Domains) > 0:
		return errors.New("both files and acme are given: expected one of them")
	case len(t.ACME.Domains) == 0 && (t.ACME.Email != "" || t.ACME.Directory != ""):
		return errors.New("acme has no domains: expected those that certificates are for")
	}
	return nil
}

// Open returns how the public listener is encrypted, or nil if it is not. data is the
// data directory.
func (t *TLS) Open(ctx context.Context, data string) (*tls.Config, error) {
	switch {
	case t.Certificate != "":
		return certificate.FromFiles(t.Certificate, t.Key, slog.Default())
	case len(t.ACME.Domains) > 0:
		return certificate.FromACME(ctx, certificate.ACME{
			Domains: t.ACME.Domains, Email: t.ACME.Email, Directory: t.ACME.Directory, Folder: filepath.Join(data, "certificates"),
		}, slog.Default())
	}
	return nil, nil
}
