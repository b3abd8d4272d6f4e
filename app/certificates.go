package app

import (
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"os"
	"time"
)

// expiries returns when the certificates in PEM files expire, by their first name. The
// first certificate of a file is the server's; the others are of authorities.
func expiries(files []string) map[string]time.Time {
	all := make(map[string]time.Time)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			slog.Error("a certificate's metrics are left out", "error", err)
			continue
		}
		block, _ := pem.Decode(text)
		if block == nil {
			slog.Error("a certificate's metrics are left out", "file", file, "error", "no PEM block found")
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			slog.Error("a certificate's metrics are left out", "file", file, "error", err)
			continue
		}
		all[nameOf(certificate)] = certificate.NotAfter
	}
	return all
}

// nameOf returns the first name that a certificate is for.
func nameOf(c *x509.Certificate) string {
	switch {
	case len(c.DNSNames) > 0:
		return c.DNSNames[0]
	case len(c.IPAddresses) > 0:
		return c.IPAddresses[0].String()
	}
	return c.Subject.CommonName
}
