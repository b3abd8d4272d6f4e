package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writePair makes a certificate with a serial number, in two files of dir.
func writePair(t *testing.T, dir string, serial int64) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), DNSNames: []string{"a.test", "localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key = filepath.Join(dir, "a.pem"), filepath.Join(dir, "a.key")
	write(t, certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), serial)
	write(t, key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), serial)
	return certificate, key
}

// write writes a file with a modification time of its own, however fast the test is.
func write(t *testing.T, path string, text []byte, serial int64) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1_000_000_000+serial, 0)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func serialOf(t *testing.T, f *files) int64 {
	t.Helper()
	f.checked = time.Time{} // long ago
	got, err := f.get(nil)
	if err != nil {
		t.Fatal(err)
	}
	return got.Leaf.SerialNumber.Int64()
}

func TestFilesAreRenewed(t *testing.T) {
	dir := t.TempDir()
	certificate, key := writePair(t, dir, 1)
	var log bytes.Buffer
	f := &files{certificate: certificate, key: key, log: slog.New(slog.NewTextHandler(&log, nil))}
	if err := f.load(); err != nil {
		t.Fatal(err)
	}
	var hidden []byte
	for _, step := range []struct {
		what   string
		change func()
		want   int64
		log    string
	}{
		{"as it was", func() {}, 1, ""},
		{"renewed", func() { writePair(t, dir, 2) }, 2, "using a renewed certificate"},
		{"broken", func() { write(t, certificate, []byte("nothing"), 3) }, 2, "the renewed certificate is not used"},
		{"still broken", func() {}, 2, ""},
		{"gone", func() { _ = os.Remove(certificate) }, 2, ""},
		{"renewed again", func() { writePair(t, dir, 4) }, 4, "using a renewed certificate"},
		{"its key unreadable", func() {
			writePair(t, dir, 5)
			var err error
			if hidden, err = os.ReadFile(key); err != nil {
				t.Fatal(err)
			}
			write(t, key, nil, 5)
		}, 4, "the renewed certificate is not used"},
		// As after chmod: the times of the files are the same.
		{"its key readable", func() { write(t, key, hidden, 5) }, 5, "using a renewed certificate"},
	} {
		log.Reset()
		step.change()
		if got := serialOf(t, f); got != step.want {
			t.Errorf("%s: certificate %d is used, expected %d", step.what, got, step.want)
		}
		if !strings.Contains(log.String(), step.log) || step.log == "" && log.Len() > 0 {
			t.Errorf("%s: log %s", step.what, &log)
		}
	}
}

func TestFromFiles(t *testing.T) {
	if _, err := FromFiles("nowhere.pem", "nowhere.key", slog.Default()); err == nil || !strings.Contains(err.Error(), "nowhere.pem") {
		t.Errorf("no files: %v", err)
	}
	certificate, key := writePair(t, t.TempDir(), 1)
	config, err := FromFiles(certificate, key, slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	if config.MinVersion != tls.VersionTLS12 {
		t.Errorf("minimum version %#x, want TLS 1.2", config.MinVersion)
	}
}
