package app

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"os"
	"time"
)

// collectCertificates says when the certificates of the public listener expire, by their first names, and
// whether all files with them can be used: else the listener goes on with what it read before, so the expiry
// of a file is not that of the certificate in use. ACME stores certificates with their keys.
func (c *serviceCollector) collectCertificates(to scrape) {
	files := c.service.config.TLS.Files(c.service.config.Data)
	if len(files) == 0 {
		return
	}
	expires, readable, key := make(map[string]time.Time), true, c.service.config.TLS.Key
	for _, file := range files {
		certificate, err := readCertificate(file)
		if err == nil && key != "" {
			_, err = tls.LoadX509KeyPair(file, key)
		}
		if c.changed("certificate "+file, err) {
			slog.Error("a certificate's metrics are left out", "file", file, "error", err)
		}
		if err != nil {
			readable = false
			continue
		}
		name := nameOf(certificate)
		if other, ok := expires[name]; !ok || certificate.NotAfter.Before(other) {
			expires[name] = certificate.NotAfter
		}
	}
	for name, at := range expires {
		to.gauge(c.gauges.expiry, float64(at.Unix()), name)
	}
	to.gauge(c.gauges.certificates, truth(readable))
}

// readCertificate reads the first certificate of a PEM file, which is the server's. The others are of
// authorities.
func readCertificate(file string) (*x509.Certificate, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("no PEM block found")
	}
	return x509.ParseCertificate(block.Bytes)
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
