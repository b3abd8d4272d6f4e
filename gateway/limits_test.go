package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/gateway"
	"ashlar/internal/await"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/jsonrpctest"
	"ashlar/limit"

	"github.com/coder/websocket"
)

// ruled is a Keys whose only key has changeable rules.
type ruled struct{ key atomic.Pointer[account.Key] }

func withRules(rules account.Rules) *ruled {
	k := new(ruled)
	k.set(&rules)
	return k
}

func (k *ruled) set(rules *account.Rules) {
	k.key.Store(&account.Key{ID: account.KeyID{1}, Rules: rules})
}

func (k *ruled) Check(key string) (*account.Key, bool) { return k.key.Load(), key == goodKey }

type failure struct {
	Error struct {
		Code    int
		Message string
		Data    struct {
			See     string  `json:"see"`
			Current float64 `json:"current_rps"`
			Allowed float64 `json:"allowed_rps"`
			Used    uint64  `json:"used_credits"`
			Quota   uint64  `json:"allowed_credits"`
			Backoff float64 `json:"backoff_seconds"`
		}
	}
}

func decodeFailure(t *testing.T, answer string) (f failure) {
	t.Helper()
	if err := json.Unmarshal([]byte(answer), &f); err != nil {
		t.Errorf("%v: %s", err, answer)
	}
	return f
}

// A client over its rate is informed in every form that clients know.
func TestRate(t *testing.T) {
	credits := func(method *jsonrpc.Method) int {
		if method.Name == "test_large" {
			return 6
		}
		return 2
	}
	s := start(t, gateway.Config{
		Networks: []gateway.Network{network("alpha")}, Credits: credits, Origins: []string{gateway.AnyOrigin},
		Limits: gateway.Limits{Key: gateway.KeyLimits{Rate: limit.Rate{PerSecond: 0.01, Burst: 10}}, See: "https://a.test/limits"},
	}, 0)
	socket := s.dial(nil)
	for _, request := range []string{call("test_large"), call("test_name")} {
		if response, answer := s.post(request); response.StatusCode != 200 {
			t.Errorf("within the burst: %d %s", response.StatusCode, answer)
		}
	}
	response, answer := s.post("["+call("test_name")+","+call("test_name")+"]", "Origin", "https://b.test")
	// Its status cannot say that there is a limit. Proxies look for these words.
	if response.StatusCode != 200 || strings.Count(answer, `"result"`) != 1 || strings.Count(answer, "rate limit") != 1 || strings.Count(answer, `"code":-32005`) != 1 || response.Header.Get("Retry-After") != "" {
		t.Errorf("a batch of which half can be paid for: %d %s", response.StatusCode, answer)
	}
	response, answer = s.post(call("test_name"), "Origin", "https://b.test")
	f := decodeFailure(t, answer)
	if response.StatusCode != 429 || f.Error.Code != -32005 || f.Error.Message != "request rate exceeded: the rate limit is 0.01 credits per second" || f.Error.Data.See != "https://a.test/limits" ||
		f.Error.Data.Allowed != 0.01 || f.Error.Data.Current < 2 || f.Error.Data.Backoff <= 100 || f.Error.Data.Backoff > 200 || !strings.Contains(answer, `"id":1`) {
		t.Errorf("over the rate: %d %s", response.StatusCode, answer)
	}
	if response.Header.Get("Retry-After") != fmt.Sprint(math.Ceil(f.Error.Data.Backoff)) || response.Header.Get("Access-Control-Expose-Headers") != "Retry-After" {
		t.Errorf("headers %v", response.Header)
	}
	socket.send(call("test_name"))
	if f := decodeFailure(t, socket.receive()); f.Error.Code != -32005 || f.Error.Data.Allowed != 0.01 {
		t.Errorf("by WebSocket: %+v", f)
	}
	for _, request := range []string{"{", "[]", call("unknown")} { // costs little, but not nothing
		for range 3 {
			response, answer = s.post(request)
		}
		if response.StatusCode != 429 || !strings.Contains(answer, "request rate exceeded") {
			t.Errorf("%s: %d %s", request, response.StatusCode, answer)
		}
	}
}

