package gateway_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ashlar/account"
	"ashlar/account/usage"
	"ashlar/gateway"
	"ashlar/internal/await"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/jsonrpctest"

	"github.com/coder/websocket"
)

// All keys of an account share its slots, so a second key gains nothing.
func TestKeysOfAnAccountShareSlots(t *testing.T) {
	const slots, ofOneAccount = 4, 3
	p := newPeople(t)
	greedy, modest := p.account("greedy@example.org", account.Limits{}), p.account("modest@example.org", account.Limits{})
	begun, release := make(chan struct{}, 100), make(chan struct{})
	s := start(t, gateway.Config{
		Networks: []gateway.Network{held(begun, release)}, Keys: p.keys, Limits: gateway.Limits{Light: slots},
	}, time.Minute)
	statuses := make(chan int, 100)
	ask := func(key string) {
		go func() {
			response, err := client.Post(s.url+"/v3/"+key, "application/json", strings.NewReader(call("test_held")))
			if err != nil {
				t.Error(err)
				return
			}
			defer response.Body.Close()
			statuses <- response.StatusCode
		}()
	}
	asked := 0
	for _, issued := range []account.Issued{p.key(account.NewKey{Owner: greedy}), p.key(account.NewKey{Owner: greedy})} {
		for range slots {
			ask(issued.APIKey)
			asked++
		}
	}
	await.Until(t, "the calls of one account to wait", func() bool { return s.handler.Stats().LightWaiting == asked-ofOneAccount })
	for range ofOneAccount {
		<-begun
	}
	ask(p.key(account.NewKey{Owner: modest}).APIKey)
	select {
	case <-begun:
	case <-time.After(time.Minute):
		t.Error("another account waits for a free slot")
	}
	close(release)
	for range asked + 1 {
		if status := <-statuses; status != http.StatusOK {
			t.Errorf("status %d", status)
		}
	}
}

// Methods see one caller for all keys of an account, so that what they count per caller is
// counted per account.
func TestCallerIsTheAccount(t *testing.T) {
	p := newPeople(t)
	n := network("alpha")
	n.Methods = jsonrpctest.With(n.Methods, jsonrpctest.Method("test_caller", func(ctx context.Context, _, out []byte) ([]byte, error) {
		return jsonrpc.AppendString(out, jsonrpc.CallerFrom(ctx)), nil
	}))
	s := start(t, gateway.Config{Networks: []gateway.Network{n}, Keys: p.keys}, 0)
	one, other := p.account("one@example.org", account.Limits{}), p.account("other@example.org", account.Limits{})
	seen := make(map[string]string)
	for name, owner := range map[string]account.ID{"one": one, "other": other, "operator": {}} {
		_, _, answer := s.with(p.key(account.NewKey{Owner: owner}).APIKey, call("test_caller"))
		_, _, again := s.with(p.key(account.NewKey{Owner: owner}).APIKey, call("test_caller"))
		if shared := answer == again; shared != (name != "operator") {
			t.Errorf("two keys of %s: %s and %s", name, answer, again)
		}
		if before := seen[answer]; before != "" {
			t.Errorf("%s and %s are one caller", name, before)
		}
		seen[answer] = name
	}
}

// A body costs a credit for each 8 KiB of its decompressed size, whatever it contains. A
// client in debt is refused before the rest of its body is read.
func TestBodiesCostCredits(t *testing.T) {
	p := newPeople(t)
	issued := p.key(account.NewKey{Owner: p.account("a@example.org", account.Limits{}), Rules: account.Rules{PerSecond: 1}})
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, Keys: p.keys, Usage: p.usage}, 0)
	bomb := zipped(t, `{"params":[`+strings.Repeat("0,", 1<<20)+"0]}") // 2 MiB
	if status, _, answer := s.with(issued.APIKey, bomb, "Content-Encoding", "gzip"); status != http.StatusOK || !strings.Contains(answer, "invalid request") {
		t.Errorf("a long body: %d %s", status, answer)
	}
	for name, headers := range map[string][]string{call("test_name"): nil, bomb: {"Content-Encoding", "gzip"}} {
		status, _, answer := s.with(issued.APIKey, name, headers...)
		// 256 credits for the bytes and one for each request, less 2 saved up, at 1 a second.
		if f := decodeFailure(t, answer); status != http.StatusTooManyRequests || f.Error.Data.Backoff < 150 || f.Error.Data.Backoff > 256 {
			t.Errorf("in debt: %d %s", status, answer)
		}
	}
	c := s.dialWith(issued.APIKey, nil)
	c.send(`"` + strings.Repeat("x", 100_000) + `"`)
	c.expectClosed(websocket.StatusTryAgainLater, "request rate exceeded: the rate limit is 1 credit per second")
	lines, err := p.usage.Read(t.Context(), usage.Query{Keys: []account.KeyID{issued.Key.ID}, To: time.Now().Add(time.Hour)})
	if err != nil || len(lines) != 1 || lines[0].Counts.Credits != 257 {
		t.Errorf("counted %+v, %v: expected 257 credits", lines, err)
	}
}

