package limit

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/internal/raced"
)

func TestMeterIsShared(t *testing.T) {
	m, now := NewMeter(Rate{PerSecond: 1000, Burst: 1000}), time.Unix(1000, 0)
	raced.Together(
		func() { m.Spend(now, 1) },
		func() { m.Return(1) },
		func() { m.Owe(now, 1) },
		func() { m.Recent(now) },
		func() { m.Next(now, Rate{PerSecond: 1, Burst: 1}) },
		func() { m.counted(now) },
		func() { m.divided() },
		func() { m.divide(now, 1, 10) },
	)
}

func TestDayIsShared(t *testing.T) {
	d, now := new(Day), time.Unix(1e9, 0)
	raced.Together(
		func() { d.Spend(now, 1, 1000) },
		func() { d.Return(now, 1) },
		func() { d.Add(now, 1) },
		func() { d.Used(now) },
		func() { d.asked() },
		func() { d.spentBy(now) },
		func() { d.divide(now, 1, 0.5) },
	)
}

func TestLedgerIsShared(t *testing.T) {
	l := NewLedger(1000)
	raced.Together(
		func() { l.Take("a", 1) },
		func() { l.Give("a", 1) },
		func() { l.Held() },
	)
}

func TestTableIsShared(t *testing.T) {
	table, now := NewTable[int](Rate{PerSecond: 1000, Burst: 1000}, 2), time.Unix(1000, 0)
	spend := func() {
		for key := range 5 {
			table.Spend(now, key)
		}
	}
	raced.Together(spend, spend)
}

// noBoard is a Board without posts that answers at once.
type noBoard struct{}

func (noBoard) Post(context.Context, string, []byte, time.Duration) error { return nil }

func (noBoard) Posts(context.Context) (map[string][]byte, error) { return nil, nil }

// TestGroupIsShared has subjects join, and get other meters, during each part of a round.
func TestGroupIsShared(t *testing.T) {
	posted, err := post{1, map[string]entry{"key": {demand: 1, bucket: 5}}}.encode()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1e9, 0)
	for part, run := range map[string]func(g *Group, n int){
		"join": func(g *Group, n int) {
			g.Join(fmt.Sprint("other", n), NewMeter(Rate{PerSecond: 1, Burst: 5}), new(Day))
		},
		"observe": func(g *Group, _ int) { g.observe(now) },
		"round": func(g *Group, _ int) {
			if err := g.Round(t.Context()); err != nil {
				t.Error(err)
			}
		},
		"resume":  func(g *Group, _ int) { g.resume() },
		"read":    func(g *Group, n int) { g.read(map[string][]byte{fmt.Sprint("peer", n): posted}, now) },
		"collect": func(g *Group, _ int) { g.collect(func(*member) bool { return true }) },
	} {
		t.Run(part, func(t *testing.T) {
			g := NewGroup(noBoard{})
			g.now, g.last = func() time.Time { return now }, now
			var ended atomic.Bool
			var joins atomic.Int64
			var joining sync.WaitGroup
			joining.Go(func() {
				for !ended.Load() { // at any moment of a round
					g.Join("key", NewMeter(Rate{PerSecond: 1, Burst: 5}), new(Day))
					g.Join(fmt.Sprint(joins.Add(1)%100), NewMeter(Rate{PerSecond: 1, Burst: 5}), new(Day))
				}
			})
			for n := 0; n < 100 || joins.Load() < 300; n++ {
				run(g, n)
			}
			ended.Store(true)
			joining.Wait()
		})
	}
}
