package gateway_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ashlar/account"
	"ashlar/gateway"
)

// seen serves pages that show their client.
var seen = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "%s %s://%s%s", r.RemoteAddr, r.URL.Scheme, r.URL.Host, r.URL.Path)
})

// At the hosts of pages, every path except JSON-RPC and health checks is a page; at other
// hosts none is.
func TestPages(t *testing.T) {
	s := start(t, gateway.Config{
		Networks: []gateway.Network{network("one"), network("two")},
		Origins:  []string{gateway.AnyOrigin},
		Proxies:  []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Pages:    gateway.Pages{Hosts: []string{"pages.test"}, Handler: seen},
	}, time.Second)
	for _, c := range []struct{ host, path, want string }{
		{"pages.test", "/", "203.0.113.7 https://pages.test/"},
		{"PAGES.test:8545", "/keys/one", "203.0.113.7 https://PAGES.test:8545/keys/one"},
		{"pages.test", "/healthz", "ok\n"},
		{"pages.test", "/one/v3/", "method not allowed"},
		{"other.test", "/", "no such path"},
	} {
		response, body := s.ask(http.MethodGet, c.path, "", "Host", c.host, "X-Forwarded-For", "203.0.113.7", "X-Forwarded-Proto", "https", "Origin", "https://evil.test")
		if !strings.Contains(body, c.want) {
			t.Errorf("%s%s: %q, expected %q", c.host, c.path, body, c.want)
		}
		if strings.HasPrefix(body, "203.") && response.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s%s: pages of other origins may read it", c.host, c.path)
		}
	}
	if _, body := s.ask(http.MethodPost, "/one/v3/"+goodKey, `{"jsonrpc":"2.0","id":1,"method":"test_name"}`, "Host", "pages.test", "Content-Type", "application/json"); !strings.Contains(body, `"one"`) {
		t.Errorf("JSON-RPC at the host of pages: %s", body)
	}
	// JSON-RPC and WebSockets at other paths are not answered with pages.
	for _, path := range []string{"/", "/v3/" + goodKey + "/x"} {
		const want = `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"no such path: expected /v3/<key>, /ws/v3/<key>, or one of them after /<network>"}}`
		response, body := s.ask(http.MethodPost, path, call("test_name"), "Host", "pages.test", "Content-Type", "application/json")
		if response.StatusCode != http.StatusNotFound || body != want {
			t.Errorf("JSON-RPC at %s: %d %s", path, response.StatusCode, body)
		}
	}
	handshake := []string{"Host", "pages.test", "Connection", "Upgrade", "Upgrade", "websocket"}
	for path, want := range map[string]string{"/": "no such path", "/one/v3/" + goodKey: "/ws/v3/<key>"} {
		if _, body := s.ask(http.MethodGet, path, "", handshake...); !strings.Contains(body, want) {
			t.Errorf("a WebSocket at %s: %s, expected %q", path, body, want)
		}
	}
}

func TestPagesAreChecked(t *testing.T) {
	for want, pages := range map[string]gateway.Pages{
		"invalid host of pages": {Hosts: []string{"https://pages.test"}, Handler: seen},
		"missing Handler":       {Hosts: []string{"pages.test"}},
		"want a lower-case":     {Hosts: []string{"Pages.test"}, Handler: seen},
	} {
		if _, err := gateway.New(gateway.Config{Keys: oneKey{}, Pages: pages}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %q", err, want)
		}
	}
}

// Calls from inside the process have the same limits as requests over HTTP.
func TestCallFromInside(t *testing.T) {
	synctest.Test(t, testCallFromInside) // no time passes between calls
}

func testCallFromInside(t *testing.T) {
	handler, err := gateway.New(gateway.Config{
		Networks: []gateway.Network{network("one"), network("two")}, Keys: oneKey{}, Limits: gateway.Limits{BodyBytes: 1000},
	})
	if err != nil {
		t.Fatal(err)
	}
	here := netip.MustParseAddr("192.0.2.1")
	rules := &account.Rules{
		Networks: []string{"one"}, Methods: []string{"test_name"}, Origins: []string{"https://a.test"},
		Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
	}
	slow := &account.Rules{PerSecond: 1}
	request := func(method string) string { return `{"jsonrpc":"2.0","id":7,"method":"` + method + `"}` }
	for _, c := range []struct {
		name, network, request string
		rules                  *account.Rules
		client                 netip.Addr
		status                 int
		want                   string
	}{
		{"no rules", "two", request("test_name"), nil, here, 200, `{"jsonrpc":"2.0","id":7,"result":"two"}`},
		{"all rules kept", "one", request("test_name"), rules, here, 200, `"one"`},
		{"another network", "two", request("test_name"), rules, here, 403, "network not allowed"},
		{"another method", "one", request("test_echo"), rules, here, 403, "method not allowed"},
		{"another address", "one", request("test_name"), rules, netip.MustParseAddr("192.0.3.1"), 403, "address not allowed"},
		{"no network", "three", request("test_name"), nil, here, 404, "no such network"},
		{"too large", "one", strings.Repeat(" ", 1001), nil, here, 413, "at most 1000 bytes"},
		{"not JSON", "one", "{", nil, here, 200, "parse error"},
		{"within the rate", "one", request("test_name"), slow, here, 200, `"one"`},
		{"within what was saved up", "one", request("test_name"), slow, here, 200, `"one"`},
		{"over the rate", "one", request("test_name"), slow, here, 429, "request rate exceeded"},
	} {
		var reply gateway.Reply
		handler.Do(t.Context(), gateway.Call{
			Network: c.network, Client: c.client, Request: []byte(c.request),
			Key: &account.Key{ID: account.KeyID{9}, Rules: c.rules},
		}, func(r gateway.Reply) { reply = r })
		if reply.Status != c.status || !strings.Contains(string(reply.Body), c.want) || (reply.Status == 429) != (reply.Retry > 0) {
			t.Errorf("%s: %d %s, retry %v; expected %d %s", c.name, reply.Status, reply.Body, reply.Retry, c.status, c.want)
		}
	}
}

// The memory of an answer inside the process is charged until it has been read.
func TestCallFromInsideHoldsItsAnswer(t *testing.T) {
	handler, err := gateway.New(gateway.Config{Networks: []gateway.Network{network("one")}, Keys: oneKey{}})
	if err != nil {
		t.Fatal(err)
	}
	asked := gateway.Call{Network: "one", Key: &account.Key{}, Request: []byte(call("test_large"))}
	handler.Do(t.Context(), asked, func(r gateway.Reply) {
		if held := handler.Stats().HeldBytes; held < int64(len(r.Body)) || len(r.Body) < 16_000 {
			t.Errorf("%d bytes are held while %d are read", held, len(r.Body))
		}
	})
	if held := handler.Stats().HeldBytes; held != 0 {
		t.Errorf("%d bytes are held afterwards", held)
	}
}