func TestDailyQuota(t *testing.T) {
	keys := withRules(account.Rules{PerDay: 2})
	var hours atomic.Int64
	today := func() time.Time { return someDay.Add(time.Duration(hours.Load()) * time.Hour) }
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, Keys: keys, Today: today}, 0)
	for want, n := 200, 0; n < 3; n++ {
		if n == 2 {
			want = 429
		}
		response, answer := s.post(call("test_name"))
		if response.StatusCode != want {
			t.Errorf("call %d: %d %s", n, response.StatusCode, answer)
		}
		if wait, _ := strconv.Atoi(response.Header.Get("Retry-After")); want == 429 && (wait != 12*60*60 || !strings.Contains(answer, "daily quota exceeded: reached the quota of 2 credits")) {
			t.Errorf("Retry-After %d: %s", wait, answer)
		}
	}
	keys.set(&account.Rules{PerDay: 3}) // credits already spent still count
	for _, want := range []int{200, 429} {
		if response, answer := s.post(call("test_name")); response.StatusCode != want {
			t.Errorf("another quota: %d %s, expected %d", response.StatusCode, answer, want)
		}
	}
	hours.Store(12)
	for n, want := range []int{200, 200, 200, 429} {
		if response, answer := s.post(call("test_name")); response.StatusCode != want {
			t.Errorf("call %d of the next day: %d %s, expected %d", n, response.StatusCode, answer, want)
		}
	}
}

// An address that guesses keys is refused. Requests from it with a valid key are still
// answered.
func TestGuessing(t *testing.T) {
	s := start(t, gateway.Config{
		Networks: []gateway.Network{network("alpha")},
		Proxies:  []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Limits:   gateway.Limits{Failures: limit.Rate{PerSecond: 0.01, Burst: 5}},
	}, 0)
	guess := func(from string) (*http.Response, string) {
		return s.ask("POST", "/v3/wrong", call("test_name"), "X-Forwarded-For", from, "Content-Type", "application/json")
	}
	for range 5 {
		if response, answer := guess("198.51.100.1"); response.StatusCode != 401 {
			t.Errorf("%d %s", response.StatusCode, answer)
		}
	}
	if response, answer := guess("198.51.100.1"); response.StatusCode != 429 || response.Header.Get("Retry-After") == "" || !strings.Contains(answer, "too many requests without a valid key") {
		t.Errorf("one guess too many: %d %s", response.StatusCode, answer)
	}
	if response, _ := s.post(call("test_name"), "X-Forwarded-For", "198.51.100.1"); response.StatusCode != 200 {
		t.Errorf("a neighbour with a valid key: %d", response.StatusCode)
	}
	for _, from := range []string{"198.51.100.2", "198.51.100.1, 198.51.100.2", "198.51.100.1, 198.51.100.2, 127.0.0.9"} {
		if response, _ := s.post(call("test_name"), "X-Forwarded-For", from); response.StatusCode != 200 {
			t.Errorf("from %s: %d", from, response.StatusCode)
		}
	}
}

// X-Forwarded-For is ignored unless it comes from a trusted proxy.
func TestForwardedForNeedsATrustedProxy(t *testing.T) {
	keys := withRules(account.Rules{Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}})
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, Keys: keys}, 0)
	if response, _ := s.post(call("test_name"), "X-Forwarded-For", "192.0.2.1"); response.StatusCode != 403 {
		t.Errorf("a forged address: %d", response.StatusCode)
	}
}

