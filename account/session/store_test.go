package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/kv"
	"ashlar/kv/pebble"

	"github.com/alexedwards/scs/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// fixture is a Store that can be reopened, with a clock.
type fixture struct {
	*testing.T
	fs  *vfs.MemFS
	kv  kv.Store
	now time.Time
	*Store
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{T: t, fs: vfs.NewMem(), now: time.Unix(1_700_000_000, 0)}
	f.open()
	t.Cleanup(func() { _ = f.kv.Close() })
	return f
}

func (f *fixture) open() {
	f.Helper()
	var err error
	if f.kv, err = pebble.Open(pebble.Options{Path: "sessions", FS: f.fs}); err != nil {
		f.Fatal(err)
	}
	f.Store = NewStore(f.kv, func() time.Time { return f.now })
}

func (f *fixture) reopen() {
	f.Helper()
	if err := f.kv.Close(); err != nil {
		f.Fatal(err)
	}
	f.open()
}

func (f *fixture) commit(token, data string, left time.Duration) {
	f.Helper()
	if err := f.Commit(token, []byte(data), f.now.Add(left)); err != nil {
		f.Fatal(err)
	}
}

// holds checks the data of a session, before and after reopening the store; "" means none.
func (f *fixture) holds(token, want string) {
	f.Helper()
	for _, when := range []string{"at once", "after opening again"} {
		data, found, err := f.Find(token)
		if err != nil || found != (want != "") || string(data) != want {
			f.Errorf("%s: %q, %t, %v; expected %q", when, data, found, err, want)
		}
		f.reopen()
	}
}

func TestSessionsLiveAndEnd(t *testing.T) {
	f := newFixture(t)
	f.holds("a", "")
	f.commit("a", "first", time.Hour)
	f.commit("b", "other", time.Hour)
	f.commit("a", "second", time.Hour)
	f.holds("a", "second")
	if err := f.Delete("a"); err != nil {
		t.Fatal(err)
	}
	f.holds("a", "")
	f.holds("b", "other")
	f.commit("a", "back again", 2*time.Hour) // by a concurrent request
	f.holds("a", "")
	for range 2 {
		if err := f.Delete("a"); err != nil {
			t.Error(err)
		}
	}
	if err := f.Delete("never there"); err != nil {
		t.Error(err)
	}
	f.now = f.now.Add(time.Hour)
	f.holds("b", "")
}

func (f *fixture) rows() (n int) {
	f.Helper()
	for _, err := range f.kv.Walk(f.Context(), sessions, 0) {
		if err != nil {
			f.Fatal(err)
		}
		n++
	}
	return n
}

func TestProlongingIsStoredRarely(t *testing.T) {
	f := newFixture(t)
	for range 120 { // two minutes of requests that each prolong the session
		f.commit("a", "data", time.Hour)
		f.now = f.now.Add(time.Second)
	}
	if _, number, err := f.kv.Newest(t.Context(), sessions, partition("a"), ended, nil); err != nil || number != 1 {
		t.Errorf("revision %d, %v, expected 1", number, err)
	}
	f.commit("a", "data", time.Minute) // shortened
	f.now = f.now.Add(time.Minute)
	f.holds("a", "")
}

// A session that changes again and again takes the space of one, also while the store refuses writes
// at times: a client decides how often it changes.
func TestChangesTakeNoSpace(t *testing.T) {
	f := newFixture(t)
	refuses := &refusing{Store: f.kv}
	f.store = refuses
	for i := range 100 {
		refuses.full = i%10 > 6
		f.commit("a", fmt.Sprint("data ", i), time.Hour)
		if data, _, err := f.Find("a"); err != nil || string(data) != fmt.Sprint("data ", i) {
			t.Fatalf("change %d left %q, %v", i, data, err)
		}
		if i%25 == 0 {
			f.save(t.Context())
		}
	}
	refuses.full = false
	f.save(t.Context())
	if n := f.rows(); n != 1 {
		t.Errorf("%d rows after 100 changes, expected 1", n)
	}
	f.holds("a", "data 99")
	if err := f.Delete("a"); err != nil {
		t.Fatal(err)
	}
	if n := f.rows(); n != 1 {
		t.Errorf("%d rows after the end, expected 1", n)
	}
	f.holds("a", "")
}

func TestCleanDeletesEndedSessions(t *testing.T) {
	f := newFixture(t)
	f.commit("short", "x", time.Minute)
	f.commit("long", "x", time.Hour)
	f.commit("prolonged", "x", time.Minute)
	f.commit("prolonged", "x", time.Hour)
	f.commit("ended", "x", time.Hour)
	if err := f.Delete("ended"); err != nil {
		t.Fatal(err)
	}
	f.now = f.now.Add(2 * time.Minute)
	if n, err := f.Clean(t.Context()); err != nil || n != 1 {
		t.Errorf("%d dropped, %v", n, err)
	}
	f.holds("long", "x")
	f.holds("prolonged", "x")
	f.commit("ended", "x", time.Hour) // the end is kept as long as the session could have been used
	f.holds("ended", "")
	f.now = f.now.Add(time.Hour)
	if n, err := f.Clean(t.Context()); err != nil || n != 3 || f.rows() != 0 {
		t.Errorf("%d dropped, %d rows left, %v", n, f.rows(), err)
	}
}

func TestStoreHoldsNoToken(t *testing.T) {
	f := newFixture(t)
	const token = "jPl3k9_a-long-token-that-is-not-to-be-seen"
	f.commit(token, "data", time.Hour)
	for row, err := range f.kv.Walk(t.Context(), sessions, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if all := fmt.Appendf(nil, "%s%s", row.Partition, row.Value); bytes.Contains(all, []byte(token)) {
			t.Error("the store holds the token")
		}
	}
}