// longParameters is a call of a light method with parameters that are long to decode.
func longParameters() string {
	return `{"jsonrpc":"2.0","id":1,"method":"test_echo","params":["` + strings.Repeat("x", jsonrpc.LongRequest) + `"]}`
}

// A long request is decompressed, parsed and run in a slot of heavy calls, also if its
// method is a light one.
func TestLongRequestsWaitForASlot(t *testing.T) {
	for name, c := range map[string]struct{ request, encoding string }{
		"parsed":       {padded(jsonrpc.LongRequest + 1), ""},
		"of nothing":   {nothing(t) + zipped(t, call("test_name")), "gzip"},
		"decompressed": {zipped(t, call("test_name")+strings.Repeat(" ", mebibyte)), "gzip"},
		"parameters":   {longParameters(), ""},
	} {
		t.Run(name, func(t *testing.T) { waitsForASlot(t, c.request, c.encoding) })
	}
}

func waitsForASlot(t *testing.T, request, encoding string) {
	begun, release := make(chan struct{}, 1), make(chan struct{})
	n := held(begun, release)
	heavy := *n.Methods.Find("test_held")
	heavy.Cost = jsonrpc.Heavy(1)
	n.Methods = jsonrpctest.With(n.Methods, heavy)
	s := start(t, gateway.Config{Networks: []gateway.Network{n}, Keys: twoKeys{}, Limits: gateway.Limits{Heavy: 1}}, time.Minute)
	statuses := make(chan int, 2)
	ask := func(key, request, encoding string) {
		response, answer := s.ask("POST", "/v3/"+key, request, "Content-Type", "application/json", "Content-Encoding", encoding)
		if !strings.Contains(answer, `"result":`) {
			t.Errorf("answer %.200s", answer)
		}
		statuses <- response.StatusCode
	}
	go ask(goodKey, call("test_held"), "")
	<-begun
	go ask(secondKey, request, encoding)
	await.Until(t, "a heavy call to wait", func() bool { return s.handler.Stats().HeavyWaiting == 1 })
	if bytes := s.handler.Stats().HeldBytes; bytes > 4*jsonrpc.LongRequest {
		t.Errorf("%d bytes are held by a request that waits to be decompressed", bytes)
	}
	close(release)
	for range 2 {
		if status := <-statuses; status != http.StatusOK {
			t.Errorf("status %d", status)
		}
	}
}

// nothing returns more compressed bytes than those of a short request, which become no text.
func nothing(t *testing.T) string {
	empty := zipped(t, "")
	return strings.Repeat(empty, jsonrpc.LongRequest/len(empty)+1)
}

// A compressed body costs as much as a plain one of as many bytes, whatever it becomes.
func TestCompressedBodiesCostWhatIsSent(t *testing.T) {
	p := newPeople(t)
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, Keys: p.keys, Usage: p.usage}, time.Minute)
	key := p.key(account.NewKey{})
	response, answer := s.ask("POST", "/v3/"+key.APIKey, nothing(t)+zipped(t, call("test_name")), "Content-Type", "application/json", "Content-Encoding", "gzip")
	if response.StatusCode != http.StatusOK || !strings.Contains(answer, "alpha") {
		t.Fatalf("%d %s", response.StatusCode, answer)
	}
	lines, err := p.usage.Read(t.Context(), usage.Query{Keys: []account.KeyID{key.Key.ID}, To: time.Now().Add(time.Hour)})
	if err != nil || len(lines) != 1 || lines[0].Credits != 9 {
		t.Errorf("counted %+v, %v: expected a credit for the call and 8 for 64 KiB", lines, err)
	}
}

