package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/gateway"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/jsonrpctest"
)

func TestStatusAndBody(t *testing.T) {
	const (
		wrongMethod = "method not allowed: expected POST with a JSON-RPC request as its body"
		wrongPath   = "no such path: expected /v3/<key>, /ws/v3/<key>, or one of them after /<network>"
		wrongType   = "invalid content type: expected application/json, application/json-rpc or application/jsonrequest, in UTF-8"
		noNetwork   = "no such network: expected the host or the path of a network that is served here"
		name        = `{"jsonrpc":"2.0","id":1,"result":"alpha"}`
	)
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha", "alpha.test"), network("beta")}, Limits: gateway.Limits{BodyBytes: 1000}}, 0)
	cases := []struct {
		name, method, path, contentType, body string
		status                                int
		answer                                string
	}{
		{"by path", "POST", "/alpha/v3/" + goodKey, "application/json", call("test_name"), 200, name},
		{"final slash", "POST", "/alpha/v3/" + goodKey + "/", "application/json", call("test_name"), 200, name},
		{"charset", "POST", "/alpha/v3/" + goodKey, "Application/JSON; charset=utf-8", call("test_name"), 200, name},
		{"older type", "POST", "/alpha/v3/" + goodKey, "application/json-rpc", call("test_name"), 200, name},
		{"notification", "POST", "/alpha/v3/" + goodKey, "application/json", `{"jsonrpc":"2.0","method":"test_name"}`, 200, ""},
		{"broken JSON", "POST", "/alpha/v3/" + goodKey, "application/json", `{`, 200,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error","data":"at the end: expected a member's name in quotes"}}`},
		{"empty body", "POST", "/alpha/v3/" + goodKey, "application/json", ``, 200,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error","data":"at the end: expected a value"}}`},
		{"nested too deep", "POST", "/alpha/v3/" + goodKey, "application/json", strings.Repeat("[", 500), 200,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request","data":"at byte 64: expected at most 64 levels of arrays and objects"}}`},
		{"no type", "POST", "/alpha/v3/" + goodKey, "", call("test_name"), 415, refusalOf("1", wrongType)},
		{"other charset", "POST", "/alpha/v3/" + goodKey, "application/json; charset=iso-8859-1", call("test_name"), 415, refusalOf("1", wrongType)},
		{"other type", "POST", "/alpha/v3/" + goodKey, "text/plain", call("test_name"), 415, refusalOf("1", wrongType)},
		{"no key", "POST", "/alpha/v3/", "application/json", call("test_name"), 401, refusalOf("1", "project id required in the url")},
		{"nor slash", "POST", "/alpha/v3", "application/json", call("test_name"), 401, refusalOf("1", "project id required in the url")},
		{"wrong key", "POST", "/alpha/v3/" + goodKey[1:], "application/json", call("test_name"), 401, refusalOf("1", "invalid project id")},
		{"GET", "GET", "/alpha/v3/" + goodKey, "", "", 405, refusal(wrongMethod)},
		{"PUT", "PUT", "/alpha/v3/" + goodKey, "application/json", call("test_name"), 405, refusal(wrongMethod)},
		{"unknown network", "POST", "/gamma/v3/" + goodKey, "application/json", call("test_name"), 404, refusalOf("1", noNetwork)},
		{"unknown host", "POST", "/v3/" + goodKey, "application/json", call("test_name"), 404, refusalOf("1", noNetwork)},
		{"root", "GET", "/", "", "", 404, refusal(wrongPath)},
		{"longer path", "POST", "/alpha/v3/" + goodKey + "/more", "application/json", call("test_name"), 404, refusalOf("1", wrongPath)},
		{"unknown version of methods", "POST", "/alpha/v3/" + goodKey + "/rpc/v0_9", "application/json", call("test_name"), 404,
			refusalOf("1", "no such version: expected a path without /rpc/..., or a version that the network has")},
		{"longer path after a version", "POST", "/alpha/v3/" + goodKey + "/rpc/v0_9/x", "application/json", call("test_name"), 404, refusalOf("1", wrongPath)},
		{"other version", "POST", "/alpha/v30/" + goodKey, "application/json", call("test_name"), 404, refusalOf("1", wrongPath)},
		{"refused batch", "POST", "/alpha/v3/", "application/json", `[` + call("test_name") + `]`, 401, refusal("project id required in the url")},
		{"refused long request", "POST", "/alpha/v3/", "application/json", `{"id":"a","params":["` + strings.Repeat("x", 5000) + `"]}`, 401, refusalOf(`"a"`, "project id required in the url")},
		{"refused late id", "POST", "/alpha/v3/", "application/json", `{"params":["` + strings.Repeat("x", 5000) + `"],"id":1}`, 401, refusal("project id required in the url")},
		{"too large", "POST", "/alpha/v3/" + goodKey, "application/json", `{"id":3,"params":["` + strings.Repeat("x", 1000) + `"]}`, 413,
			refusal("request body too large: expected at most 1000 bytes")},
		{"health", "GET", "/healthz", "", "", 200, "ok\n"},
		{"readiness", "GET", "/readyz", "", "", 200, "ready\n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var headers []string
			if c.contentType != "" {
				headers = []string{"Content-Type", c.contentType}
			}
			response, answer := s.ask(c.method, c.path, c.body, headers...)
			if response.StatusCode != c.status || answer != c.answer {
				t.Errorf("got  %d %s\nwant %d %s", response.StatusCode, answer, c.status, c.answer)
			}
			if response.ContentLength != int64(len(c.answer)) {
				t.Errorf("Content-Length %d, expected %d", response.ContentLength, len(c.answer))
			}
			if allow := response.Header.Get("Allow"); (c.status == 405) != (allow == "POST, OPTIONS") {
				t.Errorf("Allow: %q", allow)
			}
		})
	}
}

func TestNetworkByHost(t *testing.T) {
	s := start(t, gateway.Config{Networks: []gateway.Network{
		network("alpha", "alpha.test", "127.0.0.1"), network("beta", "beta.test", "[::1]"),
	}}, 0)
	for host, want := range map[string]string{
		"alpha.test": "alpha", "ALPHA.Test:8545": "alpha", "alpha.test.": "alpha", "127.0.0.1:1": "alpha",
		"beta.test": "beta", "[::1]:8545": "beta", "[::1]": "beta",
		"sub.alpha.test": "", "alpha.test.other": "", "other": "",
	} {
		response, answer := s.post(call("test_name"), "Host", host)
		if want == "" && response.StatusCode == 404 && !strings.Contains(answer, "alpha") {
			continue
		}
		if want == "" || !strings.Contains(answer, `"result":"`+want+`"`) {
			t.Errorf("host %s: %d %s, expected network %q", host, response.StatusCode, answer, want)
		}
	}
	alone := start(t, gateway.Config{Networks: []gateway.Network{network("alpha", "alpha.test")}}, 0)
	if _, answer := alone.post(call("test_name"), "Host", "any.host"); !strings.Contains(answer, `"alpha"`) {
		t.Errorf("the only network does not answer at any host: %s", answer)
	}
	beside := start(t, gateway.Config{
		Networks: []gateway.Network{network("alpha", "alpha.test")},
		Absent:   map[string][]string{"beta": {"beta.test"}}, Hosts: []string{"*.example.org"},
	}, 0)
	for host, want := range map[string]int{
		"any.host": 200, "alpha.test": 200, "alpha.example.org": 200, "other.example.org": 200,
		"beta.test": 404, "Beta.Test:8545": 404, "beta.example.org": 404,
	} {
		if response, answer := beside.post(call("test_name"), "Host", host); response.StatusCode != want {
			t.Errorf("beside an absent network, at %s: %d %s, expected %d", host, response.StatusCode, answer, want)
		}
	}
}

func TestNewRefusesWrongNetworks(t *testing.T) {
	for want, networks := range map[string][]gateway.Network{
		"invalid network name":      {network("v3")},
		"lower-case letters":        {network("A b")},
		"two networks are named":    {network("a"), network("a")},
		"is also another network's": {network("a", "x.test"), network("b", "x.test")},
		"invalid host":              {network("a", "https://x.test")},
		"without scheme and port":   {network("a", "x.test:80")},
	} {
		if _, err := gateway.New(gateway.Config{Networks: networks, Keys: oneKey{}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %q in it", err, want)
		}
	}
}

func TestEveryAnswerTellsItsLength(t *testing.T) {
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}}, 0)
	for n := 1; n < 10_000; n += 1 + n/3 {
		response, answer := s.post(`{"jsonrpc":"2.0","id":1,"method":"test_echo","params":["` + strings.Repeat("x", n) + `"]}`)
		if response.ContentLength != int64(len(answer)) || !strings.Contains(answer, strings.Repeat("x", n)) {
			t.Errorf("%d bytes: Content-Length %d for %d", n, response.ContentLength, len(answer))
		}
	}
}

