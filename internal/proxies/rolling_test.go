package proxies

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/internal/node"
)

// TestRollingRestart restarts two servers behind the guide's load balancer, one after the
// other, under load. No request fails. The load balancer sends no request twice.
func TestRollingRestart(t *testing.T) {
	cert, certKey, roots := certificate(t)
	first := imported(t)
	key, err := first.CreateKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second := first
	second.Data = t.TempDir()
	if err := os.CopyFS(second.Data, os.DirFS(first.Data)); err != nil {
		t.Fatal(err)
	}
	servers := []*server{start(t, first), start(t, second)}
	proxy := caddy(t, replace(t, guide(t, "## A load balancer"), "/etc/ssl/example.org.pem", cert, "/etc/ssl/example.org.key", certKey,
		"10.0.0.1:8545", servers[0].address, "10.0.0.2:8545", servers[1].address))

	endpoint := "https://" + network + ".example.org/v3/" + key
	await(t, func() error {
		_, _, err := post(clientOf(t, proxy, "127.0.0.1", roots), endpoint, askChainID)
		return err
	})
	loading, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	defer clients.Wait()
	defer stop()
	var answered atomic.Uint64
	for range 8 {
		client := clientOf(t, proxy, "127.0.0.1", roots)
		clients.Go(func() {
			for loading.Err() == nil {
				response, answer, err := post(client, endpoint, askChainID)
				if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(answer, `"result":`+chainID) {
					t.Errorf("after %d answers: %v %+v %s", answered.Load(), err, response, answer)
					return
				}
				answered.Add(1)
				time.Sleep(2 * time.Millisecond)
			}
		})
	}
	for i, s := range servers {
		before := answered.Load()
		if err := s.process.Drain(); err != nil {
			t.Fatal(err)
		}
		if answered.Load() == before {
			t.Errorf("no request was answered while server %d stopped", i)
		}
		s.serve(t)
		await(t, func() error { // until the load balancer has seen that it is ready again
			if n := s.calls(t); n == 0 {
				return fmt.Errorf("server %d gets no requests after its restart", i)
			}
			return nil
		})
	}
	stop()
	clients.Wait()
	t.Logf("%d requests answered", answered.Load())
	for i, s := range servers {
		if err := s.process.Stop(); err != nil {
			t.Errorf("server %d after its restart: %v", i, err)
		}
	}
}

// server is a server behind the load balancer.
type server struct {
	service node.Ashlar
	address string
	process *node.Process
}

func start(t *testing.T, service node.Ashlar) *server {
	t.Helper()
	s := &server{service: service, address: freeAddress(t)}
	s.serve(t)
	return s
}

// calls returns how many calls the server has answered since its start.
func (s *server) calls(t *testing.T) uint64 {
	t.Helper()
	text, err := s.service.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var status struct{ Process struct{ Calls uint64 } }
	if err := json.Unmarshal([]byte(text), &status); err != nil {
		t.Fatal(err)
	}
	return status.Process.Calls
}

func (s *server) serve(t *testing.T) {
	t.Helper()
	s.process = serve(t, s.service, s.address, "data: "+s.service.Data+"\nlisten: "+s.address+"\nproxies: [127.0.0.1/32]\nhosts: [\"*.example.org\"]\n")
}
