package session

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/alexedwards/scs/v2"
)

// site serves pages with sessions of scs.
type site struct {
	*fixture
	manager *scs.SessionManager
	cookie  *http.Cookie
}

func newSite(t *testing.T) *site {
	s := &site{fixture: newFixture(t), manager: scs.New()}
	s.fixture.now = time.Now()
	s.manager.Store, s.manager.IdleTimeout = s.Store, time.Hour
	return s
}

// request serves a request of the session.
func (s *site) request(do func(r *http.Request)) {
	s.Helper()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if s.cookie != nil {
		r.AddCookie(s.cookie)
	}
	w := httptest.NewRecorder()
	s.manager.LoadAndSave(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { do(r) })).ServeHTTP(w, r.WithContext(Track(r.Context())))
	for _, set := range w.Result().Cookies() {
		s.cookie = set
	}
}

func (s *site) put(key, value string) {
	s.Helper()
	s.request(func(r *http.Request) { s.manager.Put(r.Context(), key, value) })
}

// has fails the test if the session's value of a key is not the one that is wanted; "" means none.
func (s *site) has(key, want string) {
	s.Helper()
	s.request(func(r *http.Request) {
		if got := s.manager.GetString(r.Context(), key); got != want {
			s.Errorf("%s is %q, expected %q", key, got, want)
		}
	})
}

// A request does not undo what others change while it takes long, and changes what it changes itself.
func TestRequestsAtTheSameTime(t *testing.T) {
	for name, slow := range map[string]func(*site, *http.Request){
		"one that reads":    func(*site, *http.Request) {},
		"one that adds":     func(s *site, r *http.Request) { s.manager.Put(r.Context(), "added", "mine") },
		"one that changes":  func(s *site, r *http.Request) { s.manager.Put(r.Context(), "kept", "mine") },
		"one that removes":  func(s *site, r *http.Request) { s.manager.Remove(r.Context(), "kept") },
		"one that prolongs": func(s *site, r *http.Request) { s.manager.SetDeadline(r.Context(), time.Now().Add(48*time.Hour)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.put("kept", "first")
			s.put("asked", "once")
			s.request(func(r *http.Request) {
				s.request(func(other *http.Request) {
					if got := s.manager.PopString(other.Context(), "asked"); got != "once" {
						t.Errorf("the other request finds %q", got)
					}
					s.manager.Put(other.Context(), "said", "done")
				})
				slow(s, r)
			})
			s.has("asked", "")
			s.has("said", "done")
			s.has("added", map[string]string{"one that adds": "mine"}[name])
			want := "first"
			if name == "one that changes" {
				want = "mine"
			} else if name == "one that removes" {
				want = ""
			}
			s.has("kept", want)
			s.request(func(r *http.Request) {
				if far := time.Until(s.manager.Deadline(r.Context())) > 47*time.Hour; far != (name == "one that prolongs") {
					t.Errorf("the session ends at %v", s.manager.Deadline(r.Context()))
				}
			})
		})
	}
}

// Requests that change nothing write nothing, however the values of the session are encoded.
func TestReadingWritesNothing(t *testing.T) {
	s := newSite(t)
	for i := range 8 {
		s.put(fmt.Sprint("key ", i), "value")
	}
	number := func() uint64 {
		t.Helper()
		_, number, err := s.kv.Newest(t.Context(), sessions, partition(s.cookie.Value), ended, nil)
		if err != nil {
			t.Fatal(err)
		}
		return number
	}
	before := number()
	for range 20 {
		s.has("key 0", "value")
	}
	if after := number(); after != before {
		t.Errorf("20 requests that read wrote %d revisions", after-before)
	}
}
