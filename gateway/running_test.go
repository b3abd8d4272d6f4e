package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/gateway"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/jsonrpctest"
)

const goodKey = "0123456789abcdef0123456789abcdef"

// oneKey is a Keys that accepts goodKey only.
type oneKey struct{}

func (oneKey) Check(key string) (*account.Key, bool) { return known, key == goodKey }

var known = &account.Key{ID: account.KeyID{1}}

// logBuffer is a log that may be written and read concurrently.
type logBuffer struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// network returns a network whose test_name returns its name.
func network(name string, hosts ...string) gateway.Network {
	constant := func(result string) jsonrpc.Handler {
		return func(_ context.Context, _, out []byte) ([]byte, error) { return append(out, result...), nil }
	}
	return gateway.Network{Name: name, Hosts: hosts, Methods: jsonrpctest.Methods(jsonrpc.Handlers{
		"test_name":  constant(`"` + name + `"`),
		"test_large": constant(`"` + strings.Repeat("0123456789abcdef", 1000) + `"`),
		"test_echo": func(_ context.Context, params, out []byte) ([]byte, error) {
			return append(out, params...), nil
		},
		"test_panic": func(context.Context, []byte, []byte) ([]byte, error) { panic("a bug") },
		"test_fail":  func(_ context.Context, _, out []byte) ([]byte, error) { return out, errors.New("a failure") },
		"test_wait": func(ctx context.Context, _, out []byte) ([]byte, error) {
			<-ctx.Done()
			return out, ctx.Err()
		},
	})}
}

// someDay is when tests of daily quotas take place.
var someDay = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// running is a server under test.
type running struct {
	t   testing.TB
	url string
	log *logBuffer

	handler *gateway.Handler
	stop    func() error // stops the server, waits, and returns Run's result
}

func start(t testing.TB, config gateway.Config, drain time.Duration) *running {
	t.Helper()
	log := new(logBuffer)
	if config.Keys == nil {
		config.Keys = oneKey{}
	}
	if config.Today == nil && config.Group == nil { // a group has a clock of its own
		config.Today = func() time.Time { return someDay } // no day ends during a test
	}
	config.Log = slog.New(slog.NewTextHandler(log, nil))
	handler, err := gateway.New(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	server, err := gateway.Listen(ctx, gateway.ListenConfig{Address: "127.0.0.1:0", Drain: drain}, handler)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	stop := sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() {
		_ = stop()
		if strings.Contains(log.String(), goodKey) {
			t.Errorf("the key is in the log: %s", log)
		}
	})
	return &running{t, "http://" + server.Addr().String(), log, handler, stop}
}

// client requests no compression by itself and follows no redirects.
var client = &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 8}}

// ask sends a request. The header Host sets the request's host.
func (s *running) ask(method, path, body string, headers ...string) (*http.Response, string) {
	s.t.Helper()
	request, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			request.Host = headers[i+1]
		}
	}
	response, err := client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response, string(answer)
}

// post sends a JSON-RPC request with the good key.
func (s *running) post(body string, headers ...string) (*http.Response, string) {
	s.t.Helper()
	return s.ask("POST", "/v3/"+goodKey, body, append([]string{"Content-Type", "application/json"}, headers...)...)
}

func call(method string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":[]}`, method)
}

// refusal is the answer to a request that is refused without an id.
func refusal(message string) string { return refusalOf("null", message) }

// refusalOf is the answer to a request with an id that is refused.
func refusalOf(id, message string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,"message":%q}}`, id, message)
}
