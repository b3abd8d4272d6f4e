package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"ashlar/internal/await"
	"ashlar/internal/node"
	"ashlar/internal/vectors"
)

// authority is a running pebble, Let's Encrypt's ACME server for tests.
type authority struct {
	directory string
	roots     *x509.CertPool // of its own certificate
	issued    *x509.CertPool // of those that it issues
	stop      func()
}

// startAuthority starts one that looks for the listeners of domains at a port.
func startAuthority(t *testing.T, port int) *authority {
	t.Helper()
	bin := os.Getenv("ASHLAR_PEBBLE")
	if bin == "" {
		bin = "pebble"
	}
	path, err := exec.LookPath(bin)
	if err != nil {
		vectors.Missing(t, "needs an ACME server: put pebble on PATH or name it in ASHLAR_PEBBLE (go install github.com/letsencrypt/pebble/v2/cmd/pebble@v2.10.1)")
	}
	dir := t.TempDir()
	certificate, key := writePair(t, dir, 1)
	pair, err := os.ReadFile(certificate)
	if err != nil {
		t.Fatal(err)
	}
	listen, management := freeAddress(t), freeAddress(t)
	config, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": listen, "managementListenAddress": management, "certificate": certificate, "privateKey": key,
		"tlsPort": port, "httpPort": port, "keyAlgorithm": "ecdsa",
		"profiles": map[string]any{"default": map[string]any{"description": "for tests", "validityPeriod": 7776000}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "pebble.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	process := exec.Command(path, "-config", file)
	process.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=0")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	a := &authority{directory: "https://" + listen + "/dir", roots: x509.NewCertPool(), issued: x509.NewCertPool()}
	a.stop = sync.OnceFunc(func() { _ = process.Process.Kill(); _ = process.Wait() }) // an error says that it is gone, or how it went
	t.Cleanup(a.stop)
	a.roots.AppendCertsFromPEM(pair)
	a.issued.AppendCertsFromPEM(a.root(t, "https://"+management+"/roots/0"))
	return a
}

// root fetches the certificate that all others are issued under.
func (a *authority) root(t *testing.T, url string) []byte {
	t.Helper()
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.roots, ServerName: "localhost"}}}
	defer client.CloseIdleConnections()
	for end := time.Now().Add(await.Patience); ; time.Sleep(10 * time.Millisecond) {
		response, err := client.Get(url)
		if err == nil {
			defer response.Body.Close()
			root, err := io.ReadAll(response.Body)
			if err != nil {
				t.Fatal(err)
			}
			return root
		}
		if time.Now().After(end) {
			t.Fatalf("the authority does not come up: %v", err)
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := node.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// A listener gets its certificate from an authority that connects to it, keeps it, and
// has it again after a restart, when the authority is gone.
func TestACME(t *testing.T) {
	listener, err := net.Listen("tcp", freeAddress(t)) // which it has again below
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	a := startAuthority(t, port)
	from := ACME{Domains: []string{"localhost"}, Email: "operator@example.org", Directory: a.directory, Folder: t.TempDir(), Port: port, Roots: a.roots}
	if got := from.Files(); len(got) > 0 {
		t.Errorf("the files %v hold certificates, expected none before the first is issued", got)
	}
	first := a.certified(t, from, listener)
	if got := from.Files(); len(got) != 1 {
		t.Errorf("the files %v hold certificates, expected one", got)
	} else if text, err := os.ReadFile(got[0]); err != nil {
		t.Error(err)
	} else if block, _ := pem.Decode(text); block == nil || !bytes.Equal(block.Bytes, first.Raw) {
		t.Errorf("%s does not hold the certificate that clients see", got[0])
	}

	if listener, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err != nil {
		t.Fatal(err)
	}
	a.stop()
	if again := a.certified(t, from, listener); again.SerialNumber.Cmp(first.SerialNumber) != 0 {
		t.Errorf("after a restart the certificate is %v, it was %v", again.SerialNumber, first.SerialNumber)
	}
}

// certified serves until a client is shown a certificate that it can trust, and
// returns that.
func (a *authority) certified(t *testing.T, from ACME, listener net.Listener) *x509.Certificate {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	config, err := FromACME(ctx, from, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	server := http.Server{Handler: http.NotFoundHandler(), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	done := make(chan error, 1)
	go func() { done <- server.Serve(tls.NewListener(listener, config)) }()
	defer func() { server.Close(); <-done }()
	for end := time.Now().Add(await.Patience); ; time.Sleep(20 * time.Millisecond) {
		conn, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{RootCAs: a.issued, ServerName: "localhost", NextProtos: []string{"h2"}})
		if err == nil {
			defer conn.Close()
			if got := conn.ConnectionState().NegotiatedProtocol; got != "h2" {
				t.Errorf("the protocol is %q, expected h2", got)
			}
			return conn.ConnectionState().PeerCertificates[0]
		}
		if time.Now().After(end) {
			t.Fatalf("no certificate has come: %v", err)
		}
	}
}
