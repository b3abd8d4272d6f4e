package certificate

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// checkInterval is the shortest time between two checks for renewed files.
const checkInterval = 5 * time.Second

// files is a certificate and its key in two PEM files.
type files struct {
	certificate, key string
	log              *slog.Logger

	mu      sync.Mutex
	loaded  *tls.Certificate // guarded by mu
	times   [2]time.Time     // guarded by mu: modification times of the loaded files
	checked time.Time        // guarded by mu
	failed  string           // guarded by mu: why the files could not be loaded; empty if they were
}

// FromFiles returns a configuration with the certificate in two PEM files. When the files
// change, connections opened some seconds later use the new certificate. If the new files
// cannot be read, the error is logged, the old certificate stays in use, and later connections try
// the files again.
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
	if now := time.Now(); now.Sub(f.checked) >= checkInterval {
		f.checked = now
		if f.changed() {
			f.renew()
		}
	}
	return f.loaded, nil
}

// renew loads the files. It logs an error once. f.mu must be held.
func (f *files) renew() {
	err := f.load()
	if err == nil {
		f.failed = ""
		f.log.Info("using a renewed certificate", "file", f.certificate)
		return
	}
	if err.Error() != f.failed {
		f.failed = err.Error()
		f.log.Error("the renewed certificate is not used", "error", err)
	}
}

// changed reports whether the files changed since they were loaded, or could not be loaded: chmod
// makes a file readable without another time. A missing file is taken as being replaced at the
// moment, not as changed.
func (f *files) changed() bool {
	at, err := f.modified()
	return err == nil && (at != f.times || f.failed != "")
}

// modified returns the modification times of the certificate and the key.
func (f *files) modified() (at [2]time.Time, err error) {
	for i, path := range []string{f.certificate, f.key} {
		info, err := os.Stat(path)
		if err != nil {
			return at, err
		}
		at[i] = info.ModTime()
	}
	return at, nil
}

// load reads the files. It takes their times first, so a change during the read is seen by
// the next check.
func (f *files) load() error {
	at, err := f.modified()
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	f.times = at
	loaded, err := tls.LoadX509KeyPair(f.certificate, f.key)
	if err != nil {
		return fmt.Errorf("certificate: %s and %s: %w", f.certificate, f.key, err)
	}
	f.loaded = &loaded
	return nil
}
