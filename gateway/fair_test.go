package gateway_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/account/usage"
	"ashlar/gateway"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/jsonrpctest"

	"github.com/coder/websocket"
)

// All keys of an account share its slots, so that a second key gains it none.
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
	until(func() bool { return s.handler.Stats().LightWaiting == asked-ofOneAccount })
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

// Methods see an account's calls as one caller's, whichever of its keys they are made
// with, so that what they count by caller counts by account.
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

// A body costs a credit for each 8 KiB that it decompresses to, whatever is in it, and a
// client that owes credits is refused before the rest of its body is read.
func TestBodiesCostCredits(t *testing.T) {
	p := newPeople(t)
	issued := p.key(account.NewKey{Owner: p.account("a@example.org", account.Limits{}), Rules: account.Rules{PerSecond: 10}})
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, Keys: p.keys, Usage: p.usage}, 0)
	bomb := zipped(t, "["+strings.Repeat("0,", 1<<20)+"0]") // 2 MiB
	if status, _, answer := s.with(issued.APIKey, bomb, "Content-Encoding", "gzip"); status != http.StatusOK || !strings.Contains(answer, "batch too large") {
		t.Errorf("a long body: %d %s", status, answer)
	}
	for name, headers := range map[string][]string{call("test_name"): nil, bomb: {"Content-Encoding", "gzip"}} {
		status, _, answer := s.with(issued.APIKey, name, headers...)
		// 256 credits for the bytes and one for each request, less 20 saved up, at 10 a second.
		if f := decodeFailure(t, answer); status != http.StatusTooManyRequests || f.Error.Data.Backoff < 20 || f.Error.Data.Backoff > 24 {
			t.Errorf("in debt: %d %s", status, answer)
		}
	}
	c := s.dialWith(issued.APIKey, nil)
	c.send(`"` + strings.Repeat("x", 100_000) + `"`)
	c.expectClosed(websocket.StatusTryAgainLater, "request rate exceeded")
	lines, err := p.usage.Read(t.Context(), usage.Query{Keys: []account.KeyID{issued.Key.ID}, To: time.Now().Add(time.Hour)})
	if err != nil || len(lines) != 1 || lines[0].Counts.Credits != 257 {
		t.Errorf("counted %+v, %v: expected 257 credits", lines, err)
	}
}

// A long request is parsed in a slot of heavy calls.
func TestLongRequestsWaitForASlot(t *testing.T) {
	begun, release := make(chan struct{}, 1), make(chan struct{})
	n := held(begun, release)
	heavy := *n.Methods.Find("test_held")
	heavy.Cost = jsonrpc.Heavy(1)
	n.Methods = jsonrpctest.With(n.Methods, heavy)
	s := start(t, gateway.Config{Networks: []gateway.Network{n}, Keys: twoKeys{}, Limits: gateway.Limits{Heavy: 1}}, time.Minute)
	statuses := make(chan int, 2)
	ask := func(key, request string) {
		response, _ := s.ask("POST", "/v3/"+key, request, "Content-Type", "application/json")
		statuses <- response.StatusCode
	}
	go ask(goodKey, call("test_held"))
	<-begun
	go ask(secondKey, padded(jsonrpc.LongRequest+1))
	until(func() bool { return s.handler.Stats().HeavyWaiting == 1 })
	close(release)
	for range 2 {
		if status := <-statuses; status != http.StatusOK {
			t.Errorf("status %d", status)
		}
	}
}
