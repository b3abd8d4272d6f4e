package failures

import (
	"unsafe"

	"fmt"
	"strings"
	"testing"
	"time"

	"ashlar/account"
)

var a, b = account.KeyID{1}, account.KeyID{2}

// newLog returns a log with a clock.
func newLog() (*Log, *time.Time) {
	l, now := New(), time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	l.now = func() time.Time { return now }
	return l, &now
}

func TestLastFailures(t *testing.T) {
	l, now := newLog()
	for i := range 250 {
		*now = now.Add(time.Second)
		l.Add(a, Failure{Code: i, Message: strings.Repeat("é", 400), Origin: strings.Repeat("o", 400)}, []byte("[1]"))
		if last := l.Last(a); len(last) != min(i+1, PerKey) || last[0].Code != i || last[len(last)-1].Code != max(0, i-PerKey+1) {
			t.Fatalf("after %d: %d failures, from %d to %d", i, len(last), last[0].Code, last[len(last)-1].Code)
		}
	}
	f := l.Last(a)[0]
	if len(f.Message) > maxMessage+3 || !strings.HasSuffix(f.Message, "é…") || len(f.Origin) != maxOrigin+3 || f.Params != "" || !f.Time.Equal(*now) {
		t.Errorf("the last one is %+v", f)
	}
	if other := l.Last(b); other != nil {
		t.Errorf("another key has %+v", other)
	}
	var none *Log
	none.Add(a, Failure{}, nil)
	if none.KeepParams(a, true); none.Last(a) != nil || !none.ParamsUntil(a).IsZero() {
		t.Error("a nil log keeps failures")
	}
}

// Parameters are kept only for the key whose owner has asked for it, and for an hour.
func TestParams(t *testing.T) {
	l, now := newLog()
	add := func() {
		l.Add(a, Failure{}, []byte(`["0x1"]`))
		l.Add(b, Failure{}, []byte(`["0x2"]`))
	}
	shown := func() (n int) {
		for _, key := range []account.KeyID{a, b} {
			for _, f := range l.Last(key) {
				if f.Params != "" {
					n++
				}
			}
		}
		return n
	}
	for _, step := range []struct {
		what string
		do   func()
		want int
	}{
		{"not asked for", add, 0},
		{"asked for", func() { l.KeepParams(a, true); add() }, 1},
		{"still", func() { *now = now.Add(ParamsTime - time.Second); add() }, 2},
		{"over", func() { *now = now.Add(time.Second) }, 0},
		{"later", add, 0},
		{"asked for again", func() { l.KeepParams(a, true); add() }, 1},
		{"ended", func() { l.KeepParams(a, false); add() }, 0},
	} {
		if step.do(); shown() != step.want {
			t.Errorf("%s: %d failures with parameters, expected %d", step.what, shown(), step.want)
		}
	}
	l.KeepParams(a, true)
	l.Add(a, Failure{}, []byte(strings.Repeat("é", 5000)))
	if f := l.Last(a)[0]; len(f.Params) > maxParams+3 || !strings.HasSuffix(f.Params, "é…") || l.ParamsUntil(a) != now.Add(time.Hour) {
		t.Errorf("%d bytes of parameters, kept until %v", len(f.Params), l.ParamsUntil(a))
	}
}

// However many keys fail, memory is bounded; the keys that failed last are kept.
func TestMemoryIsBounded(t *testing.T) {
	l, _ := newLog()
	l.most = 100_000
	for i := range 2000 {
		key := account.KeyID{byte(i), byte(i >> 8), 1}
		l.KeepParams(key, i%3 == 0)
		for n := range 1 + i%7 {
			l.Add(key, Failure{Message: fmt.Sprint(n, strings.Repeat("m", 100))}, []byte(strings.Repeat("p", 500)))
		}
	}
	sum := 0
	for e := l.recent.Front(); e != nil; e = e.Next() {
		for _, f := range e.Value.(*keyFailures).all {
			sum += f.size()
		}
	}
	if sum != l.bytes || l.bytes > l.most || l.bytes < l.most/2 || len(l.byKey) != l.recent.Len() {
		t.Errorf("%d bytes, counted as %d, of %d; %d and %d keys", sum, l.bytes, l.most, len(l.byKey), l.recent.Len())
	}
	if last := (account.KeyID{byte(1999 & 255), byte(1999 >> 8), 1}); len(l.Last(last)) == 0 {
		t.Error("the key that failed last is forgotten")
	}
}

// A failure that is kept does not hold the head of its request in memory, of which an origin is a part.
func TestTextsAreCopied(t *testing.T) {
	l := New()
	head := "Origin: https://app.example.org, and much more"
	origin := head[len("Origin: "):len("Origin: https://app.example.org")]
	l.Add(account.KeyID{1}, Failure{Message: origin, Origin: origin}, nil)
	kept := l.Last(account.KeyID{1})[0]
	for what, text := range map[string]string{"message": kept.Message, "origin": kept.Origin} {
		if text != origin || unsafe.StringData(text) == unsafe.StringData(origin) {
			t.Errorf("the %s %q is not copied", what, text)
		}
	}
}
