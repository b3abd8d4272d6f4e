package limit

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Board is where the processes of a cluster post what each of them has counted. A post
// replaces the one before with the same name, and may be gone after the time given by keep.
type Board interface {
	Post(ctx context.Context, name string, value []byte, keep time.Duration) error
	Posts(ctx context.Context) (map[string][]byte, error)
}

// Group makes the meters and days of several processes hold together. Requests never wait
// for it: each process spends from its part of a limit, and the parts are divided anew in
// every round.
//
// In a round a process posts how many credits were asked for and spent with each key or
// account in use, and reads the posts of the others. So all of them know the same sums, one
// round later, and each computes by itself
//
//   - what is left of the limit: what all have spent is subtracted, so that spending too much
//     in one round is made up for in the next, and errors do not add up;
//   - its share of that: as much as is asked for, if that is not more than an even share;
//     what others do not ask for is divided among those that ask for more.
//
// A process that has not posted for peerTimeout has no share. What it spent still counts.
type Group struct {
	board Board
	name  string // of this process, random
	now   func() time.Time

	mu      sync.Mutex
	members map[string]*member // guarded by mu; by subject

	// Used by one round at a time.
	peers    map[string]*peer
	seq      uint64
	observed time.Time // when the last round began
	last     time.Time // when the last round began that has read the board
	dayPost  time.Time // when the whole day was posted last
}

const (
	roundTime = 250 * time.Millisecond
	// roundLimit bounds a round: while the store does not answer, the shares stay.
	roundLimit = 2 * time.Second
	// longRound is a time between two rounds after which a process resumes.
	longRound = time.Second
	// resumePosts are the posts of another process after which a process that resumes goes on
	// as before. The first may be from before the outage, however late the next one is.
	resumePosts = 4
	// peerTimeout is the time after which a process that posts nothing has no share.
	peerTimeout = 2 * time.Second
	// inUse is how long a subject is posted after its last request, so that no other process
	// misses it.
	inUse = 15 * time.Second
	// dayEvery is the time between two posts of all that was spent today, for processes that
	// start later.
	dayEvery = 10 * time.Second
	keepPost = 48 * time.Hour
	// smoothing is the weight of the last round in the demand.
	smoothing = 0.3
	// leastShares is the part of a limit that is divided evenly whatever is asked for, so
	// that a process that begins to ask can spend at once.
	leastShares = 0.01

	maxPosted = 20_000 // subjects in a post
)

// member is what this process counts for a subject.
type member struct {
	subject string
	meter   *Meter
	day     *Day

	base   counters // of earlier meters
	seen   counters // of all meters, at the last round
	wanted float64  // asked for of the day, at the last round
	before float64  // spent before the subject came into use
	demand float64  // credits asked for per second
	bucket float64  // what all processes together may spend now
	alone  float64  // the same at the last round, if others have spent as much of their shares
	used   time.Time
}

// NewGroup returns the group of the processes that share a board.
func NewGroup(board Board) *Group {
	return &Group{board: board, name: rand.Text(), now: time.Now, members: map[string]*member{}, peers: map[string]*peer{}}
}

// Join makes a meter and a day hold for all processes. Both are named by subject everywhere.
// A later call replaces the meter of a subject; a first rate begins with a full burst. A nil
// Group does nothing.
func (g *Group) Join(subject string, m *Meter, d *Day) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	known := g.members[subject]
	if known == nil {
		g.members[subject] = &member{subject: subject, meter: m, day: d, bucket: float64(m.rate.Burst)}
		g.admit(g.members[subject])
		return
	}
	if known.meter != m {
		g.replace(known, m)
	}
}

// replace gives a member another meter. g.mu must be held.
func (g *Group) replace(known *member, m *Meter) {
	before := known.meter
	total, tokens := before.counted(g.now())
	known.base.asked += total.asked
	known.base.spent += total.spent
	known.meter = m
	if before.rate.Unlimited() {
		known.bucket = float64(m.rate.Burst)
		g.admit(known)
		return
	}
	known.bucket = min(known.bucket, float64(m.rate.Burst))
	share := before.divided()
	m.divide(g.now(), share, min(tokens, share*known.bucket))
}

// Run divides the limits until ctx is done, and then posts once more.
func (g *Group) Run(ctx context.Context) error {
	tick := time.NewTicker(roundTime)
	defer tick.Stop()
	failing := false
	for {
		err := g.Round(ctx)
		if ctx.Err() != nil {
			g.end(context.WithoutCancel(ctx))
			return nil
		}
		if err != nil && !failing {
			slog.Warn("limits are not divided among the processes; each keeps its share", "error", err)
		} else if err == nil && failing {
			slog.Info("limits are divided among the processes again")
		}
		failing = err != nil
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// end posts all that was counted.
func (g *Group) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, roundLimit)
	defer cancel()
	g.observe(g.now())
	if err := errors.Join(g.post(ctx), g.postDay(ctx)); err != nil {
		slog.Warn("credits spent lately are not known to other processes", "error", err)
	}
}

