package limit

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// link is a process's way to a board. While it is down, statements fail slowly.
type link struct {
	Board
	down atomic.Bool
}

func (l *link) Post(ctx context.Context, name string, value []byte, keep time.Duration) error {
	if err := l.wait(ctx); err != nil {
		return err
	}
	return l.Board.Post(ctx, name, value, keep)
}

func (l *link) Posts(ctx context.Context) (map[string][]byte, error) {
	if err := l.wait(ctx); err != nil {
		return nil, err
	}
	return l.Board.Posts(ctx)
}

func (l *link) wait(ctx context.Context) error {
	if !l.down.Load() {
		return nil
	}
	select {
	case <-time.After(time.Second):
		return errBoard
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestOutage: what was spent while a process could not reach the board is not charged later.
func TestOutage(t *testing.T) {
	r := Rate{PerSecond: 500, Burst: 1000}
	for name, test := range map[string]struct{ first, second time.Duration }{ // of being down
		"of one process":                {30 * time.Second, 0},
		"of the board":                  {30 * time.Second, 30 * time.Second},
		"that ends later for a process": {30 * time.Second, 33 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &board{posts: map[string][]byte{}}
				links := []*link{{Board: b}, {Board: b}}
				asked := map[*reader]int{}
				for _, l := range links {
					asked[newReader(t, l, r, 0)] = 1000
				}
				spread(10*time.Second, 1, asked)
				for i, down := range []time.Duration{test.first, test.second} {
					links[i].down.Store(down > 0)
					time.AfterFunc(down, func() { links[i].down.Store(false) })
				}
				spread(max(test.first, test.second)+3*time.Second, 1, asked)
				within(t, "after the outage", float64(spread(10*time.Second, 1, asked)), 10*r.PerSecond)
			})
		})
	}
}

// TestBurstInAnOutage: a burst that was spent while the board could not be reached is not
// there again afterwards, and one that was not spent is.
func TestBurstInAnOutage(t *testing.T) {
	for name, spent := range map[string]int{"spent": 1000, "not spent": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &link{Board: &board{posts: map[string][]byte{}}}
				p := newReader(t, l, Rate{PerSecond: 1, Burst: 1000}, 0)
				time.Sleep(10 * time.Second)
				l.down.Store(true)
				time.Sleep(20 * time.Second)
				for range spent {
					p.meter.Spend(time.Now(), 1)
				}
				time.Sleep(10 * time.Second)
				l.down.Store(false)
				time.Sleep(5 * time.Second)
				if _, tokens := p.meter.counted(time.Now()); math.Abs(tokens-float64(1000-spent)) > 50 {
					t.Errorf("after the outage %.0f credits can be spent, expected about %d", tokens, 1000-spent)
				}
			})
		})
	}
}

// A process that resumes takes what it could spend as its share of what all could spend, but what it owes as its own.
func TestResumedDebt(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for _, test := range []struct{ owed, want float64 }{{0, 40}, {5, 20}, {30, -20}} {
		g := NewGroup(nil)
		g.now = func() time.Time { return now }
		m := NewMeter(Rate{PerSecond: 10, Burst: 100})
		g.Join("key", m, new(Day))
		m.divide(now, 0.25, 10)
		m.Owe(now, int(test.owed))
		g.observe(now)
		g.resume()
		if got := g.members["key"].bucket; got != test.want {
			t.Errorf("with 10 credits at a share of a quarter, %v owed: all have %v, expected %v", test.owed, got, test.want)
		}
	}
}
