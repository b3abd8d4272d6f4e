package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"ashlar/internal/node"
	"ashlar/jsonrpc"
)

// spender spends the credits of a key at a reader, call after call.
type spender struct {
	address string
	client  *node.Client

	mu       sync.Mutex
	answered []time.Time // when each call was answered that was not refused
	refused  int         // calls since then that the quota refused
}

func (s *spender) run(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
		err := s.client.Call(ctx, new(json.RawMessage), "eth_blockNumber")
		var refusal *node.Error
		s.mu.Lock()
		switch {
		case err == nil:
			s.answered, s.refused = append(s.answered, time.Now()), 0
		case errors.As(err, &refusal) && refusal.Code == jsonrpc.CodeLimitExceeded:
			s.refused++
		}
		s.mu.Unlock()
	}
}

// refusals returns how many calls the quota has refused since the last answer.
func (s *spender) refusals() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// spend has spenders spend all of a quota while a reader is killed and another one started in its place. It
// returns when the reader was killed.
func spend(t *testing.T, all []*spender, killed *node.Process, again func()) (end time.Time) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var spending sync.WaitGroup
	defer func() { stop(); spending.Wait() }()
	for _, s := range all {
		spending.Go(func() { s.run(ctx) })
	}
	time.Sleep(16 * time.Second) // so that some of it is written for certain
	killed.Kill()
	end = time.Now()
	again()
	for began := time.Now(); ; time.Sleep(pollEvery) {
		if all[0].refusals() >= 200 && all[1].refusals() >= 200 {
			return end
		}
		if time.Since(began) > mostSpending {
			t.Fatalf("the quota is not spent after %v", mostSpending)
		}
	}
}

const mostSpending = 3 * time.Minute

// TestQuotaOfAKilledReader has two readers spend the quota of a key, one of which is killed and started again. No more
// is spent than the quota and what the killed one had not posted, and what was answered is in the usage, except for
// what the killed one had not written.
func TestQuotaOfAKilledReader(t *testing.T) {
	const (
		quota     = 8000             // eth_blockNumber costs a credit
		unposted  = 3 * time.Second  // much longer than a round of the limits, a quarter of a second
		unwritten = 12 * time.Second // much longer than between two writes of usage, 5 seconds
	)
	if now := time.Now().UTC(); now.Add(mostSpending+time.Minute).Day() != now.Day() {
		time.Sleep(mostSpending + time.Minute) // the quota of a day begins anew at midnight
	}
	shell := imported(t)
	key, err := shell.CreateKey(t.Context())
	if err == nil {
		err = shell.RestrictKey(t.Context(), keyID(key), "--per-day", strconv.Itoa(quota))
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []*spender
	var killed *node.Process
	for range 2 {
		address := freeAddress(t)
		killed = readerAt(t, shell, address)
		all = append(all, &spender{address: address, client: node.NewClient("http://" + address + "/v3/" + key)})
	}
	end := spend(t, all, killed, func() { readerAt(t, shell, all[1].address) })

	answered := 0
	late := func(last time.Duration) (n int) {
		for _, at := range all[1].answered {
			if at.Before(end) && end.Sub(at) < last {
				n++
			}
		}
		return n
	}
	for _, s := range all {
		answered += len(s.answered)
	}
	before, lost := late(time.Hour), late(unposted)
	t.Logf("%d calls were answered of a quota of %d; the killed reader had answered %d, %d of them in its last %v", answered, quota, before, lost, unposted)
	if before < 100 || answered > quota+lost || float64(answered) < 0.95*quota {
		t.Errorf("%d calls were answered, expected from %.0f to %d", answered, 0.95*quota, quota+lost)
	}
	least := answered - late(unwritten)
	within(t, "what was answered is in the usage", func() bool { return creditsOf(t, shell, key) >= least })
	time.Sleep(unwritten)
	credits := creditsOf(t, shell, key)
	t.Logf("%d of %d credits are in the usage, %d were certain to be", credits, answered, least)
	if credits > answered+len(all) { // calls whose answers were not read
		t.Errorf("%d credits are in the usage, more than %d", credits, answered)
	}
}

// readerAt starts a reader, which keeps its name when it has the same address again, and returns when it answers.
func readerAt(t *testing.T, shell node.Ashlar, address string) *node.Process {
	t.Helper()
	a := process(t, newKeyspace(t), "reader", "listen: "+address)
	p, err := a.ServeBy(t.Context(), a.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	key, err := shell.CreateKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	client := node.NewClient("http://" + address + "/v3/" + key)
	within(t, "the reader answers", func() bool { _, _, err := head(t, client); return err == nil })
	return p
}

// creditsOf returns the credits in the usage of a key.
func creditsOf(t *testing.T, shell node.Ashlar, key string) (sum int) {
	t.Helper()
	var lines []struct{ Credits int }
	if err := json.Unmarshal([]byte(output(t, shell, "key", "usage", "--json", keyID(key))), &lines); err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		sum += l.Credits
	}
	return sum
}