// Round posts what was counted here, reads what was counted elsewhere, and divides the
// limits. Rounds must not be called concurrently.
func (g *Group) Round(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, roundLimit)
	defer cancel()
	now := g.now()
	g.observe(now)
	err := g.post(ctx)
	if now.Sub(g.dayPost) >= dayEvery {
		err = errors.Join(err, g.postDay(ctx))
		g.dayPost = now
	}
	posts, readErr := g.board.Posts(ctx)
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	if !g.last.IsZero() && now.Sub(g.last) > longRound {
		g.resume()
	}
	fresh := g.read(posts, now)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.members {
		g.divide(m, now, fresh)
	}
	g.last = now
	return err
}

// observe measures what was asked for here since the last round.
func (g *Group) observe(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.members {
		total, tokens := m.counted(now)
		wanted := m.day.asked()
		// Some clients need not keep the rate, and a key need not have a quota.
		asked := max(total.asked-m.seen.asked, wanted-m.wanted)
		if asked > 0 {
			if now.Sub(m.used) > inUse {
				m.before = m.seen.spent
			}
			m.used = now
		}
		if passed := now.Sub(g.observed).Seconds(); !g.observed.IsZero() && passed > 0 {
			m.demand += smoothing * (asked/passed - m.demand)
			m.bucket += m.meter.rate.PerSecond * passed
		}
		m.bucket -= total.spent - m.seen.spent
		m.seen, m.wanted = total, wanted
		if m.alone = tokens; tokens > 0 { // others have no part of a debt
			m.alone /= m.meter.divided()
		}
	}
	g.observed = now
}

// resume goes on where the meters are after the board could not be reached, or this process
// was paused. Each process has kept its share then, so there is nothing to make up for.
func (g *Group) resume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.members {
		m.bucket = m.alone
	}
	for _, p := range g.peers {
		p.resumes = resumePosts
	}
}

// counted returns what all meters of a subject have counted, and the credits that could be
// spent now.
func (m *member) counted(now time.Time) (total counters, tokens float64) {
	total, tokens = m.meter.counted(now)
	return counters{total.asked + m.base.asked, total.spent + m.base.spent}, tokens
}

// divide gives a subject its share of the limits. fresh are the processes that have shares.
func (g *Group) divide(m *member, now time.Time, fresh []*peer) {
	demands := []float64{m.demand}
	for _, p := range fresh {
		demands = append(demands, p.demand[m.subject])
	}
	share := shareOf(demands, m.meter.rate.PerSecond)
	others := uint64(0)
	for _, p := range g.peers {
		if e, ok := p.spent[m.subject]; ok && e.day == dayOf(now) {
			others += e.today
		}
	}
	m.bucket = min(m.bucket, float64(m.meter.rate.Burst)) // what all have spent is subtracted
	m.alone = m.bucket
	if m.meter.rate.Unlimited() { // others may know of a rate already
		m.bucket = float64(m.meter.rate.Burst)
	} else {
		total, _ := m.counted(now)
		m.meter.divide(now, share, share*m.bucket-(total.spent-m.seen.spent))
	}
	m.day.divide(now, others, share)
}

// shareOf returns the share of the first of several demands in a limit, 0 for none. Nobody
// gets more than an even share before all others have what they ask for; what is left then
// is divided evenly.
func shareOf(demands []float64, limit float64) float64 {
	sum := 0.0
	for _, d := range demands {
		sum += d
	}
	if limit <= 0 { // a quota alone: in proportion, as nobody knows how long it has to last
		limit = max(sum, 1)
	}
	sorted := slices.Sorted(slices.Values(demands))
	left, level := limit, 0.0
	for i, d := range sorted {
		even := left / float64(len(sorted)-i)
		level = even
		if d >= even {
			left = 0
			break
		}
		left -= d
	}
	n := float64(len(demands))
	own := min(demands[0], level)
	if left > 0 {
		own = demands[0] + left/n
	}
	return own/limit*(1-leastShares) + leastShares/n
}

// admit prepares a new subject by what others have posted of it. g.mu must be held.
func (g *Group) admit(m *member) {
	now := g.now()
	if g.last.IsZero() {
		return // alone, or before the first round
	}
	var fresh []*peer
	for _, p := range g.peers {
		if now.Sub(p.at) > peerTimeout {
			continue
		}
		fresh = append(fresh, p)
		if e, ok := p.spent[m.subject]; ok && p.demand[m.subject] > 0 {
			m.bucket = min(m.bucket, e.bucket)
		}
	}
	g.divide(m, now, fresh)
}
