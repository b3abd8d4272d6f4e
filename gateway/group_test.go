package gateway_test

import (
	"context"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/gateway"
	"ashlar/jsonrpc"
	"ashlar/limit"
)

// board is a limit.Board in memory.
type board struct {
	mu    sync.Mutex
	posts map[string][]byte
}

func (b *board) Post(_ context.Context, name string, value []byte, _ time.Duration) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.posts[name] = value
	return nil
}

func (b *board) Posts(context.Context) (map[string][]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.posts), nil
}

// TestGroup asks two servers that share a board with the same key, until its quota is used
// up at both. A server that starts then refuses the key at once.
func TestGroup(t *testing.T) {
	if now := time.Now().UTC(); now.Add(time.Minute).Day() != now.Day() {
		time.Sleep(time.Minute) // the quota of a day begins anew at midnight
	}
	const price, quota = 10, 200
	b := &board{posts: map[string][]byte{}}
	keys := withRules(account.Rules{})
	var groups []*limit.Group
	rounds := func() {
		t.Helper()
		for _, g := range groups {
			if err := g.Round(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	join := func() *running {
		groups = append(groups, limit.NewGroup(b))
		rounds()
		rounds()
		return start(t, gateway.Config{
			Keys: keys, Networks: []gateway.Network{network("alpha")}, Credits: func(*jsonrpc.Method) int { return price },
			Limits: gateway.Limits{Key: gateway.KeyLimits{PerDay: quota}}, Group: groups[len(groups)-1],
		}, 0)
	}
	servers := []*running{join(), join()}
	allowed := make([]int, len(servers))
	for range 3 * quota / price {
		for i, s := range servers {
			if response, _ := s.post(call("test_name")); response.StatusCode == http.StatusOK {
				allowed[i]++
			}
		}
		rounds()
	}
	// Both may spend the last credits in the same round.
	if sum := allowed[0] + allowed[1]; sum < quota/price || sum > quota/price+1 || allowed[0] == 0 || allowed[1] == 0 {
		t.Errorf("%d requests are allowed, expected %d at both together", allowed, quota/price)
	}
	if response, answer := join().post(call("test_name")); response.StatusCode != http.StatusTooManyRequests {
		t.Errorf("at a server that starts when the quota is used up: %d %s, expected 429", response.StatusCode, answer)
	}
}
