// Package proxies runs the configurations that docs/guides/reverse-proxy.md shows, with real
// proxies in front of real servers.
package proxies

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ashlar/internal/node"
	"ashlar/internal/vectors"

	"github.com/coder/websocket"
)

// The network of the tests: its name, and the result of eth_chainId.
const (
	network = "sample"
	chainID = `"0xc72dd9d5e883e"`
)

const askChainID = `{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}`

// program finds a program: the one that an environment variable names, or on the path.
func program(t *testing.T, name, variable string) string {
	t.Helper()
	bin := os.Getenv(variable)
	if bin == "" {
		bin = name
	}
	path, err := exec.LookPath(bin)
	if err != nil {
		vectors.Missing(t, "needs "+name+": put it on PATH or name it in "+variable)
	}
	return path
}

// guide returns the first block of code below a heading of the guide.
func guide(t *testing.T, heading string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/guides/reverse-proxy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut("\n"+string(text), "\n"+heading+"\n")
	_, block, opened := strings.Cut(section, "\n```")
	_, block, _ = strings.Cut(block, "\n")
	block, _, closed := strings.Cut(block, "\n```")
	if !found || !opened || !closed {
		t.Fatalf("the guide has no code below %q", heading)
	}
	return block + "\n"
}

// replace replaces each first string by the second one. All must occur.
func replace(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("%q does not occur in\n%s", pairs[i], text)
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

// freeAddress returns a loopback address with a port that is free.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := node.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// certificate writes a certificate of example.org and its subdomains.
func certificate(t *testing.T) (file, key string, roots *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"example.org", "*.example.org"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AddCert(parsed)
	dir := t.TempDir()
	file = write(t, filepath.Join(dir, "example.org.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	key = write(t, filepath.Join(dir, "example.org.key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})))
	return file, key, roots
}

// run runs a proxy until the test ends.
func run(t *testing.T, bin string, args ...string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	command := exec.CommandContext(ctx, bin, args...)
	command.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir(), "XDG_CONFIG_HOME="+t.TempDir())
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	var output strings.Builder
	command.Stdout, command.Stderr = &output, &output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = command.Wait() // it was interrupted
		if t.Failed() {
			t.Logf("%s:\n%s", filepath.Base(bin), output.String())
		}
	})
}

// caddy runs Caddy with a site, and returns its address.
func caddy(t *testing.T, site string) string {
	t.Helper()
	bin, address := program(t, "caddy", "ASHLAR_CADDY"), freeAddress(t)
	_, port, _ := strings.Cut(address, ":")
	global := "{\nadmin off\nauto_https disable_redirects\nhttps_port " + port + "\ndefault_bind 127.0.0.1\n}\n"
	run(t, bin, "run", "--config", write(t, filepath.Join(t.TempDir(), "Caddyfile"), global+site), "--adapter", "caddyfile")
	return address
}

// imported imports the network into a data directory, and returns the service for it.
func imported(t *testing.T) node.Ashlar {
	t.Helper()
	folder := vectors.Path(t, "execution-apis")
	bin, err := node.BuildAshlar(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a := node.Ashlar{Bin: bin, Data: t.TempDir(), Network: network}
	p, err := a.Import(t.Context(), filepath.Join(folder, "genesis.json"), filepath.Join(folder, "chain.rlp"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	return a
}

// serve starts a server with a configuration, and returns when it is ready.
func serve(t *testing.T, a node.Ashlar, address, config string) *node.Process {
	t.Helper()
	file := write(t, filepath.Join(t.TempDir(), "ashlar.yaml"), config)
	p, err := a.ServeBy(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	await(t, func() error {
		response, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("/readyz: %s", response.Status)
		}
		return nil
	})
	return p
}

// await waits until a check passes.
func await(t *testing.T, check func() error) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// clientOf returns a client whose connections all go from one address to the proxy, whatever
// host they are for.
func clientOf(t *testing.T, proxy, from string, roots *x509.CertPool) *http.Client {
	t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, proxy)
		},
		TLSClientConfig:     &tls.Config{RootCAs: roots},
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 64,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// post sends a request to a URL, and returns the response with its body.
func post(client *http.Client, url, body string, headers ...string) (*http.Response, string, error) {
	request, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response, string(answer), err
}

// dialSocket opens a WebSocket through a client's transport.
func dialSocket(ctx context.Context, client *http.Client, url string) (*websocket.Conn, error) {
	conn, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPClient: client})
	return conn, err
}