func TestCrossOrigin(t *testing.T) {
	open := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, Origins: []string{gateway.AnyOrigin}}, 0)
	response, _ := open.ask("OPTIONS", "/v3/"+goodKey, "", "Origin", "https://wallet.test",
		"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type,x-more")
	for header, want := range map[string]string{
		"Access-Control-Allow-Origin":  "*",
		"Access-Control-Allow-Methods": "POST, OPTIONS",
		"Access-Control-Allow-Headers": "content-type,x-more",
		"Access-Control-Max-Age":       "86400",
	} {
		if got := response.Header.Get(header); got != want {
			t.Errorf("preflight: %s is %q, expected %q", header, got, want)
		}
	}
	if response.StatusCode != 204 {
		t.Errorf("preflight: %s", response.Status)
	}
	// Pages must be able to read refusals too.
	if response, _ := open.ask("POST", "/v3/", call("test_name"), "Origin", "https://wallet.test"); response.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("a refusal: headers %v", response.Header)
	}

	listed := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, Origins: []string{"https://a.test"}}, 0)
	for origin, want := range map[string]string{"https://a.test": "https://a.test", "https://b.test": ""} {
		response, answer := listed.post(call("test_name"), "Origin", origin)
		if got := response.Header.Get("Access-Control-Allow-Origin"); got != want || !strings.Contains(answer, "alpha") {
			t.Errorf("origin %s: allowed %q, answer %s", origin, got, answer)
		}
	}
}

