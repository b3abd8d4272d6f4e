package limit

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// rounds lets time pass, and each process have a round four times a second.
func rounds(t *testing.T, d time.Duration, groups ...*Group) {
	t.Helper()
	for ; d > 0; d -= roundTime {
		time.Sleep(roundTime)
		for _, g := range groups {
			if err := g.Round(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestFirstRate: a key that had a quota alone gets a rate while it is in use.
func TestFirstRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, day := NewGroup(&board{posts: map[string][]byte{}}), new(Day)
		g.Join("key", NewMeter(Rate{}), day)
		for range 8 {
			rounds(t, roundTime, g)
			day.Spend(time.Now(), 1000, 1e6)
		}
		m := NewMeter(Rate{PerSecond: 500, Burst: 1000})
		g.Join("key", m, day)
		for _, after := range []string{"at once", "a round later", "two rounds later"} {
			if _, ok := m.Spend(time.Now(), 300); !ok || g.members["key"].demand < 0 {
				t.Errorf("%s: the burst cannot be spent, with a demand of %v and a share of %v", after, g.members["key"].demand, m.divided())
			}
			rounds(t, roundTime, g)
		}
		if _, ok := m.Spend(time.Now(), 1000); ok {
			t.Error("more than the burst was spent")
		}
	})
}

// TestRateKnownToSome: a process that does not know yet that a key has a rate posts nothing
// that keeps it from others.
func TestRateKnownToSome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &board{posts: map[string][]byte{}}
		knows, late, fresh := NewGroup(b), NewGroup(b), NewGroup(b)
		rate, day := Rate{PerSecond: 500, Burst: 1000}, new(Day)
		m := NewMeter(rate)
		knows.Join("key", m, new(Day))
		late.Join("key", NewMeter(Rate{Burst: 10}), day)
		for range 40 {
			rounds(t, roundTime, knows, late, fresh)
			m.Spend(time.Now(), 100)
			day.Spend(time.Now(), 100, 1e6)
		}
		joined := NewMeter(rate)
		fresh.Join("key", joined, new(Day))
		if bucket := fresh.members["key"].bucket; bucket < 0 {
			t.Errorf("a third process begins with %v credits", bucket)
		}
	})
}

// TestQuotaWithoutRate: the rate of a key need not hold for the clients that spend its quota.
func TestQuotaWithoutRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &board{posts: map[string][]byte{}}
		spends, learns := NewGroup(b), NewGroup(b)
		mine, theirs := new(Day), new(Day)
		rate := Rate{PerSecond: 500, Burst: 1000}
		spends.Join("key", NewMeter(rate), mine)
		learns.Join("key", NewMeter(rate), theirs)
		rounds(t, time.Second, spends, learns)
		mine.Spend(time.Now(), 40, 100)
		rounds(t, time.Second, spends, learns)
		if used := theirs.Used(time.Now()); used != 40 {
			t.Errorf("another process knows of %d credits after a second, expected 40", used)
		}
	})
}

// during is a Board that does something while it is read.
type during struct {
	*board
	read func()
}

func (b *during) Posts(ctx context.Context) (map[string][]byte, error) {
	b.read()
	return b.board.Posts(ctx)
}

// TestRoundOverMidnight: a round that began before midnight does not take away what was spent
// since.
func TestRoundOverMidnight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spent := 0
		b, day := &during{&board{posts: map[string][]byte{}}, func() {}}, new(Day)
		g := NewGroup(b)
		spend := func() {
			t.Helper()
			if _, ok := day.Spend(time.Now(), 10, 1000); !ok {
				t.Error("the quota cannot be spent")
			}
			spent += 10
		}
		g.Join("key", NewMeter(Rate{}), day)
		spend()
		time.Sleep(24*time.Hour - time.Millisecond) // synctest begins at midnight
		b.read = func() {
			time.Sleep(2 * time.Millisecond)
			spent = 0
			spend()
		}
		if err := g.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		spend()
		if used := day.Used(time.Now()); used != uint64(spent) {
			t.Errorf("%d credits are counted, expected the %d of this day", used, spent)
		}
	})
}

// TestUsedBefore: what a process has spent with a key before another one was started is not
// charged when the key comes back to it.
func TestUsedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := &board{posts: map[string][]byte{}}, Rate{PerSecond: 500, Burst: 1000}
		old := newReader(t, b, r, 0)
		old.ask(time.Minute, 1000, 1)
		time.Sleep(2 * inUse)
		fresh := newReader(t, b, r, 0)
		asked := map[*reader]int{fresh: 1000}
		spread(5*time.Second, 1, asked)
		old.meter.Spend(time.Now(), 1)
		within(t, "once the key is back at the old process", float64(spread(10*time.Second, 1, asked)), 5000)
	})
}

