package gateway_test

import (
	"context"
	"net/http"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/account/failures"
	"ashlar/account/usage"
	"ashlar/gateway"
	"ashlar/jsonrpc"

	"github.com/coder/websocket"
)

// Every failed request of a key is counted by its cause or its error code, exactly once, and
// listed for the key's owner.
func TestFailuresAreCounted(t *testing.T) {
	p := newPeople(t)
	n := network("alpha")
	n.Methods.Find("test_echo").Concerns = jsonrpc.AnyContract
	log := failures.New()
	s := start(t, gateway.Config{
		Networks: []gateway.Network{n, network("beta")}, Keys: p.keys, Usage: p.usage, Failures: log, Origins: []string{gateway.AnyOrigin},
		Limits:  gateway.Limits{BodyBytes: 10_000, Failures: gateway.PerSecond(0)},
		Credits: func(*jsonrpc.Method) int { return 10 },
	}, 0)
	all := account.Rules{}
	send := func(body string, headers ...string) func(account.Issued) {
		return func(k account.Issued) { p.post(s.url+"/alpha/v3/"+k.APIKey, body, headers...) }
	}
	name := call("test_name")
	for what, c := range map[string]struct {
		rules   account.Rules
		guarded bool
		do      func(account.Issued)
		refused map[usage.Cause]uint64
		codes   map[int]uint64
		last    string // the message of the last failure
	}{
		"nothing":        {all, false, send(name), nil, nil, ""},
		"rate":           {account.Rules{PerSecond: 1}, false, func(k account.Issued) { send("[" + name + "," + name + "]")(k) }, map[usage.Cause]uint64{usage.Rate: 1}, nil, "request rate exceeded"},
		"quota":          {account.Rules{PerDay: 15}, false, send("[" + name + "," + name + "]"), map[usage.Cause]uint64{usage.Quota: 1}, nil, "daily quota exceeded"},
		"origin":         {account.Rules{Origins: []string{"https://a.test"}}, false, send(name, "Origin", "https://b.test"), map[usage.Cause]uint64{usage.Origin: 1}, nil, "origin not allowed"},
		"address":        {account.Rules{Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}, false, send(name), map[usage.Cause]uint64{usage.Address: 1}, nil, "address not allowed"},
		"network":        {account.Rules{Networks: []string{"beta"}}, false, send(name), map[usage.Cause]uint64{usage.Network: 1}, nil, "network not allowed"},
		"password":       {all, true, send(name), map[usage.Cause]uint64{usage.Password: 1}, nil, "invalid project secret"},
		"method":         {account.Rules{Methods: []string{"test_echo"}}, false, send(name), map[usage.Cause]uint64{usage.Method: 1}, nil, "method not allowed"},
		"contract":       {account.Rules{Contracts: []account.Contract{{1}}}, false, send(call("test_echo")), map[usage.Cause]uint64{usage.Contract: 1}, nil, "contract not allowed"},
		"size":           {all, false, send(strings.Repeat(" ", 10_001)), map[usage.Cause]uint64{usage.Size: 1}, nil, "request body too large"},
		"codes":          {all, false, send("[" + call("test_fail") + "," + call("made_up") + "," + name + "]"), nil, map[int]uint64{-32603: 1, -32601: 1}, "the method made_up does not exist/is not available"},
		"no JSON":        {all, false, send("{"), nil, map[int]uint64{-32700: 1}, ""},
		"an empty batch": {all, false, send("[]"), nil, map[int]uint64{-32600: 1}, "empty batch"},
		"content type":   {all, false, send(name, "Content-Type", "text/plain"), nil, map[int]uint64{-32600: 1}, "invalid content type"},
		"a WebSocket": {account.Rules{Methods: []string{"test_echo"}}, false, func(k account.Issued) {
			conn, _, err := websocket.Dial(t.Context(), s.url+"/alpha/ws/v3/"+k.APIKey, &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {"https://b.test"}}})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.CloseNow()
			socket := &socket{t, conn}
			socket.send(name)
			socket.receive()
		}, map[usage.Cause]uint64{usage.Method: 1}, nil, "method not allowed"},
		"the console": {account.Rules{Networks: []string{"beta"}}, false, func(k account.Issued) {
			key, _ := p.keys.Check(k.APIKey)
			s.handler.Do(context.Background(), gateway.Call{Network: "alpha", Key: key, Client: netip.MustParseAddr("127.0.0.1"), Request: []byte(name)}, func(gateway.Reply) {})
		}, map[usage.Cause]uint64{usage.Network: 1}, nil, "network not allowed"},
	} {
		key := p.key(account.NewKey{Rules: c.rules, Guarded: c.guarded})
		c.do(key)
		lines, err := p.usage.Read(t.Context(), usage.Query{Keys: []account.KeyID{key.Key.ID}, To: time.Now().Add(time.Hour)})
		if err != nil || len(lines) != 1 {
			t.Fatalf("%s: %+v, %v", what, lines, err)
		}
		got := lines[0]
		sum := uint64(0)
		for _, n := range c.refused {
			sum += n
		}
		for _, n := range c.codes {
			sum += n
		}
		if !reflect.DeepEqual(got.Refused, c.refused) || !reflect.DeepEqual(got.Codes, c.codes) || got.Errors != sum {
			t.Errorf("%s: %d errors, refused %v, codes %v; expected %d, %v, %v", what, got.Errors, got.Refused, got.Codes, sum, c.refused, c.codes)
		}
		last := log.Last(key.Key.ID)
		if uint64(len(last)) != sum || sum > 0 && !strings.Contains(last[0].Message, c.last) {
			t.Errorf("%s: %d failures, expected %d, the last one with %q: %+v", what, len(last), sum, c.last, last)
		}
		for _, f := range last {
			if f.Network != "alpha" || f.Code == 0 || f.Params != "" || (what == "origin" || what == "a WebSocket") != (f.Origin == "https://b.test") {
				t.Errorf("%s: %+v", what, f)
			}
		}
	}
}

// Parameters of failed calls are listed if the key's owner has asked for it. Results are
// counted in bytes.
func TestParamsAndBytes(t *testing.T) {
	p := newPeople(t)
	log := failures.New()
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, Keys: p.keys, Usage: p.usage, Failures: log}, 0)
	key := p.key(account.NewKey{})
	failing := `{"jsonrpc":"2.0","id":1,"method":"test_fail","params":["secret"]}`
	s.with(key.APIKey, failing)
	log.KeepParams(key.Key.ID, true)
	s.with(key.APIKey, failing)
	s.with(key.APIKey, call("test_large"))
	if last := log.Last(key.Key.ID); len(last) != 2 || last[0].Params != `["secret"]` || last[0].Method != "test_fail" || last[1].Params != "" {
		t.Errorf("%+v", last)
	}
	lines, err := p.usage.Read(t.Context(), usage.Query{Keys: []account.KeyID{key.Key.ID}, To: time.Now().Add(time.Hour)})
	if err != nil || len(lines) != 1 || lines[0].Bytes != 16_002 {
		t.Errorf("%+v, %v; expected 16,002 bytes", lines, err)
	}
}

// post sends a request, whose answer does not matter. Headers are name-value pairs.
func (p *people) post(url, body string, headers ...string) {
	p.Helper()
	request, err := http.NewRequestWithContext(p.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.Fatal(err)
	}
	p.must(nil, response.Body.Close())
}
