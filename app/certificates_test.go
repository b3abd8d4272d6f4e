package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/app/config"
)

// A certificate that can no longer be read has a metric, and is logged once until that changes.
func TestUnreadableCertificate(t *testing.T) {
	dir := t.TempDir()
	writeCertificate(t, dir)
	file := filepath.Join(dir, "a.pem")
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := served(t, func(c *config.Config) {
		c.TLS = config.TLS{Certificate: file, Key: filepath.Join(dir, "a.key")}
	})
	out := captureLog(t)
	for _, step := range []struct {
		text     string
		readable int
		want     int // lines since the start
	}{{string(good), 1, 0}, {"", 0, 1}, {"", 0, 1}, {string(good), 1, 1}, {"-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n", 0, 2}} {
		if err := os.WriteFile(file, []byte(step.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, metrics := get(t, "http://"+s.operator.listener.Addr().String()+"/metrics")
		if want := fmt.Sprintf("ashlar_certificates_readable %d\n", step.readable); !strings.Contains(metrics, want) {
			t.Errorf("after %q: no line %q", step.text, want)
		}
		if known := strings.Contains(metrics, `ashlar_certificate_expiry_timestamp_seconds{name="127.0.0.1"}`); known != (step.readable == 1) {
			t.Errorf("after %q: expiry known %t", step.text, known)
		}
		if got := strings.Count(out.String(), "a certificate's metrics are left out"); got != step.want {
			t.Fatalf("%d lines in the log after %q, expected %d:\n%s", got, step.text, step.want, out.String())
		}
	}
}

// A key that does not fit keeps the listener at the certificate before, so the new one's expiry says nothing.
func TestCertificateWithoutItsKey(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	writeCertificate(t, dir)
	writeCertificate(t, other)
	c := config.TLS{Certificate: filepath.Join(dir, "a.pem"), Key: filepath.Join(dir, "a.key")}
	s, _ := served(t, func(all *config.Config) { all.TLS = c })
	out := captureLog(t)
	if err := os.Rename(filepath.Join(other, "a.pem"), c.Certificate); err != nil {
		t.Fatal(err)
	}
	_, metrics := get(t, "http://"+s.operator.listener.Addr().String()+"/metrics")
	if !strings.Contains(metrics, "ashlar_certificates_readable 0\n") || strings.Contains(metrics, "ashlar_certificate_expiry_timestamp_seconds{") {
		t.Error("the metrics are those of a certificate that is not used")
	}
	if want := "private key does not match public key"; !strings.Contains(out.String(), want) {
		t.Errorf("the log does not have %q:\n%s", want, out)
	}
	if err := os.Rename(filepath.Join(other, "a.key"), c.Key); err != nil {
		t.Fatal(err)
	}
	if _, metrics = get(t, "http://"+s.operator.listener.Addr().String()+"/metrics"); !strings.Contains(metrics, "ashlar_certificates_readable 1\n") {
		t.Error("a certificate and its key are not readable")
	}
}
