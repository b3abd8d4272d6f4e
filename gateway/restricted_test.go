package gateway_test

import (
	"strings"
	"testing"

	"ashlar/account"
	"ashlar/gateway"

	"github.com/coder/websocket"
)

const nowRestricted = "the network restricts the method of a subscription to keys whose rules list it"

// Subscriptions by a method that a reload restricts end on open connections, unless the key's rules
// list the method.
func TestRestrictionsEndSubscriptions(t *testing.T) {
	for _, c := range []struct {
		name       string
		restricted []string
		rules      account.Rules
		want       string // reason of the end; "" if the connection stays
	}{
		{"the method", []string{"test_subscribe"}, account.Rules{}, nowRestricted},
		{"methods like it", []string{"eth_*", "test_s*"}, account.Rules{}, nowRestricted},
		{"the method, which the key lists", []string{"test_subscribe"}, account.Rules{Methods: []string{"test_*"}}, ""},
		{"another method", []string{"test_large"}, account.Rules{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			alpha := streaming(1, 0, make(chan error, 1))
			config := gateway.Config{Networks: []gateway.Network{alpha}, Keys: withRules(c.rules)}
			s := start(t, config, 0)
			client, other := s.dial(nil), s.dial(nil)
			client.send(call("test_subscribe"))
			client.receive() // the answer
			client.receive() // the stream's message
			config.Networks[0].Restricted = c.restricted
			if err := s.handler.Reload(config); err != nil {
				t.Fatal(err)
			}
			if c.want != "" {
				client.expectClosed(websocket.StatusPolicyViolation, c.want)
			} else {
				client.send(call("test_name"))
				if got := client.receive(); !strings.Contains(got, "alpha") {
					t.Errorf("got %s", got)
				}
			}
			other.send(call("test_name"))
			if got := other.receive(); !strings.Contains(got, "alpha") {
				t.Errorf("a connection without subscriptions: got %s", got)
			}
		})
	}
}

// A subscription that was admitted before a reload restricted its method, and began afterwards, ends
// too, also beside one that the reload permits.
func TestRestrictionsEndLateSubscriptions(t *testing.T) {
	alpha, begun, release := slowlyStreaming()
	config := gateway.Config{Networks: []gateway.Network{alpha}}
	s := start(t, config, 0)
	client := s.dial(nil)
	client.send(call("test_slow"))
	<-begun
	config.Networks[0].Restricted = []string{"test_slow"}
	if err := s.handler.Reload(config); err != nil {
		t.Fatal(err)
	}
	client.send(call("test_subscribe"))
	client.receive() // the answer
	client.receive() // the stream's message
	close(release)
	client.drained(websocket.StatusPolicyViolation, nowRestricted)
}
