package cluster

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/app/store"
	"ashlar/kv"
	"ashlar/limit"
)

// limited is a reader's part in the limits of one key.
type limited struct {
	meter *limit.Meter
	day   *limit.Day
	stop  func()
}

func newLimited(t *testing.T, board limit.Board, rate limit.Rate) *limited {
	t.Helper()
	g := limit.NewGroup(board)
	if err := g.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	l := &limited{meter: limit.NewMeter(rate), day: new(limit.Day)}
	g.Join("key", l.meter, l.day)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := g.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	l.stop = func() { stop(); running.Wait() }
	t.Cleanup(l.stop)
	return l
}

// TestLimits has a rate and a quota hold for readers that share a keyspace, while one joins
// and another one leaves.
func TestLimits(t *testing.T) {
	config := store.DefaultCassandra()
	config.Hosts, config.Keyspace = nodes.Get(t).Hosts, newKeyspace(t)
	keyspace, err := store.Connect(t.Context(), config, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = keyspace.Close() })
	accounts, err := keyspace.OpenAccounts(func(kv.Reader) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = accounts.Close() })
	board := accounts.(limit.Board)

	if now := time.Now().UTC(); now.Add(time.Minute).Day() != now.Day() {
		time.Sleep(time.Minute) // the quota of a day begins anew at midnight
	}
	rate := limit.Rate{PerSecond: 2000, Burst: 2000}
	const quota = 20_000
	var spent, daily atomic.Int64
	var asking sync.WaitGroup
	began := time.Now()
	until := func(l *limited, end time.Time) {
		asking.Go(func() {
			for now := time.Now(); now.Before(end); now = time.Now() {
				for _, ok := l.meter.Spend(now, 2); ok; _, ok = l.meter.Spend(now, 2) { // however late
					spent.Add(2)
				}
				if _, ok := l.day.Spend(now, 2, quota); ok {
					daily.Add(2)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	const stage = 4 * time.Second
	first, second := newLimited(t, board, rate), newLimited(t, board, rate)
	until(first, began.Add(2*stage))
	until(second, began.Add(4*stage))
	time.Sleep(stage)
	until(newLimited(t, board, rate), began.Add(4*stage))
	time.Sleep(stage)
	first.stop()
	until(newLimited(t, board, rate), began.Add(4*stage))
	asking.Wait()
	check := func(what string, got int64, want float64) {
		t.Helper()
		t.Logf("%s: %d of %.0f, %+.2f%%", what, got, want, 100*(float64(got)/want-1))
		if math.Abs(float64(got)/want-1) > 0.05 {
			t.Errorf("%s: %d, expected %.0f within 5 percent", what, got, want)
		}
	}
	check("rate", spent.Load(), rate.PerSecond*time.Since(began).Seconds()+float64(rate.Burst))
	check("quota", daily.Load(), quota)
}
