package limit

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"
)

// peer is what is known of another process.
type peer struct {
	seq     uint64
	at      time.Time // when seq changed
	spent   map[string]entry
	demand  map[string]float64
	resumes int // so many of its next posts say where it goes on
}

// read takes in the posts of others, and returns those that have posted lately.
func (g *Group) read(posts map[string][]byte, now time.Time) (fresh []*peer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(posts)) { // a post of the day comes after the last round's
		from, whole := strings.CutSuffix(name, daySuffix)
		if from == g.name || strings.HasPrefix(from, OtherPosts) {
			continue
		}
		decoded, err := decodePost(posts[name])
		if err != nil {
			slog.Debug("post of another process not read", "name", name, "error", err)
			continue
		}
		p := g.peers[from]
		if p == nil {
			p = &peer{spent: map[string]entry{}, demand: map[string]float64{}}
			g.peers[from] = p
		}
		if whole {
			p.learn(decoded)
			continue
		}
		if decoded.seq != p.seq {
			g.advance(p, decoded, now)
			p.seq, p.at = decoded.seq, now
		}
		if now.Sub(p.at) <= peerTimeout {
			fresh = append(fresh, p)
		}
	}
	for name := range g.peers {
		if posts[name] == nil && posts[name+daySuffix] == nil {
			delete(g.peers, name)
		}
	}
	return fresh
}

// learn takes in the spending of a day, of subjects that are not in the last post.
func (p *peer) learn(day post) {
	for subject, e := range day.entries {
		if known, ok := p.spent[subject]; !ok || known.day < e.day || known.day == e.day && known.today < e.today {
			if ok {
				e.spent, e.bucket = known.spent, known.bucket
			}
			p.spent[subject] = e
		}
	}
}

// advance subtracts from the buckets what a process has spent since its last post. What all
// have spent before the first round here is in the level of their buckets. What a process has
// spent while it had no share here is not made up for.
func (g *Group) advance(p *peer, posted post, now time.Time) {
	silent := !p.at.IsZero() && now.Sub(p.at) > peerTimeout
	first := g.last.IsZero() || p.resumes > 0 || silent
	p.resumes = max(0, p.resumes-1)
	p.demand = map[string]float64{}
	for subject, e := range posted.entries {
		p.demand[subject] = e.demand
		before, known := p.spent[subject]
		if m := g.members[subject]; m != nil {
			switch {
			case first:
				m.bucket = min(m.bucket, e.bucket)
			case known: // maybe long ago: the subject came into use again, or a post was too long for it
				m.bucket -= min(e.recent, e.spent-before.spent)
			default:
				m.bucket -= e.recent
			}
		}
		p.spent[subject] = e
	}
}