// Cheap calls do not wait behind heavy ones, a key with too many calls does not delay
// others, and calls that do not fit into the queue are refused.
func TestFullMachine(t *testing.T) {
	const slots, ofOneKey, waiting = 4, 3, 4
	begun, release := make(chan struct{}, 100), make(chan struct{})
	n := held(begun, release)
	heavy := *n.Methods.Find("test_held")
	heavy.Cost = jsonrpc.Heavy(1)
	n.Methods = jsonrpctest.With(n.Methods, heavy)
	keys := twoKeys{}
	s := start(t, gateway.Config{
		Networks: []gateway.Network{n}, Keys: keys, Limits: gateway.Limits{Heavy: slots, Waiting: waiting},
	}, time.Minute)
	type outcome struct {
		key    string
		status int
	}
	outcomes := make(chan outcome, 100)
	ask := func(key string) {
		go func() {
			response, err := client.Post(s.url+"/v3/"+key, "application/json", strings.NewReader(call("test_held")))
			if err != nil {
				t.Error(err)
				return
			}
			defer response.Body.Close()
			if response.StatusCode == 503 && response.Header.Get("Retry-After") != "1" {
				t.Errorf("Retry-After %q", response.Header.Get("Retry-After"))
			}
			outcomes <- outcome{key, response.StatusCode}
		}()
	}
	const greedy = ofOneKey + waiting + 3
	for range greedy {
		ask(goodKey)
	}
	for range 3 { // the queue is full
		if got := <-outcomes; got.status != 503 {
			t.Errorf("%+v", got)
		}
	}
	if _, answer := s.post(call("test_name")); !strings.Contains(answer, "alpha") {
		t.Errorf("a cheap call: %s", answer)
	}
	for range ofOneKey {
		<-begun
	}
	ask(secondKey)
	<-begun // while the other key uses all its slots
	if response, _ := s.ask("POST", "/v3/"+secondKey, call("test_name"), "Content-Type", "application/json"); response.StatusCode != 200 {
		t.Errorf("another key's cheap call: %d", response.StatusCode)
	}
	close(release)
	for range greedy - 3 + 1 {
		if got := <-outcomes; got.status != 200 {
			t.Errorf("%+v", got)
		}
	}
}

const secondKey = "fedcba9876543210fedcba9876543210"

type twoKeys struct{}

func (twoKeys) Check(key string) (*account.Key, bool) {
	switch key {
	case goodKey:
		return known, true
	case secondKey:
		return other, true
	}
	return nil, false
}

var other = &account.Key{ID: account.KeyID{2}}

// The memory of all bodies and answers together is bounded.
func TestMemoryIsBounded(t *testing.T) {
	n := network("alpha")
	s := start(t, gateway.Config{Networks: []gateway.Network{n}, Limits: gateway.Limits{Memory: 200_000}}, 0) // one key may hold half of it
	// A request gives back what it holds after its answer was sent.
	released := func() {
		await.Until(t, "memory to be released", func() bool { return s.handler.Stats().HeldBytes == 0 })
	}
	if response, answer := s.post(padded(60_000)); response.StatusCode != 200 {
		t.Errorf("%d %s", response.StatusCode, answer)
	}
	released()
	if response, answer := s.post(padded(200_000)); response.StatusCode != 503 || response.Header.Get("Retry-After") == "" || answer != busyAnswer {
		t.Errorf("a body over it: %d %s", response.StatusCode, answer)
	}
	released()
	echoed := `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 60_000) + `","method":"unknown"}`
	if response, answer := s.post(echoed); response.StatusCode != 503 || answer != busyAnswer {
		t.Errorf("an answer over it: %d %.200s", response.StatusCode, answer)
	}
	released()
	c := s.dial(nil)
	c.send(echoed)
	if answer := c.receive(); answer != busyAnswer {
		t.Errorf("an answer over it on a WebSocket: %.200s", answer)
	}
	released()
}

func TestReload(t *testing.T) {
	config := gateway.Config{Networks: []gateway.Network{network("alpha", "a.test"), network("beta")}, Hosts: []string{"*.example.org"}}
	s := start(t, config, 0)
	for host, want := range map[string]string{"a.test": "alpha", "beta.example.org": "beta", "gamma.example.org": "", "b.test": "", "a.beta.example.org": ""} {
		if _, answer := s.post(call("test_name"), "Host", host); strings.Contains(answer, `"result"`) != (want != "") || !strings.Contains(answer, want) {
			t.Errorf("%s: %s", host, answer)
		}
	}
	c := &socket{t: t}
	var err error
	if c.conn, _, err = websocket.Dial(t.Context(), s.url+"/alpha/ws/v3/"+goodKey, nil); err != nil {
		t.Fatal(err)
	}
	defer c.conn.CloseNow()
	config.Networks[1] = network("beta", "b.test")
	config.Hosts = nil
	config.Limits.Key.Rate = limit.Rate{PerSecond: 0.001, Burst: 1}
	if err := s.handler.Reload(config); err != nil {
		t.Fatal(err)
	}
	if response, _ := s.post(call("test_name"), "Host", "b.test"); response.StatusCode != 200 {
		t.Errorf("the new host: %d", response.StatusCode)
	}
	if response, _ := s.post(call("test_name"), "Host", "beta.example.org"); response.StatusCode != 404 {
		t.Errorf("the old host: %d", response.StatusCode)
	}
	c.send(call("test_name"))
	if answer := c.receive(); !strings.Contains(answer, "request rate exceeded") {
		t.Errorf("on a connection that was open: %s", answer)
	}
	config.Networks[0].Hosts = []string{"b.test"}
	if err := s.handler.Reload(config); err == nil || !strings.Contains(err.Error(), "also another network's") {
		t.Errorf("a wrong configuration: %v", err)
	}
	if response, _ := s.post(call("unknown"), "Host", "b.test"); response.StatusCode != 429 {
		t.Errorf("a wrong configuration changes something: %d", response.StatusCode)
	}
}

