// Package failures keeps the last failed requests of each key, for the key's owner.
//
// They are only in memory, and bounded: [PerKey] failures of each key, with shortened texts,
// and a number of bytes for all keys together. When these are used up, the failures of the key
// whose last one is the oldest are dropped.
package failures

import (
	"container/list"
	"context"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"ashlar/account"
	"ashlar/account/usage"
)

const (
	// PerKey is how many failures of a key are kept.
	PerKey = 100
	// ParamsTime is how long parameters are kept once a key's owner has asked for it.
	ParamsTime = time.Hour

	maxBytes   = 32 << 20 // of all keys
	maxMessage = 300      // bytes
	maxOrigin  = 200
	maxParams  = 2 << 10
	rowBytes   = 200 // about what a failure takes besides its texts
)

// Failure is a failed request.
type Failure struct {
	Time    time.Time
	Network string
	Method  string // empty: an unknown one, or none
	Code    int    // of the JSON-RPC error
	Message string
	Cause   usage.Cause // 0: not refused
	Took    time.Duration
	Origin  string // of the web page; empty for clients other than browsers
	Params  string // empty unless the key's owner has asked for them
}

// size is the memory of a failure.
func (f *Failure) size() int { return rowBytes + len(f.Message) + len(f.Origin) + len(f.Params) }

// Log holds the failures. It is safe for concurrent use. A nil Log keeps nothing.
type Log struct {
	now  func() time.Time
	most int // bytes

	mu     sync.Mutex
	byKey  map[account.KeyID]*list.Element // guarded by mu; values of recent
	recent *list.List                      // guarded by mu: *keyFailures, by their last failure, the latest first
	bytes  int                             // guarded by mu: of all failures
	params map[account.KeyID]time.Time     // guarded by mu: until when parameters are kept
}

// keyFailures are the failures of a key.
type keyFailures struct {
	id  account.KeyID
	all []Failure
	// next is the place of the oldest failure, and of the next one, once there are PerKey.
	next int
}

// New returns an empty log.
func New() *Log {
	return &Log{
		now: time.Now, most: maxBytes, byKey: make(map[account.KeyID]*list.Element), recent: list.New(),
		params: make(map[account.KeyID]time.Time),
	}
}

// Add adds a failure of a key. Its time is now; its texts are shortened and copied. params is not retained, and
// is kept only if the owner has asked for it.
func (l *Log) Add(key account.KeyID, f Failure, params []byte) {
	if l == nil {
		return
	}
	f.Time, f.Params = l.now(), ""
	f.Message, f.Origin = shortened(f.Message, maxMessage), shortened(f.Origin, maxOrigin)
	l.mu.Lock()
	defer l.mu.Unlock()
	if until, asked := l.params[key]; asked {
		if f.Time.Before(until) {
			f.Params = shortened(string(params[:min(len(params), maxParams+utf8.UTFMax)]), maxParams)
		} else {
			l.forgetParams(key)
		}
	}
	e := l.byKey[key]
	if e == nil {
		e = l.recent.PushFront(&keyFailures{id: key})
		l.byKey[key] = e
	}
	l.recent.MoveToFront(e)
	of := e.Value.(*keyFailures)
	l.bytes += f.size()
	if len(of.all) < PerKey {
		of.all = append(of.all, f)
	} else {
		l.bytes -= of.all[of.next].size()
		of.all[of.next] = f
		of.next = (of.next + 1) % PerKey
	}
	for l.bytes > l.most && l.recent.Len() > 1 {
		l.drop(l.recent.Back())
	}
}

// drop removes the failures of a key. l.mu is held.
func (l *Log) drop(e *list.Element) {
	of := l.recent.Remove(e).(*keyFailures)
	for i := range of.all {
		l.bytes -= of.all[i].size()
	}
	delete(l.byKey, of.id)
}

// Last returns the failures of a key, newest first.
func (l *Log) Last(key account.KeyID) []Failure {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if until, asked := l.params[key]; asked && !l.now().Before(until) {
		l.forgetParams(key)
	}
	e := l.byKey[key]
	if e == nil {
		return nil
	}
	of := e.Value.(*keyFailures)
	last := make([]Failure, 0, len(of.all))
	for i := range of.all {
		last = append(last, of.all[(of.next+len(of.all)-1-i)%len(of.all)])
	}
	return last
}

// Forget implements [account.Belongings]: it drops the failures of keys.
func (l *Log) Forget(_ context.Context, _ account.ID, keys []account.KeyID) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		delete(l.params, key)
		if e := l.byKey[key]; e != nil {
			l.drop(e)
		}
	}
	return nil
}

// KeepParams keeps the parameters of a key's failures for ParamsTime. They are forgotten
// after that, or at once if keep is false.
func (l *Log) KeepParams(key account.KeyID, keep bool) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	for id, until := range l.params {
		if !now.Before(until) {
			l.forgetParams(id)
		}
	}
	if !keep {
		l.forgetParams(key)
		return
	}
	l.params[key] = now.Add(ParamsTime)
}

// ParamsUntil returns until when a key's parameters are kept; zero if they are not.
func (l *Log) ParamsUntil(key account.KeyID) time.Time {
	if l == nil {
		return time.Time{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if until := l.params[key]; l.now().Before(until) {
		return until
	}
	return time.Time{}
}

// forgetParams removes the parameters of a key's failures. l.mu is held.
func (l *Log) forgetParams(key account.KeyID) {
	delete(l.params, key)
	e := l.byKey[key]
	if e == nil {
		return
	}
	all := e.Value.(*keyFailures).all
	for i := range all {
		l.bytes -= len(all[i].Params)
		all[i].Params = ""
	}
}

// shortened returns a copy of a text, of its beginning with an ellipsis if it is too long. It does
// not keep a longer text in memory, of which this one may be a part.
func shortened(text string, most int) string {
	text = strings.ToValidUTF8(text, "�")
	if len(text) <= most {
		return strings.Clone(text)
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
