package app

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/app/config"
	"ashlar/app/store"
	"ashlar/family"
	"ashlar/internal/await"
	"ashlar/kv"

	"github.com/coder/websocket"
)

// makeNetwork makes the demo's network, with its genesis only.
func makeNetwork(t *testing.T, data string) {
	t.Helper()
	f := Families().Default()
	demo, err := f.Demo()
	if err != nil {
		t.Fatal(err)
	}
	place, err := Place(t.Context(), store.Dir(data), f, demo.Name())
	if err == nil {
		err = demo.Create(t.Context(), place, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// served runs a service over the demo's network until the test ends.
func served(t *testing.T, change func(*config.Config)) (s *Service, key string) {
	t.Helper()
	data := t.TempDir()
	makeNetwork(t, data)
	c := config.Default()
	c.Data, c.Listen, c.Operator = data, "127.0.0.1:0", "127.0.0.1:0"
	if change != nil {
		change(&c)
	}
	s, key, stop := running(t, c)
	t.Cleanup(stop)
	return s, key
}

// TestEmptyNetwork serves a data directory with an empty directory in a network's place,
// such as one that a disk is not mounted on. The other network is served.
func TestEmptyNetwork(t *testing.T) {
	var empty string
	s, key := served(t, func(c *config.Config) {
		empty = store.Dir(c.Data).Network("empty")
		if err := os.Mkdir(empty, 0o755); err != nil {
			t.Fatal(err)
		}
	})
	if networks := s.Networks(); len(networks) != 1 || networks[0].Name != "demo" {
		t.Errorf("serves %d networks, expected demo alone", len(networks))
	}
	post(t, "http://"+s.server.Addr().String()+"/v3/"+key, blockNumber, 200)
	if files, err := os.ReadDir(empty); err != nil || len(files) > 0 {
		t.Errorf("%v %v in the empty directory, expected nothing", files, err)
	}
	if _, err := OpenNetwork(t.Context(), store.Dir(s.config.Data), "empty", config.Network{}, kv.Options{}); !errors.Is(err, family.ErrNoBlocks) {
		t.Errorf("opened it: %v, expected ErrNoBlocks", err)
	}
}

// running runs a service until stop is called.
func running(t *testing.T, c config.Config) (s *Service, key string, stop func()) {
	t.Helper()
	return runningWith(t, c, func(*Service) {})
}

// runningWith is running, and prepares the service before it runs.
func runningWith(t *testing.T, c config.Config, prepare func(*Service)) (s *Service, key string, stop func()) {
	t.Helper()
	ctx := t.Context()
	s, err := Open(ctx, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	prepare(s)
	issued, err := s.keys.Create(ctx, account.NewKey{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	key = issued.APIKey
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return s, key, func() {
		cancel()
		if err := errors.Join(<-ended, s.Close()); err != nil {
			t.Error(err)
		}
	}
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

type answer struct {
	Result, Error json.RawMessage
}

func post(t *testing.T, url, body string, status int) (a answer) {
	t.Helper()
	response, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != status {
		t.Errorf("HTTP status %d, expected %d", response.StatusCode, status)
	}
	if err := json.NewDecoder(response.Body).Decode(&a); err != nil {
		t.Fatal(err)
	}
	return a
}

const blockNumber = `{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}`

func TestOperatorsListener(t *testing.T) {
	s, key := served(t, nil)
	public, private := "http://"+s.server.Addr().String(), "http://"+s.operator.listener.Addr().String()
	post(t, public+"/v3/"+key, blockNumber, http.StatusOK)
	post(t, public+"/v3/"+key, `{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":[]}`, http.StatusOK)
	post(t, public+"/v3/"+key, `{"jsonrpc":"2.0","id":1,"method":"made_up","params":[]}`, http.StatusOK)
	post(t, public+"/v3/nobody", blockNumber, http.StatusUnauthorized)
	_, text := get(t, private+"/metrics")
	for _, want := range []string{
		`ashlar_calls_total{code="ok",method="eth_blockNumber",network="demo"} 1`,
		`ashlar_calls_total{code="-32602",method="eth_getBalance",network="demo"} 1`,
		`ashlar_calls_total{code="-32601",method="unknown",network="demo"} 1`,
		`ashlar_call_seconds_count{method="eth_blockNumber",network="demo"} 1`,
		`ashlar_refused_total{reason="key"} 1`, `ashlar_refused_total{reason="rate"} 0`,
		`ashlar_calls_running{kind="heavy"} 0`, `ashlar_calls_waiting{kind="light"} 0`,
		`ashlar_websockets 0`, `ashlar_head_block{network="demo"} 0`, `ashlar_store_disk_bytes{network="demo"}`,
		`ashlar_head_age_seconds{network="demo"}`, "process_resident_memory_bytes", "go_goroutines",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("not in the metrics: %s", want)
		}
	}
	if strings.Contains(text, "made_up") || strings.Contains(text, key) {
		t.Error("a metric is named by what a client made up, or by a key")
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/debug/pprof/": 200, "/v3/" + key: 404} {
		if status, _ := get(t, private+path); status != want {
			t.Errorf("operator's %s: %d, expected %d", path, status, want)
		}
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 404, "/debug/pprof/": 404} {
		if status, _ := get(t, public+path); status != want {
			t.Errorf("public %s: %d, expected %d", path, status, want)
		}
	}
}

// A profile that is being made ends with the listener, before run returns.
func TestOperatorAwaitsRequests(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	o, err := listenOperator(ctx, "127.0.0.1:0", &Service{metrics: newMetrics()})
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- o.run(ctx) }()
	var asking sync.WaitGroup
	defer asking.Wait()
	asking.Go(func() {
		for ctx.Err() == nil { // it is refused while the loop below has the profile
			if response, err := http.Get("http://" + o.listener.Addr().String() + "/debug/pprof/profile?seconds=3600"); err == nil {
				io.Copy(io.Discard, response.Body)
				response.Body.Close()
			}
		}
	})
	await.Until(t, "the profile to be the request's", func() bool { // there is one at a time
		if pprof.StartCPUProfile(io.Discard) != nil {
			return true
		}
		pprof.StopCPUProfile()
		return false
	})
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	if err := pprof.StartCPUProfile(io.Discard); err != nil {
		t.Errorf("when the listener has ended: %v", err)
	}
	pprof.StopCPUProfile()
}

// Encrypted, HTTP and WebSocket answer as they do in the open.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	trusted := writeCertificate(t, dir)
	s, key := served(t, func(c *config.Config) {
		c.TLS = config.TLS{Certificate: filepath.Join(dir, "a.pem"), Key: filepath.Join(dir, "a.key")}
	})
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, ForceAttemptHTTP2: true}}
	at := s.server.Addr().String()
	response, err := client.Post("https://"+at+"/v3/"+key, "application/json", strings.NewReader(blockNumber))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || response.ProtoMajor != 2 || !strings.Contains(string(text), `"result":"0x0"`) || response.ContentLength != int64(len(text)) {
		t.Errorf("%s %s %v, Content-Length %d", response.Proto, text, err, response.ContentLength)
	}
	plain := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}
	conn, _, err := websocket.Dial(t.Context(), "wss://"+at+"/ws/v3/"+key, &websocket.DialOptions{HTTPClient: plain})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	if err := conn.Write(t.Context(), websocket.MessageText, []byte(blockNumber)); err != nil {
		t.Fatal(err)
	}
	if _, text, err := conn.Read(t.Context()); err != nil || !strings.Contains(string(text), `"result":"0x0"`) {
		t.Errorf("%s %v", text, err)
	}
}

// writeCertificate makes a.pem and a.key for the loopback address, and returns what
// makes them trusted.
func writeCertificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, text := range map[string][]byte{"a.pem": certificate, "a.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certificate)
	return pool
}

func TestNotReadyWhenBehind(t *testing.T) {
	s, _ := served(t, func(c *config.Config) { c.Networks = map[string]config.Network{"demo": {Behind: time.Nanosecond}} })
	status, body := get(t, "http://"+s.operator.listener.Addr().String()+"/readyz")
	if status != http.StatusServiceUnavailable || !strings.Contains(body, "network demo: it is behind: its newest block 0 is") {
		t.Errorf("%d %s", status, body)
	}
}

func TestReload(t *testing.T) {
	s, key := served(t, nil)
	c := s.config
	c.Limits.KeyRate = 0.001
	if err := s.Reload(c); err != nil {
		t.Fatal(err)
	}
	url := "http://" + s.server.Addr().String() + "/v3/" + key
	status := 0
	for range 2000 { // a burst, at least the credits of the most expensive method, is soon spent
		response, err := http.Post(url, "application/json", strings.NewReader(blockNumber))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if status = response.StatusCode; status != http.StatusOK {
			break
		}
	}
	if status != http.StatusTooManyRequests {
		t.Errorf("the new rate does not hold: %d", status)
	}
	c.Networks = map[string]config.Network{"other": {}}
	if err := s.Reload(c); err != nil {
		t.Errorf("a network that is not served yet: %v", err)
	}
}

func TestCheckConfig(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"right", "networks:\n  a: {hosts: [a.test]}\nhosts: ['*.example.org']\n", ""},
		{"host", "networks:\n  a: {hosts: ['a.test:80']}\n", "without scheme and port"},
		{"pattern", "hosts: [example.org]\n", "want one such as *.example.org"},
		{"proxy", "proxies: [everyone]\n", ":1: proxies: invalid network \"everyone\""},
		{"half of tls", "tls: {certificate: a.pem}\n", ":1: tls: only one of certificate and key"},
		{"tls twice", "tls: {certificate: a, key: b, acme: {domains: [x]}}\n", "want one of them"},
		{"no certificate", "tls: {certificate: nowhere.pem, key: nowhere.key}\n", "nowhere.pem"},
		{"memory", "limits:\n  memory: 1MiB\n", "is too little: expected at least 10485760"},
		{"credits", "credits:\n  eth_call: -1\n", "from 0 to 1000000"},
		{"ping", "sockets:\n  ping: 1ms\n", ":2: sockets.ping: 1ms is out of range: expected from 1s to 1h0m0s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ashlar.yaml")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			err := CheckConfig(path)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, expected %q in it", err, c.want)
			}
		})
	}
}

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}
