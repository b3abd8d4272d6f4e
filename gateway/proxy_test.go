package gateway_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"ashlar/account"
	"ashlar/gateway"

	"github.com/coder/websocket"
)

// Some proxies write the port of the client, too. Their clients would have the proxy's address
// otherwise, to which default limits do not apply.
func TestForwardedForWithPorts(t *testing.T) {
	keys := withRules(account.Rules{Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/32")}})
	s := start(t, gateway.Config{
		Networks: []gateway.Network{network("alpha")}, Keys: keys, Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	}, 0)
	for from, want := range map[string]int{
		"192.0.2.1":                    200,
		"192.0.2.1:50123":              200,
		"198.51.100.1, 192.0.2.1:5012": 200,
		"192.0.2.1:1, 127.0.0.9:80":    200,
		"2001:db8::1":                  200,
		"[2001:db8::1]":                200,
		"[2001:db8::1]:50123":          200,
		"[::ffff:192.0.2.1]:50123":     200,
		"192.0.2.1, 198.51.100.1:5012": 403,
		"198.51.100.1:50123":           403,
		"192.0.2.1, unknown":           403,
	} {
		if response, answer := s.post(call("test_name"), "X-Forwarded-For", from); response.StatusCode != want {
			t.Errorf("from %s: %d %s, expected %d", from, response.StatusCode, answer, want)
		}
	}
}

// The rules of a key hold for an open WebSocket as for its handshake: the client is the one that the proxy named then, and
// the page the one that opened it, also when the rules change.
func TestRulesOfSocketsBehindProxies(t *testing.T) {
	rules := account.Rules{Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, Origins: []string{"https://a.test"}}
	keys := withRules(rules)
	s := start(t, gateway.Config{
		Networks: []gateway.Network{network("alpha")}, Keys: keys, Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Origins: []string{gateway.AnyOrigin},
	}, 0)
	socket := s.dial(&websocket.DialOptions{HTTPHeader: http.Header{"X-Forwarded-For": {"192.0.2.1"}, "Origin": {"https://a.test"}}})
	socket.send(call("test_name"))
	if got := socket.receive(); !strings.Contains(got, "alpha") {
		t.Error(got)
	}
	rules.Origins = []string{"https://b.test"}
	keys.set(&rules)
	if message, err := socket.read(); err == nil || !strings.Contains(err.Error(), "origin not allowed") {
		t.Errorf("after the key's rules have changed: %s %v, expected the end of the connection", message, err)
	}
}