// A compressed batch of more calls than allowed is decompressed no further than needed to
// see that, and is answered like one that is not compressed.
func TestLongBatchesAreNotDecompressed(t *testing.T) {
	p := newPeople(t)
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, Keys: p.keys, Usage: p.usage}, time.Minute)
	inside := `"` + strings.Repeat("я", 10) + `"` // the beginning ends inside of a character
	for _, element := range []string{"0", `"ä"`, inside} {
		plain, short := p.key(account.NewKey{}), p.key(account.NewKey{})
		batch := "[" + strings.Repeat(element+",", 4_000_000/len(element+",")) + element + "]"
		_, _, want := s.with(plain.APIKey, batch)
		response, got := s.ask("POST", "/v3/"+short.APIKey, zipped(t, batch), "Content-Type", "application/json", "Content-Encoding", "gzip")
		if response.StatusCode != http.StatusOK || got != want {
			t.Errorf("%s: %d, %s; uncompressed %s", element, response.StatusCode, got, want)
		}
		used := func(key account.KeyID) uint64 {
			lines, err := p.usage.Read(t.Context(), usage.Query{Keys: []account.KeyID{key}, To: time.Now().Add(time.Hour)})
			if err != nil || len(lines) != 1 {
				t.Fatalf("%+v, %v", lines, err)
			}
			return lines[0].Credits
		}
		if whole, few := used(plain.Key.ID), used(short.Key.ID); few > 10 || whole < 200 {
			t.Errorf("%s: %d credits, and %d uncompressed: expected 10 at most, for the beginning", element, few, whole)
		}
	}
}