func TestDamagedRows(t *testing.T) {
	for _, value := range [][]byte{nil, {1, 2}, bytes.Repeat([]byte{9}, 20)} {
		f := newFixture(t)
		b := f.kv.NewBatch()
		b.Put(sessions, partition("a"), 0, value)
		if err := f.kv.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if _, _, err := f.Find("a"); err == nil {
			t.Errorf("%x is found", value)
		}
		if _, err := f.Clean(t.Context()); err == nil {
			t.Errorf("%x is cleaned up", value)
		}
	}
}

// A session of scs lasts from request to request until it is ended.
func TestWithSCS(t *testing.T) {
	f := newFixture(t)
	f.now = time.Now()
	manager := scs.New()
	manager.Store, manager.IdleTimeout = f.Store, time.Hour
	page := manager.LoadAndSave(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/in":
			manager.Put(r.Context(), "who", "somebody")
		case "/out":
			if err := manager.Destroy(r.Context()); err != nil {
				t.Error(err)
			}
		}
		fmt.Fprint(w, manager.GetString(r.Context(), "who"))
	}))
	get := func(path string, cookies []*http.Cookie) (string, []*http.Cookie) {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		for _, c := range cookies {
			r.AddCookie(c)
		}
		w := httptest.NewRecorder()
		page.ServeHTTP(w, r)
		return w.Body.String(), w.Result().Cookies()
	}
	_, cookies := get("/in", nil)
	if got, _ := get("/", cookies); got != "somebody" {
		t.Errorf("the second request knows %q", got)
	}
	get("/out", cookies)
	if got, _ := get("/", cookies); got != "" {
		t.Errorf("after the end it is still known: %q", got)
	}
}

// refusing is a store that refuses writes while full is set.
type refusing struct {
	kv.Store
	full     bool
	unsynced int // writes since the last Sync
}

func (r *refusing) Write(ctx context.Context, b kv.Batch) error {
	if r.full {
		return kv.ErrFull
	}
	r.unsynced++
	return r.Store.Write(ctx, b)
}

func (r *refusing) Sync(ctx context.Context) error {
	r.unsynced = 0
	return r.Store.Sync(ctx)
}

// A power cut does not bring back a session that has ended.
func TestEndsAreDurable(t *testing.T) {
	f := newFixture(t)
	counts := &refusing{Store: f.kv}
	f.store = counts
	f.commit("a", "data", time.Hour)
	if err := f.Delete("a"); err != nil || counts.unsynced > 0 {
		t.Errorf("%v, and %d writes are not durable", err, counts.unsynced)
	}
}

// However many sessions are held while the store refuses writes, each of them can end.
func TestHeldSessionsAreBounded(t *testing.T) {
	f := newFixture(t)
	refuses := &refusing{Store: f.kv}
	f.store = refuses
	f.commit("stored", "data", time.Hour)
	refuses.full = true
	f.commit("held", "data", time.Hour)
	for i := range maxHeld - 1 {
		f.Store.held[hash{byte(i), byte(i >> 8)}] = revision{state: stateOpen, expires: f.now.Add(time.Hour), held: true}
	}
	if err := f.Commit("another", []byte("data"), f.now.Add(time.Hour)); !errors.Is(err, kv.ErrFull) {
		t.Errorf("one session more: %v, expected ErrFull", err)
	}
	f.commit("held", "changed", time.Hour)
	for _, token := range []string{"stored", "held"} {
		if err := f.Delete(token); err != nil {
			t.Errorf("the end of a session: %v", err)
		}
		if data, found, err := f.Find(token); found || err != nil {
			t.Errorf("%s has ended, and has the data %q, %v", token, data, err)
		}
	}
}

// Forget ends the sessions of one account, stored or held.
func TestForget(t *testing.T) {
	f := newFixture(t)
	refuses := &refusing{Store: f.kv}
	f.store = refuses
	one, other := account.ID{1}, account.ID{1, 1}
	session := func(id account.ID) string {
		t.Helper()
		data, err := scs.GobCodec{}.Encode(f.now.Add(time.Hour), map[string]any{"session": id.String() + ".3"})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for _, refuses.full = range []bool{false, true} {
		for _, id := range []account.ID{one, other} {
			f.commit(fmt.Sprint(id, refuses.full), session(id), time.Hour)
		}
	}
	refuses.full = false
	if err := f.Forget(t.Context(), one, nil); err != nil || refuses.unsynced > 0 {
		t.Errorf("%v, and %d writes are not durable", err, refuses.unsynced)
	}
	f.save(t.Context())
	for _, full := range []bool{false, true} {
		f.holds(fmt.Sprint(one, full), "")
		f.holds(fmt.Sprint(other, full), session(other))
	}
}

// While the store refuses writes, users sign in and out; what they did is stored later.
func TestSessionsOnAFullDisk(t *testing.T) {
	f := newFixture(t)
	refuses := &refusing{Store: f.kv}
	f.store = refuses
	f.commit("before", "data", time.Hour)
	found := func(token string, want bool) {
		t.Helper()
		if data, ok, err := f.Find(token); ok != want || err != nil || want && string(data) != "data" {
			t.Errorf("%s: %q, %t, %v", token, data, ok, err)
		}
	}
	refuses.full = true
	f.commit("during", "data", time.Hour)
	found("during", true)
	if err := f.Delete("before"); err != nil {
		t.Fatal(err)
	}
	found("before", false)
	f.commit("before", "data", time.Hour) // does not revive it
	f.save(t.Context())
	found("during", true)
	found("before", false)
	refuses.full = false
	f.save(t.Context())
	if len(f.Store.held) > 0 {
		t.Errorf("%d sessions are still held", len(f.Store.held))
	}
	f.reopen()
	f.holds("during", "data")
	f.holds("before", "")
}
