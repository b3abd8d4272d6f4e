package limit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// board is a Board in memory that takes its time.
type board struct {
	mu    sync.Mutex
	posts map[string][]byte
	fails bool
}

var errBoard = errors.New("cannot be reached")

func (b *board) do(f func()) error {
	time.Sleep(time.Duration(1+rand.IntN(40)) * time.Millisecond)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fails {
		return errBoard
	}
	f()
	return nil
}

func (b *board) Post(_ context.Context, name string, value []byte, _ time.Duration) error {
	return b.do(func() { b.posts[name] = value })
}

func (b *board) Posts(context.Context) (all map[string][]byte, err error) {
	err = b.do(func() { all = maps.Clone(b.posts) })
	return all, err
}

// reader is a process of a simulated cluster.
type reader struct {
	meter *Meter
	day   *Day
	quota uint64
	stop  func()
	spent int // of the rate
	daily int // of the quota
}

// newReader starts a process. A clean stop posts what was spent last.
func newReader(t *testing.T, b Board, r Rate, quota uint64) *reader {
	t.Helper()
	g := NewGroup(b)
	if err := g.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := &reader{meter: NewMeter(r), day: new(Day), quota: quota}
	g.Join("key", p.meter, p.day)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	p.stop = func() { stop(); <-ended }
	go func() {
		defer close(ended)
		_ = g.Run(ctx)
	}()
	t.Cleanup(p.stop)
	return p
}

// ask sends requests of some credits each, so many a second, and counts those allowed.
func (p *reader) ask(d time.Duration, perSecond, credits int) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(time.Duration(rand.ExpFloat64() * float64(time.Second) / float64(perSecond)))
		if p.quota > 0 {
			if _, ok := p.day.Spend(time.Now(), credits, p.quota); ok {
				p.daily += credits
			}
		}
		if _, ok := p.meter.Spend(time.Now(), credits); ok {
			p.spent += credits
		}
	}
}

// within checks that a sum is within 5 percent.
func within(t *testing.T, what string, got, want float64) {
	t.Helper()
	t.Logf("%s: %.0f of %.0f, %+.2f%%", what, got, want, 100*(got/want-1))
	if math.Abs(got/want-1) > 0.05 {
		t.Errorf("%s: %.0f, expected %.0f within 5 percent", what, got, want)
	}
}

// spread has readers asked at once, and returns what was allowed in all.
func spread(d time.Duration, credits int, perSecond map[*reader]int) (spent int) {
	var asking sync.WaitGroup
	before := 0
	for p := range perSecond {
		before += p.spent
	}
	for p, n := range perSecond {
		asking.Go(func() { p.ask(d, n, credits) })
	}
	asking.Wait()
	for p := range perSecond {
		spent += p.spent
	}
	return spent - before
}

func TestGroupRate(t *testing.T) {
	const seconds = 60
	r := Rate{PerSecond: 500, Burst: 1000}
	for _, test := range []struct {
		name    string
		asked   []int // requests a second at each reader
		credits int
		want    float64 // credits
	}{
		{"all ask for more", []int{1000, 1000, 1000, 1000}, 1, 500*seconds + 1000},
		{"one asks for all", []int{2000, 1, 1}, 1, 500*seconds + 1000},
		{"one asks for little", []int{1000, 20}, 2, 500*seconds + 1000},
		{"no more than there is", []int{100, 200, 50}, 1, 350 * seconds},
		{"large requests", []int{40, 40, 40, 40, 40, 40}, 100, 500*seconds + 1000},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := &board{posts: map[string][]byte{}}
			perSecond := map[*reader]int{}
			for _, asked := range test.asked {
				perSecond[newReader(t, b, r, 0)] = asked
			}
			within(t, test.name, float64(spread(seconds*time.Second, test.credits, perSecond)), test.want)
		})
	}
}

// Readers join, leave and are killed, and the demand moves between them.
func TestGroupChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &board{posts: map[string][]byte{}}
		r := Rate{PerSecond: 1000, Burst: 2000}
		readers := []*reader{newReader(t, b, r, 0), newReader(t, b, r, 0)}
		total := 0
		const stages, seconds = 12, 5
		for stage := range stages {
			switch stage % 4 {
			case 0, 1:
				readers = append(readers, newReader(t, b, r, 0))
			case 2:
				readers[0].stop()
				readers = readers[1:]
			}
			asked := map[*reader]int{}
			for i, p := range readers {
				asked[p] = 3000 - 2900*((i+stage)%2)
			}
			total += spread(seconds*time.Second, 1, asked)
		}
		within(t, "with readers that come and go", float64(total), 1000*stages*seconds+2000)
	})
}

func TestGroupQuota(t *testing.T) {
	for _, quota := range []uint64{40_000, 3_000} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(24*time.Hour - 2*time.Minute) // the day ends soon
			b := &board{posts: map[string][]byte{}}
			var readers []*reader
			sum := func() (all int) {
				for _, p := range readers {
					all += p.daily
				}
				return all
			}
			for n := range 4 {
				readers = append(readers, newReader(t, b, Rate{}, quota))
				spread(10*time.Second, 5, map[*reader]int{readers[n]: 500, readers[n/2]: 100})
				if n == 1 {
					readers[0].stop()
				}
			}
			for range 3 { // a reader that starts when the quota is spent knows that
				fresh := newReader(t, b, Rate{}, quota)
				readers = append(readers, fresh)
				fresh.ask(5*time.Second, 500, 5)
			}
			within(t, fmt.Sprint("quota of ", quota), float64(sum()), float64(quota))
			time.Sleep(2 * time.Minute) // a new day
			before := sum()
			readers[len(readers)-1].ask(30*time.Second, 500, 5)
			within(t, "the next day", float64(sum()-before), float64(quota))
		})
	}
}

// While the board cannot be reached, each process keeps its share.
func TestGroupAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &board{posts: map[string][]byte{}}
		r := Rate{PerSecond: 1000, Burst: 2000}
		asked := map[*reader]int{newReader(t, b, r, 0): 2000, newReader(t, b, r, 0): 2000, newReader(t, b, r, 0): 2000}
		spread(10*time.Second, 1, asked)
		b.mu.Lock()
		b.fails = true
		b.mu.Unlock()
		within(t, "without a board", float64(spread(30*time.Second, 1, asked)), 30*1000)
		b.mu.Lock()
		b.fails = false
		b.mu.Unlock()
		within(t, "with the board again", float64(spread(30*time.Second, 1, asked)), 30*1000)
	})
}

func TestShareOf(t *testing.T) {
	for _, test := range []struct {
		demands []float64
		limit   float64
		want    float64 // before a hundredth is divided evenly
	}{
		{[]float64{0}, 100, 1},
		{[]float64{500}, 100, 1},
		{[]float64{0, 0, 0, 0}, 100, 0.25},
		{[]float64{500, 500}, 100, 0.5},
		{[]float64{500, 20}, 100, 0.8},
		{[]float64{20, 500}, 100, 0.2},
		{[]float64{20, 40}, 100, 0.4},
		{[]float64{0, 500}, 100, 0},
		{[]float64{30, 10}, 0, 0.75},
		{[]float64{0, 0}, 0, 0.5},
	} {
		want := test.want*(1-leastShares) + leastShares/float64(len(test.demands))
		if got := shareOf(test.demands, test.limit); math.Abs(got-want) > 1e-9 {
			t.Errorf("demands %v of %v: %v, expected %v", test.demands, test.limit, got, want)
		}
	}
}
