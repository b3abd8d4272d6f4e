package app

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"ashlar/account/control"
	"ashlar/app/config"
	"ashlar/app/store"
)

// makeStored makes a network of a few blocks next to others.
func makeStored(t *testing.T, data, family, name string) {
	t.Helper()
	f, err := Families().Named(family)
	if err != nil {
		t.Fatal(err)
	}
	demo, err := f.Demo()
	if err != nil {
		t.Fatal(err)
	}
	place, err := Place(t.Context(), store.Dir(data), f, name)
	if err == nil {
		err = demo.Create(t.Context(), place, 3)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestAddNetwork makes networks in the data directory of a running service, and adds them
// through the socket: they are served, and the first one still is.
func TestAddNetwork(t *testing.T) {
	s, key := served(t, nil)
	data := s.config.Data
	client, err := control.Dial(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ask := func(network, method string) (int, string) {
		t.Helper()
		body := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":[]}`)
		response, err := http.Post("http://"+s.Addr().String()+"/"+network+"/v3/"+key, "application/json", body)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(text)
	}
	for _, n := range []struct{ family, name, method string }{{"evm", "second", "eth_blockNumber"}, {"starknet", "third", "starknet_blockNumber"}} {
		if code, _ := ask(n.name, n.method); code != http.StatusNotFound {
			t.Errorf("%s before it is there: status %d", n.name, code)
		}
		makeStored(t, data, n.family, n.name)
		if err := client.AddNetwork(t.Context(), n.name); err != nil {
			t.Fatal(err)
		}
		if code, text := ask(n.name, n.method); code != http.StatusOK || !strings.Contains(text, `"result"`) {
			t.Errorf("%s: status %d: %s", n.name, code, text)
		}
		if code, text := ask(s.Networks()[0].Name, "eth_blockNumber"); code != http.StatusOK || !strings.Contains(text, `"0x0"`) {
			t.Errorf("the first network: status %d: %s", code, text)
		}
	}
	var status Status
	if err := client.Status(t.Context(), &status); err != nil || len(status.Networks) != 3 {
		t.Errorf("status: %+v, %v", status, err)
	}
	for name, want := range map[string]string{"second": "is served already", "fourth": "import it first"} {
		if err := client.AddNetwork(t.Context(), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("add %s: %v, want %q", name, err, want)
		}
	}
}

// TestAddNetworkToAList: a configuration that lists networks is not contradicted.
func TestAddNetworkToAList(t *testing.T) {
	var name string
	s, _ := served(t, func(c *config.Config) {
		names, err := store.Dir(c.Data).List(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		name = names[0]
		c.Networks = map[string]config.Network{name: {}}
	})
	makeStored(t, s.config.Data, "evm", "second")
	if err := s.AddNetwork(t.Context(), "second"); err == nil || !strings.Contains(err.Error(), "is not in the configuration") {
		t.Errorf("add a network that is not listed: %v", err)
	}
}

// openedBeside opens a service that does not run, and stores a further network that it does not serve.
func openedBeside(t *testing.T, name string) *Service {
	t.Helper()
	data := t.TempDir()
	makeNetwork(t, data)
	c := config.Default()
	c.Data, c.Listen = data, "127.0.0.1:0"
	s, err := Open(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Stop(context.Background()), s.Close()); err != nil {
			t.Error(err)
		}
	})
	makeStored(t, data, "evm", name)
	return s
}

// TestAddNetworkWhileStopping: once the networks run no more, none is added, and nobody waits
// for one.
func TestAddNetworkWhileStopping(t *testing.T) {
	s := openedBeside(t, "second")
	if err := s.runNetworks(ended(t.Context())); err != nil {
		t.Error(err)
	}
	if err := s.AddNetwork(t.Context(), "second"); !errors.Is(err, errStopping) || s.Network("second") != nil {
		t.Errorf("added: %v", err)
	}
}

// TestAddNetworkBeforeAnyRuns: a network that is added to a service that does not run networks yet is not visible
// to clients before it runs: it could not be taken out of service.
func TestAddNetworkBeforeAnyRuns(t *testing.T) {
	s := openedBeside(t, "second")
	if err := s.AddNetwork(ended(t.Context()), "second"); !errors.Is(err, context.Canceled) || s.Network("second") != nil {
		t.Errorf("added: %v, served: %t", err, s.Network("second") != nil)
	}
}

// TestAddNetworkToAStartingReader adds a network as soon as a reader runs, for the race detector: the start and
// the addition both use the configuration.
func TestAddNetworkToAStartingReader(t *testing.T) {
	data := t.TempDir()
	makeNetwork(t, data)
	c := config.Default()
	c.Data, c.Listen, c.Role = data, "127.0.0.1:0", config.Reader
	s, _, stop := runningWith(t, c, func(*Service) { makeStored(t, data, "evm", "second") })
	defer stop()
	if err := s.AddNetwork(t.Context(), "second"); err != nil {
		t.Error(err)
	}
}

// TestLeaseWait: a standby waits for its networks without end before it takes over. Then it waits for those that
// are added like any writer: SIGHUP and other additions wait meanwhile.
func TestLeaseWait(t *testing.T) {
	begun := make(chan struct{})
	close(begun)
	for _, test := range []struct {
		role  config.Role
		begun chan struct{}
		want  time.Duration
	}{
		{config.Writer, nil, leaseWait}, {config.Standby, nil, 0},
		{config.Writer, begun, leaseWait}, {config.Standby, begun, leaseWait},
	} {
		s := &Service{config: config.Config{Role: test.role}, begun: test.begun}
		if got := s.mostLeaseWait(); got != test.want {
			t.Errorf("%s, begun: %t: waits %v, want %v", test.role, test.begun != nil, got, test.want)
		}
	}
}