// others has a group read posts of another process with entries of "key", one in each round, and
// returns what all processes can spend then, of a burst of 200.
func others(t *testing.T, posted ...map[string]entry) (bucket float64) {
	t.Helper()
	b, m := &board{posts: map[string][]byte{}}, NewMeter(Rate{PerSecond: 100, Burst: 200})
	g := NewGroup(b)
	g.Join("key", m, new(Day))
	for seq, entries := range posted {
		value, err := post{uint64(seq + 1), entries}.encode()
		if err != nil {
			t.Fatal(err)
		}
		b.posts["other"] = value
		m.Spend(time.Now(), 1) // or it would have no share
		rounds(t, roundTime, g)
	}
	return g.members["key"].bucket
}

// TestLeftOutOfAPost: a process leaves a key out of one post, because it has too many others in use.
// What it has spent before is not charged again.
func TestLeftOutOfAPost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bucket := others(t, map[string]entry{"key": {demand: 40, spent: 1000, bucket: 200, recent: 1000}},
			nil, map[string]entry{"key": {demand: 40, spent: 1020, bucket: 180, recent: 1020}})
		if bucket < 150 || bucket > 200 {
			t.Errorf("all processes can spend %.0f credits, expected what is left of 200 after about 20", bucket)
		}
	})
}

// TestFirstUse: what a process spends with a key that it did not use before is charged, also in its
// first post of the key.
func TestFirstUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bucket := others(t, nil, map[string]entry{"key": {demand: 40, spent: 150, bucket: 50, recent: 150}})
		if bucket < 20 || bucket > 130 {
			t.Errorf("all processes can spend %.0f credits, expected what is left of 200 after 150", bucket)
		}
	})
}

// TestReturnedCredits: credits that were given back are charged at no process.
func TestReturnedCredits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := &board{posts: map[string][]byte{}}, Rate{PerSecond: 100, Burst: 1000}
		gives, reads, m := NewGroup(b), NewGroup(b), NewMeter(r)
		gives.Join("key", m, new(Day))
		reads.Join("key", NewMeter(r), new(Day))
		for range 40 {
			m.Spend(time.Now(), 200)
			m.Return(200)
			rounds(t, roundTime, gives, reads)
		}
		for what, g := range map[string]*Group{"that gives": gives, "that reads": reads} {
			if bucket := g.members["key"].bucket; bucket != float64(r.Burst) {
				t.Errorf("the process %s back what it took knows of %v credits, expected the burst of %d", what, bucket, r.Burst)
			}
		}
	})
}

// TestAnotherRate: a key whose burst was spent does not get it again with another rate.
func TestAnotherRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, day := NewGroup(&board{posts: map[string][]byte{}}), new(Day)
		m := NewMeter(Rate{PerSecond: 100, Burst: 200})
		g.Join("key", m, day)
		m.Spend(time.Now(), 200)
		rounds(t, roundTime, g)
		changed := m.Next(time.Now(), Rate{PerSecond: 100, Burst: 201})
		g.Join("key", changed, day)
		rounds(t, roundTime, g)
		if _, ok := changed.Spend(time.Now(), 150); ok {
			t.Error("150 credits could be spent half a second after a burst")
		}
	})
}

// TestMostPosted: if too many keys are in use for one post, those used last are posted.
func TestMostPosted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, meters := NewGroup(&board{posts: map[string][]byte{}}), make([]*Meter, maxPosted+1)
		for i := range meters {
			meters[i] = NewMeter(Rate{PerSecond: 1, Burst: 2})
			g.Join(strconv.Itoa(i), meters[i], new(Day))
			meters[i].Spend(time.Now(), 1)
		}
		rounds(t, roundTime, g)
		meters[0].Spend(time.Now(), 1)
		rounds(t, roundTime, g)
		posted := g.collect(func(*member) bool { return true }).entries
		if _, ok := posted["0"]; !ok || len(posted) != maxPosted {
			t.Errorf("%d keys are posted, expected %d; the one used last is among them: %t", len(posted), maxPosted, ok)
		}
	})
}

// TestEndedProcess: the last post of a process that has ended does not hold for keys that
// others use later for the first time.
func TestEndedProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := &board{posts: map[string][]byte{}}, Rate{PerSecond: 500, Burst: 1000}
		old := newReader(t, b, r, 0)
		old.ask(10*time.Second, 1000, 1)
		old.stop()
		time.Sleep(time.Hour)
		g, m := NewGroup(b), NewMeter(r)
		rounds(t, 2*peerTimeout, g)
		g.Join("key", m, new(Day))
		if _, tokens := m.counted(time.Now()); tokens != float64(r.Burst) {
			t.Errorf("%v credits can be spent, expected the burst of %d", tokens, r.Burst)
		}
	})
}

// TestLastPost: what is spent while the last round waits for the board is posted too.
func TestLastPost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		b, m := &during{board: &board{posts: map[string][]byte{}}}, NewMeter(Rate{PerSecond: 500, Burst: 1000})
		g := NewGroup(b)
		g.Join("key", m, new(Day))
		b.read = func() {
			m.Spend(time.Now(), 300)
			stop()
		}
		if err := g.Run(ctx); err != nil {
			t.Fatal(err)
		}
		posted, err := decodePost(b.posts[g.name])
		if err != nil || posted.entries["key"].spent != 300 {
			t.Errorf("%+v is posted, %v, expected 300 credits spent", posted, err)
		}
	})
}
