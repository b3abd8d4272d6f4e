package limit

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// OtherPosts begins the names of posts on the board that are not those of a Group.
const OtherPosts = "node "

// daySuffix ends the names of posts of a whole day.
const daySuffix = " day"

// post is what a process posts, as JSON.
type post struct {
	seq     uint64
	entries map[string]entry
}

// entry is what a process has counted for a subject.
type entry struct {
	demand float64 // credits asked for per second
	spent  float64 // credits of the rate since the process was started
	bucket float64 // credits that all processes together could spend then
	day    int64   // days since 1970
	today  uint64  // credits spent in that day
	recent float64 // credits of the rate since the subject came into use
}

// stored is the form of a post in which it is stored; docs/format.md shows it.
type stored struct {
	Seq     uint64                `json:"seq"`
	Entries map[string][6]float64 `json:"entries"`
}

func (p post) encode() ([]byte, error) {
	s := stored{p.seq, make(map[string][6]float64, len(p.entries))}
	for subject, e := range p.entries {
		s.Entries[subject] = [6]float64{e.demand, e.spent, e.bucket, float64(e.day), float64(e.today), e.recent}
	}
	return json.Marshal(s)
}

func decodePost(value []byte) (p post, err error) {
	var s stored
	if err := json.Unmarshal(value, &s); err != nil {
		return p, fmt.Errorf("post: %w", err)
	}
	p = post{s.Seq, make(map[string]entry, len(s.Entries))}
	for subject, e := range s.Entries {
		p.entries[subject] = entry{e[0], e[1], e[2], int64(e[3]), uint64(max(0, e[4])), e[5]}
	}
	return p, nil
}

func dayOf(now time.Time) int64 { return now.Unix() / secondsOfDay }

// post posts the subjects in use.
func (g *Group) post(ctx context.Context) error {
	g.seq++
	now := g.now()
	return g.send(ctx, g.name, func(m *member) bool { return now.Sub(m.used) <= inUse })
}

// postDay posts everything that was spent today.
func (g *Group) postDay(ctx context.Context) error {
	now := g.now()
	return g.send(ctx, g.name+daySuffix, func(m *member) bool { return m.day.spentBy(now) > 0 })
}

// send posts some subjects, those in use lately if there are too many.
func (g *Group) send(ctx context.Context, name string, posted func(*member) bool) error {
	value, err := g.collect(posted).encode()
	if err != nil {
		return err
	}
	return g.board.Post(ctx, name, value, keepPost)
}

func (g *Group) collect(posted func(*member) bool) post {
	g.mu.Lock()
	defer g.mu.Unlock()
	var chosen []*member
	for _, m := range g.members {
		if posted(m) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) > maxPosted {
		slices.SortFunc(chosen, func(a, b *member) int { return cmp.Compare(b.used.UnixNano(), a.used.UnixNano()) })
		chosen = chosen[:maxPosted]
	}
	p := post{g.seq, make(map[string]entry, len(chosen))}
	now := g.now()
	for _, m := range chosen {
		p.entries[m.subject] = entry{m.demand, m.seen.spent, m.bucket, dayOf(now), m.day.spentBy(now), m.seen.spent - m.before}
	}
	return p
}
