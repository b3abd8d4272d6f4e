package app

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"ashlar/account/control"
	"ashlar/app/config"
	"ashlar/app/store"
)

// TestHostOfAnAbsentNetwork: while a network is out of service, a request at its host is refused. The only
// network that is served does not answer it: that would be an answer of another chain.
func TestHostOfAnAbsentNetwork(t *testing.T) {
	for name, listed := range map[string]map[string]config.Network{
		"listed":     {"demo": {}, "second": {Hosts: []string{"own.test"}}},
		"not listed": nil,
	} {
		t.Run(name, func(t *testing.T) {
			s, key := served(t, func(c *config.Config) {
				makeStored(t, c.Data, "evm", "second")
				c.Networks, c.Hosts = listed, []string{"*.example.org"}
			})
			hosts := []string{"second.example.org"}
			if listed != nil {
				hosts = append(hosts, "own.test")
			}
			check := func(want int) {
				t.Helper()
				for _, host := range hosts {
					if got := statusAt(t, s, host, key); got != want {
						t.Errorf("at %s: %d, want %d", host, got, want)
					}
				}
				if got := statusAt(t, s, "demo.example.org", key); got != http.StatusOK {
					t.Errorf("the other network: %d, want 200", got)
				}
			}
			check(http.StatusOK)
			_, release, err := s.LendNetwork(t.Context(), control.Borrowing{Network: "second"})
			if err != nil {
				t.Fatal(err)
			}
			check(http.StatusNotFound)
			if err := s.Reload(*s.current.Load()); err != nil {
				t.Fatal(err)
			}
			check(http.StatusNotFound)
			if err := release(t.Context()); err != nil {
				t.Fatal(err)
			}
			check(http.StatusOK)
		})
	}
}

// statusAt asks for the number of the newest block at a host, without a network in the path, and returns
// the HTTP status.
func statusAt(t *testing.T, s *Service, host, key string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Addr().String()+"/v3/"+key, strings.NewReader(blockNumber))
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

// TestHostOfARemovedNetwork: the host of a network that was removed while the server runs is refused, also after the
// configuration was read again, and answers once a network is made anew under that name and added.
func TestHostOfARemovedNetwork(t *testing.T) {
	s, key := served(t, func(c *config.Config) {
		makeStored(t, c.Data, "evm", "second")
		c.Hosts = []string{"*.example.org"}
	})
	check := func(what string, want int) {
		t.Helper()
		if got := statusAt(t, s, "second.example.org", key); got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
		if got := statusAt(t, s, "demo.example.org", key); got != http.StatusOK {
			t.Errorf("%s: the other network: %d, want 200", what, got)
		}
	}
	for range 2 {
		check("served", http.StatusOK)
		_, release, err := s.LendNetwork(t.Context(), control.Borrowing{Network: "second"})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(store.Dir(s.config.Data).Remove("second"), release(t.Context())); err != nil {
			t.Fatal(err)
		}
		check("removed", http.StatusNotFound)
		if err := s.Reload(*s.current.Load()); err != nil {
			t.Fatal(err)
		}
		check("reloaded", http.StatusNotFound)
		makeStored(t, s.config.Data, "evm", "second")
		check("made anew", http.StatusNotFound)
		if err := s.AddNetwork(t.Context(), "second"); err != nil {
			t.Fatal(err)
		}
	}
	check("added", http.StatusOK)
}