// The reason why the service is not ready is logged once, and not shown to clients.
func TestNotReadyIsLoggedNotShown(t *testing.T) {
	var full atomic.Bool
	s := start(t, gateway.Config{
		Networks: []gateway.Network{network("alpha")},
		Ready: func(context.Context) error {
			if full.Load() {
				return errors.New("the disk is full")
			}
			return nil
		},
	}, 0)
	for _, isFull := range []bool{false, true, true, true, false, false, true} {
		full.Store(isFull)
		status, text := 200, "ready\n"
		if isFull {
			status, text = 503, "not ready\n"
		}
		if response, answer := s.ask("GET", "/readyz", ""); response.StatusCode != status || answer != text {
			t.Errorf("%d %q, expected %d %q", response.StatusCode, answer, status, text)
		}
	}
	log := s.log.String()
	if lost, again := strings.Count(log, "the disk is full"), strings.Count(log, "ready again"); lost != 2 || again != 1 {
		t.Errorf("%d times not ready and %d times again, expected 2 and 1, in the log %s", lost, again, log)
	}
}

// A call that fails because the store cannot be reached is refused, and may be tried again.
func TestUnavailable(t *testing.T) {
	lost := errors.New("too few nodes answer")
	fails := func(_ context.Context, _, out []byte) ([]byte, error) { return out, fmt.Errorf("read: %w", lost) }
	s := start(t, gateway.Config{
		Networks:    []gateway.Network{{Name: "alpha", Methods: jsonrpctest.Methods(jsonrpc.Handlers{"test_read": fails})}},
		Unavailable: func(err error) bool { return errors.Is(err, lost) },
	}, 0)
	response, answer := s.ask("POST", "/alpha/v3/"+goodKey, `{"jsonrpc":"2.0","id":1,"method":"test_read"}`, "Content-Type", "application/json")
	if response.StatusCode != 503 || response.Header.Get("Retry-After") == "" || !strings.Contains(answer, "the store cannot be reached") {
		t.Errorf("%d %q, Retry-After %q, expected 503 with a time", response.StatusCode, answer, response.Header.Get("Retry-After"))
	}
}

// TestLog also relies on start's check that no log contains the key.
func TestLog(t *testing.T) {
	s := start(t, gateway.Config{Networks: []gateway.Network{network("beta"), network("alpha", "127.0.0.1")}}, 0)
	for _, method := range []string{"test_panic", "test_fail", "test_name", "unknown"} {
		s.post(call(method))
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	log := s.log.String()
	for _, want := range []string{
		"msg=serving address=" + strings.TrimPrefix(s.url, "http://") + ` networks="[alpha beta]"`,
		`msg="method panicked" method=test_panic panic="a bug"`,
		`msg="method failed" method=test_fail error="a failure"`,
		`msg="stopped serving"`,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("not in the log: %s", want)
		}
	}
	if n := strings.Count(log, "\n"); n != 4 {
		t.Errorf("%d lines, expected 4: %s", n, log)
	}
}

func TestRequestTime(t *testing.T) {
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, Limits: gateway.Limits{RequestTime: 10 * time.Millisecond}}, 0)
	if _, answer := s.post(call("test_wait")); !strings.Contains(answer, `{"code":-32002,"message":"request timed out"}`) {
		t.Errorf("got %s", answer)
	}
}

func TestManyRequestsOnFewConnections(t *testing.T) {
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}}, 0)
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := range 50 {
				id := fmt.Sprint(worker*1000 + i)
				_, answer := s.post(`{"jsonrpc":"2.0","id":` + id + `,"method":"test_echo","params":["` + strings.Repeat(id, i) + `"]}`)
				if want := `{"jsonrpc":"2.0","id":` + id + `,"result":["` + strings.Repeat(id, i) + `"]}`; answer != want {
					t.Errorf("got %s, expected %s", answer, want)
				}
			}
		})
	}
	group.Wait()
}
