package gateway_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"ashlar/account"
	"ashlar/gateway"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/jsonrpctest"
	"ashlar/limit"

	"github.com/coder/websocket"
)

// contractOf returns an address that begins with a byte.
func contractOf(first byte) jsonrpc.Contract {
	return jsonrpc.Contract(append([]byte{first}, make([]byte, 19)...))
}

// Each rule of a key refuses calls, and the message names the rule.
func TestRulesOfKeys(t *testing.T) {
	alpha := network("alpha")
	echo := *alpha.Methods.Find("test_echo")
	echo.Concerns = func(_ context.Context, params []byte) (jsonrpc.Concern, error) {
		switch {
		case len(params) > 3:
			return jsonrpc.None(), errors.New("this call does more: expected less")
		case len(params) > 2:
			return jsonrpc.About(contractOf(params[1])), nil
		}
		return jsonrpc.About(), nil
	}
	unjudged := jsonrpctest.Method("test_unjudged", echo.Handler)
	unjudged.Concerns = func(context.Context, []byte) (jsonrpc.Concern, error) { return jsonrpc.Concern{}, nil }
	short := jsonrpctest.Method("test_short", echo.Handler)
	short.Concerns = func(context.Context, []byte) (jsonrpc.Concern, error) { return jsonrpc.About("1"), nil }
	alpha.Methods = jsonrpctest.With(jsonrpctest.With(jsonrpctest.With(alpha.Methods, echo), unjudged), short)
	gamma := network("gamma")
	gamma.Restricted = []string{"test_l*"}
	keys := new(ruled)
	s := start(t, gateway.Config{Networks: []gateway.Network{alpha, network("beta"), gamma}, Keys: keys}, 0)
	for _, c := range []struct {
		name, network, request string
		rules                  account.Rules
		origin                 string
		want                   string // "" if allowed
	}{
		{"a network that is listed", "alpha", call("test_name"), account.Rules{Networks: []string{"alpha"}}, "", ""},
		{"another network", "beta", call("test_name"), account.Rules{Networks: []string{"alpha"}}, "",
			"network not allowed: the key's rules do not list beta"},
		{"a method that is listed", "alpha", call("test_name"), account.Rules{Methods: []string{"test_n*"}}, "", ""},
		{"another method", "alpha", call("test_large"), account.Rules{Methods: []string{"test_n*"}}, "",
			"method not allowed: test_large is not available to this key, whose rules do not list it"},
		{"a restricted method", "gamma", call("test_large"), account.Rules{}, "",
			"method not allowed: test_large is not available to this key: gamma restricts it to keys whose rules list it: add it to the methods of the key's rules, or ask the holder of the key"},
		{"a restricted method that is listed", "gamma", call("test_large"), account.Rules{Methods: []string{"test_*"}}, "", ""},
		{"a method beside a restricted one", "gamma", call("test_name"), account.Rules{}, "", ""},
		{"an origin that is listed", "alpha", call("test_name"), account.Rules{Origins: []string{"https://a.test"}}, "https://a.test", ""},
		{"another origin", "alpha", call("test_name"), account.Rules{Origins: []string{"https://a.test"}}, "https://b.test",
			"origin not allowed: the key's rules do not list it"},
		{"an address that is listed", "alpha", call("test_name"), account.Rules{Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, "", ""},
		{"another address", "alpha", call("test_name"), account.Rules{Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}, "",
			"address not allowed: the key's rules do not list the client's address"},
		{"a contract that is listed", "alpha", `{"jsonrpc":"2.0","id":1,"method":"test_echo","params":[1]}`, account.Rules{Contracts: []account.Contract{{'1'}}}, "", ""},
		{"another contract", "alpha", `{"jsonrpc":"2.0","id":1,"method":"test_echo","params":[2]}`, account.Rules{Contracts: []account.Contract{{'1'}}}, "",
			"contract not allowed: the key's rules do not list 0x3200000000000000000000000000000000000000"},
		{"all contracts", "alpha", `{"jsonrpc":"2.0","id":1,"method":"test_echo"}`, account.Rules{Contracts: []account.Contract{{'1'}}}, "",
			"contract not allowed: the key's rules list contracts, and this call names none"},
		{"more than a contract", "alpha", `{"jsonrpc":"2.0","id":1,"method":"test_echo","params":[12]}`, account.Rules{Contracts: []account.Contract{{'1'}}}, "",
			"contract not allowed: the key's rules list contracts, and this call does more: expected less"},
		{"what cannot be judged", "alpha", call("test_unjudged"), account.Rules{Contracts: []account.Contract{{'1'}}}, "",
			"contract not allowed: the key's rules list contracts, and this call names none"},
		{"an address of another length", "alpha", call("test_short"), account.Rules{Contracts: []account.Contract{{'1'}}}, "",
			"contract not allowed: the key's rules do not list 0x31"},
		{"no contract at all", "alpha", call("test_name"), account.Rules{Contracts: []account.Contract{{'1'}}}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			keys.set(&c.rules)
			response, answer := s.ask("POST", "/"+c.network+"/v3/"+goodKey, c.request, "Content-Type", "application/json", "Origin", c.origin)
			f := decodeFailure(t, answer)
			if c.want == "" && (response.StatusCode != 200 || f.Error.Code != 0) {
				t.Errorf("%d %s", response.StatusCode, answer)
			}
			if c.want != "" && (response.StatusCode != 403 || f.Error.Code != -32002 || f.Error.Message != c.want) {
				t.Errorf("%d %s, expected %s", response.StatusCode, answer, c.want)
			}
		})
	}
	keys.set(nil)
	conn, _, err := websocket.Dial(t.Context(), s.url+"/alpha/ws/v3/"+goodKey, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	c := &socket{t, conn}
	keys.set(&account.Rules{Networks: []string{"beta"}}) // counts on connections that are open, too
	c.send(call("test_name"))
	c.expectClosed(websocket.StatusPolicyViolation, "network not allowed: the key's rules do not list alpha")
}

// A call that rules forbid costs as much as one of an unknown method, also in a batch.
func TestForbiddenCallsCost(t *testing.T) {
	const calls, quota = 9, 5
	alpha := network("alpha")
	echo := *alpha.Methods.Find("test_echo")
	echo.Concerns = func(context.Context, []byte) (jsonrpc.Concern, error) { return jsonrpc.About(contractOf('2')), nil }
	alpha.Methods = jsonrpctest.With(alpha.Methods, echo)
	alpha.Restricted = []string{"test_large"}
	for _, c := range []struct {
		method string
		rules  account.Rules
	}{
		{"test_large", account.Rules{}},
		{"test_large", account.Rules{Methods: []string{"test_name"}}},
		{"test_wait", account.Rules{Methods: []string{"test_name"}}},
		{"test_echo", account.Rules{Contracts: []account.Contract{{'1'}}}},
	} {
		c.rules.PerDay = quota
		s := start(t, gateway.Config{
			Networks: []gateway.Network{alpha}, Keys: withRules(c.rules), Credits: func(*jsonrpc.Method) int { return 3 },
		}, 0)
		_, answer := s.post("[" + strings.Repeat(call(c.method)+",", calls-1) + call(c.method) + "]")
		if strings.Count(answer, `"code":-32002`) != quota || strings.Count(answer, "daily quota exceeded") != calls-quota {
			t.Errorf("%s with %+v: %s", c.method, c.rules, answer)
		}
		if status, _, answer := s.with(goodKey, call(c.method)); status != 429 {
			t.Errorf("%s with %+v: %d %s, expected 429", c.method, c.rules, status, answer)
		}
	}
}

// A request that rules forbid as a whole costs the client's address a credit, and the key none: its
// holder would lose what others spend.
func TestForbiddenRequestsCostAddresses(t *testing.T) {
	config := gateway.Config{
		Networks: []gateway.Network{network("alpha"), network("beta")}, Keys: withRules(account.Rules{Networks: []string{"alpha"}, PerDay: 1}),
	}
	forbidden := func(s *running) int {
		response, _ := s.ask("POST", "/beta/v3/"+goodKey, call("test_name"), "Content-Type", "application/json")
		return response.StatusCode
	}
	s := start(t, config, 0)
	for range 5 {
		if status := forbidden(s); status != 403 {
			t.Errorf("without a limit of the address: %d", status)
		}
	}
	if response, answer := s.ask("POST", "/alpha/v3/"+goodKey, call("test_name"), "Content-Type", "application/json"); response.StatusCode != 200 {
		t.Errorf("what is not forbidden: %d %s", response.StatusCode, answer)
	}
	config.Limits.Address = limit.Rate{PerSecond: 0.0001, Burst: 3}
	s = start(t, config, 0)
	for n, want := range []int{403, 403, 403, 429, 429} {
		if status := forbidden(s); status != want {
			t.Errorf("request %d: %d, expected %d", n, status, want)
		}
	}
	key, _ := config.Keys.Check(goodKey)
	asked := gateway.Call{Network: "beta", Key: key, Client: netip.MustParseAddr("127.0.0.1"), Request: []byte(call("test_name"))}
	s.handler.Do(t.Context(), asked, func(r gateway.Reply) {
		if r.Status != 429 || r.Retry == 0 {
			t.Errorf("inside of the process: %d %s, expected 429", r.Status, r.Body)
		}
	})
}