// from sends a request to a handler from a client address, and returns the status and the
// answer.
func from(t *testing.T, h http.Handler, address, target, body string, headers ...string) (int, string) {
	t.Helper()
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	r.RemoteAddr = address
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// The default rates apply to remote clients, but not to local clients and proxies; the
// default rate of keys does not apply to the operator's.
func TestDefaultRates(t *testing.T) {
	synctest.Test(t, testDefaultRates) // no time passes between calls
}

func testDefaultRates(t *testing.T) {
	p := newPeople(t)
	handler, err := gateway.New(gateway.Config{
		Networks: []gateway.Network{network("alpha")}, Keys: p.keys, Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		Credits: func(*jsonrpc.Method) int { return gateway.DefaultRate },
		Limits: gateway.Limits{
			Key: gateway.KeyLimits{Rate: gateway.PerSecond(gateway.DefaultRate)}, Account: gateway.KeyLimits{Rate: gateway.PerSecond(gateway.DefaultAccountRate)},
			Address: gateway.PerSecond(gateway.DefaultAddressRate),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	owned := func(email string) string {
		return p.key(account.NewKey{Owner: p.account(email, account.Limits{})}).APIKey
	}
	two := p.account("two@example.org", account.Limits{})
	twoKeys := []string{p.key(account.NewKey{Owner: two}).APIKey, p.key(account.NewKey{Owner: two}).APIKey, p.key(account.NewKey{Owner: two}).APIKey}
	const any = 20
	for _, c := range []struct {
		name      string
		keys      []string
		addresses []string
		headers   []string
		allowed   int // of twenty calls, each of as many credits as a key has in a second
		want      string
	}{
		{"a key", []string{owned("a@example.org")}, []string{"192.0.2.1:1"}, nil, 2, "request rate exceeded: the rate limit is 20000 credits per second"},
		{"keys of an account", twoKeys, []string{"192.0.2.2:1", "192.0.2.3:1"}, nil, 4, "request rate of the account exceeded: the rate limit is 40000 credits per second"},
		{"an address", []string{p.key(account.NewKey{}).APIKey}, []string{"192.0.2.4:1"}, nil, 4, "request rate of the address exceeded: the rate limit is 40000 credits per second"},
		{"a network of IPv6", []string{p.key(account.NewKey{}).APIKey}, []string{"[2001:db8::1]:1", "[2001:db8::2]:1"}, nil, 4, "request rate of the address exceeded: the rate limit is 40000 credits per second"},
		{"behind a proxy", []string{owned("b@example.org")}, []string{"10.0.0.1:1"}, []string{"X-Forwarded-For", "192.0.2.5"}, 2, "request rate exceeded: the rate limit is 20000 credits per second"},
		{"a proxy itself", []string{owned("c@example.org")}, []string{"10.0.0.1:1"}, nil, any, ""},
		{"this machine", []string{owned("d@example.org")}, []string{"127.0.0.1:1", "[::1]:1"}, nil, any, ""},
		{"the operator's key", []string{p.key(account.NewKey{}).APIKey}, []string{"192.0.2.6:1", "192.0.2.7:1", "192.0.2.8:1", "192.0.2.9:1", "192.0.2.10:1"}, nil, any, ""},
		{"a rule of the operator's key", []string{p.key(account.NewKey{Rules: account.Rules{PerSecond: 1}}).APIKey}, []string{"127.0.0.1:1"}, nil, 1, "request rate exceeded: the rate limit is 1 credit per second"},
	} {
		allowed, refused := 0, ""
		for i := range any {
			status, answer := from(t, handler, c.addresses[i%len(c.addresses)], "http://a.test/v3/"+c.keys[i%len(c.keys)], call("test_name"), c.headers...)
			if status == http.StatusOK {
				allowed++
			} else if refused == "" {
				refused = decodeFailure(t, answer).Error.Message
			}
		}
		if allowed != c.allowed || refused != c.want {
			t.Errorf("%s: %d calls were allowed and then %q, expected %d and %q", c.name, allowed, refused, c.allowed, c.want)
		}
	}
}

// Pages at a loopback host name are for clients on the loopback interface: any other client
// can send such a name, and a proxy can pass one on.
func TestPagesOfLoopbackHosts(t *testing.T) {
	handler, err := gateway.New(gateway.Config{
		Keys: oneKey{}, Networks: []gateway.Network{network("one")}, Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")},
		Pages: gateway.Pages{Hosts: []string{"localhost", "127.0.0.1", "[::1]", "pages.test"}, Handler: seen},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, address, host string
		headers             []string
		served              bool
	}{
		{"this machine", "127.0.0.1:1", "localhost:8545", nil, true},
		{"this machine by IPv6", "[::1]:1", "[::1]:8545", nil, true},
		{"another machine", "192.0.2.1:1", "localhost", nil, false},
		{"another machine by IPv6", "192.0.2.1:1", "[::1]", nil, false},
		{"another machine at a public name", "192.0.2.1:1", "pages.test", nil, true},
		{"a trusted proxy", "127.0.0.2:1", "127.0.0.1", []string{"X-Forwarded-For", "127.0.0.1"}, false},
		{"a proxy that is not listed", "127.0.0.1:1", "127.0.0.1", []string{"X-Forwarded-For", "192.0.2.1"}, false},
	} {
		status, answer := from(t, handler, c.address, "http://"+c.host+"/", "", c.headers...)
		if served := status == http.StatusOK; served != c.served {
			t.Errorf("%s: %d %s, expected to be served: %t", c.name, status, answer, c.served)
		}
	}
}

// A proxy that is missing from the configuration is logged, once.
func TestMissingProxyIsLogged(t *testing.T) {
	const warning = "all clients seem to come from one address"
	for _, c := range []struct {
		name      string
		addresses []string
		headers   []string
		proxies   []netip.Prefix
		warns     int
	}{
		{"one private address", []string{"10.0.0.1:1"}, nil, nil, 1},
		{"two private addresses", []string{"10.0.0.1:1", "10.0.0.2:1"}, nil, nil, 0},
		{"a public address", []string{"192.0.2.1:1"}, []string{"X-Forwarded-For", "192.0.2.2"}, nil, 0},
		{"this machine", []string{"127.0.0.1:1"}, nil, nil, 0},
		{"a proxy on this machine", []string{"127.0.0.1:1"}, []string{"X-Forwarded-For", "192.0.2.1"}, nil, 1},
		{"a proxy that is listed", []string{"10.0.0.1:1"}, []string{"X-Forwarded-For", "192.0.2.1"}, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, 0},
	} {
		var log logBuffer
		handler, err := gateway.New(gateway.Config{
			Keys: oneKey{}, Networks: []gateway.Network{network("one")}, Proxies: c.proxies, Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 1100 {
			from(t, handler, c.addresses[i%len(c.addresses)], "http://a.test/v3/"+goodKey, call("test_name"), c.headers...)
		}
		if warns := strings.Count(log.String(), warning); warns != c.warns {
			t.Errorf("%s: %d warnings, expected %d: %s", c.name, warns, c.warns, &log)
		}
	}
}

// Browsers are told to come back by https only where the server itself encrypts.
func TestPagesOverTLSAreStrict(t *testing.T) {
	handler, err := gateway.New(gateway.Config{
		Keys: oneKey{}, Networks: []gateway.Network{network("one")}, Pages: gateway.Pages{Hosts: []string{"pages.test"}, Handler: seen},
	})
	if err != nil {
		t.Fatal(err)
	}
	for scheme, want := range map[string]string{"http": "", "https": "max-age=31536000"} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, scheme+"://pages.test/", nil)) // which sets TLS for https
		if got := w.Header().Get("Strict-Transport-Security"); got != want {
			t.Errorf("%s: %q, expected %q", scheme, got, want)
		}
	}
}
