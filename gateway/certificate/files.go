package certificate

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// lookTime is how often files are looked at, at most, for being renewed.
const lookTime = 5 * time.Second

// files is a certificate and its key in two PEM files.
type files struct {
	certificate, key string
	log              *slog.Logger

	mu     sync.Mutex
	loaded *tls.Certificate // guarded by mu
	of     [2]time.Time     // guarded by mu: when the files that are loaded were changed
	looked time.Time        // guarded by mu
}

// FromFiles returns a configuration with the certificate in two PEM files. When they
// change, connections that begin some seconds later get the new certificate; files that
// cannot be read then are logged, and the last good certificate stays.
func FromFiles(certificate, key string, log *slog.Logger) (*tls.Config, error) {
	f := &files{certificate: certificate, key: key, log: log}
	if err := f.load(); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: f.get}, nil
}

func (f *files) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.looked) >= lookTime {
		f.looked = now
		if f.changed() {
			if err := f.load(); err != nil {
				f.log.Error("the renewed certificate is not used", "error", err)
			} else {
				f.log.Info("using a renewed certificate", "file", f.certificate)
			}
		}
	}
	return f.loaded, nil
}

// changed says whether the files are others than those that are loaded. Files that are
// not there just now are being replaced.
func (f *files) changed() bool {
	at, err := f.times()
	return err == nil && at != f.of
}

func (f *files) times() (at [2]time.Time, err error) {
	for i, path := range []string{f.certificate, f.key} {
		info, err := os.Stat(path)
		if err != nil {
			return at, err
		}
		at[i] = info.ModTime()
	}
	return at, nil
}

// load reads the files. Their times are taken first: what changes while they are read
// is seen the next time. It is not tried again before they change.
func (f *files) load() error {
	at, err := f.times()
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	f.of = at
	loaded, err := tls.LoadX509KeyPair(f.certificate, f.key)
	if err != nil {
		return fmt.Errorf("certificate: %s and %s: %w", f.certificate, f.key, err)
	}
	f.loaded = &loaded
	return nil
}