// The error that a client sees identifies the failure in the log.
func TestFailuresAreNamed(t *testing.T) {
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}}, 0)
	if response, _ := s.post(call("test_name")); response.Header.Get("X-Request-Id") != "" {
		t.Error("a request is named without need")
	}
	response, _ := s.post(call("test_fail"))
	id := response.Header.Get("X-Request-Id")
	if want := fmt.Sprintf("request=%s network=alpha key=%s", id, known.ID); id == "" || !strings.Contains(s.log.String(), want) {
		t.Errorf("not in the log: %s\n%s", want, s.log)
	}
}

// The gate does not change a method's errors.
func TestGateKeepsErrors(t *testing.T) {
	n := network("alpha")
	n.Methods = jsonrpctest.With(n.Methods, jsonrpctest.Method("test_refuse", func(_ context.Context, _, out []byte) ([]byte, error) {
		return out, &jsonrpc.Error{Code: 3, Message: "execution reverted", Data: "0x"}
	}))
	s := start(t, gateway.Config{Networks: []gateway.Network{n}}, 0)
	if response, answer := s.post(call("test_refuse")); response.StatusCode != 200 || !strings.Contains(answer, `"error":{"code":3,"message":"execution reverted","data":"0x"}`) {
		t.Errorf("%d %s", response.StatusCode, answer)
	}
	for range 300 { // more than there are slots: a panic must release its slot
		s.post(call("test_panic"))
	}
	if stats := s.handler.Stats(); stats.LightRunning != 0 {
		t.Errorf("%d slots are taken for ever", stats.LightRunning)
	}
}

// A call that one limit refuses takes nothing from the others, which other keys and addresses share.
func TestRefusedCallsTakeNothing(t *testing.T) {
	var hours atomic.Int64
	today := func() time.Time { return someDay.Add(time.Duration(hours.Load()) * time.Hour) }
	s := start(t, gateway.Config{
		Networks: []gateway.Network{network("alpha")}, Keys: withRules(account.Rules{PerDay: 1}), Today: today,
		Limits: gateway.Limits{Key: gateway.KeyLimits{Rate: limit.Rate{PerSecond: 0.01, Burst: 3}}},
	}, 0)
	for n, want := range []int{200, 429, 429, 429} {
		if response, answer := s.post(call("test_name")); response.StatusCode != want {
			t.Errorf("call %d: %d %s, expected %d", n, response.StatusCode, answer, want)
		}
	}
	hours.Store(24)
	if response, answer := s.post(call("test_name")); response.StatusCode != 200 {
		t.Errorf("the next day: %d %s, expected that two of three credits of the rate are left", response.StatusCode, answer)
	}
}

// Calls of unknown methods cost a credit each, also in a batch.
func TestUnknownMethodsOfABatchCost(t *testing.T) {
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, Keys: withRules(account.Rules{PerDay: 5})}, 0)
	_, answer := s.post("[" + call("test_name") + strings.Repeat(","+call("unknown"), 9) + "]")
	if strings.Count(answer, `"result"`) != 1 || strings.Count(answer, `"code":-32601`) != 4 || strings.Count(answer, "daily quota exceeded") != 5 {
		t.Error(answer)
	}
}
