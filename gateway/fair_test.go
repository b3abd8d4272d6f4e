package gateway_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/gateway"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/jsonrpctest"
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
