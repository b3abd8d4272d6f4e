package app

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/account/control"
	"ashlar/app/config"
	"ashlar/app/store"
	"ashlar/kv"
)

// storeFault keeps the store of a network from being opened until mend is called. dir is the store's
// directory.
type storeFault struct {
	name   string
	make   func(t *testing.T, data store.Dir, dir string) (mend func())
	says   string
	failed bool // not ready even if the configuration does not list the network
}

// replaceStore returns a function that replaces the store in a directory by what it is now.
func replaceStore(t *testing.T, dir string) func() {
	t.Helper()
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(copied))); err != nil {
			t.Fatal(err)
		}
	}
}

func storeFaults() []storeFault {
	return []storeFault{
		{name: "damaged", says: "restore a backup", failed: true, make: func(t *testing.T, _ store.Dir, dir string) func() {
			mend := replaceStore(t, dir)
			lists, err := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
			if err != nil || len(lists) == 0 {
				t.Fatalf("%d lists of the store's files, %v", len(lists), err)
			}
			for _, list := range lists {
				if err := os.Remove(list); err != nil {
					t.Fatal(err)
				}
			}
			return mend
		}},
		{name: "foreign", says: "notes.txt", failed: true, make: func(t *testing.T, _ store.Dir, dir string) func() {
			mend := replaceStore(t, dir)
			if err := os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			return mend
		}},
		{name: "newer format", says: "ashlar-evm-99", failed: true, make: func(t *testing.T, data store.Dir, dir string) func() {
			mend := replaceStore(t, dir)
			opened, err := data.OpenNetwork("second", kv.Options{})
			if err != nil {
				t.Fatal(err)
			}
			batch := opened.NewBatch()
			batch.SetPointer("format", []byte("ashlar-evm-99"))
			if err := errors.Join(opened.Write(t.Context(), batch), opened.Close()); err != nil {
				t.Fatal(err)
			}
			return mend
		}},
		{name: "in use", says: "the store is in use", make: func(t *testing.T, data store.Dir, _ string) func() {
			held, err := data.OpenNetwork("second", kv.Options{}) // as an import has it for days
			if err != nil {
				t.Fatal(err)
			}
			return func() {
				if err := held.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}},
	}
}

// TestStoreDoesNotOpen: a network whose store does not open does not keep the others from being served. The
// log, the status, the metrics and /readyz name it with the reason. Once its store opens, it can be added; if it
// was in use and the configuration lists it, that is not needed. A server that has no other network does not start.
func TestStoreDoesNotOpen(t *testing.T) {
	for _, fault := range storeFaults() {
		for name, listed := range map[string]map[string]config.Network{
			"listed": {"demo": {}, "second": {}}, "not listed": nil,
		} {
			t.Run(fault.name+", "+name, func(t *testing.T) {
				out := captureLog(t)
				var mend func()
				s, key := served(t, func(c *config.Config) {
					data := store.Dir(c.Data)
					makeStored(t, c.Data, "evm", "second")
					mend = fault.make(t, data, data.Network("second"))
					c.Networks = listed
				})
				public, operator := "http://"+s.Addr().String(), "http://"+s.operator.listener.Addr().String()
				notReady := fault.failed || listed != nil
				post(t, public+"/demo/v3/"+key, blockNumber, http.StatusOK)
				post(t, public+"/second/v3/"+key, blockNumber, http.StatusNotFound)
				if code, body := get(t, operator+"/readyz"); (code == 503) != notReady || !strings.Contains(body, "network second is not served: ") || !strings.Contains(body, fault.says) {
					t.Errorf("/readyz: %d %s", code, body)
				}
				if _, metrics := get(t, operator+"/metrics"); !strings.Contains(metrics, `ashlar_ready{network="second"} 0`+"\n") {
					t.Error("ashlar_ready is not 0")
				}
				shown, err := s.status(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				status := shown.(Status)
				if u := status.Unserved; len(u) != 1 || u[0].Name != "second" || !strings.Contains(u[0].Why, fault.says) || !strings.Contains(u[0].Why, "`ashlar network add`") || u[0].Failed != fault.failed {
					t.Errorf("status: %+v", u)
				}
				if err := status.Err(); (err != nil) != fault.failed {
					t.Errorf("status: %v", err)
				}
				if text := out.String(); !strings.Contains(text, `"level":"ERROR","msg":"network not served","network":"second"`) {
					t.Errorf("log: %s", text)
				}
				if err := s.AddNetwork(t.Context(), "second"); err == nil || s.Network("second") != nil {
					t.Errorf("added before its store opens: %v", err)
				}
				s.addFreed(t.Context())
				if s.Network("second") != nil {
					t.Error("served before its store opens")
				}
				mend()
				freed := !fault.failed && listed != nil
				if s.addFreed(t.Context()); !freed && s.Network("second") != nil {
					t.Error("served again by itself")
				}
				if !freed {
					if err := s.AddNetwork(t.Context(), "second"); err != nil {
						t.Fatal(err)
					}
				}
				post(t, public+"/second/v3/"+key, blockNumber, http.StatusOK)
				if code, body := get(t, operator+"/readyz"); code != 200 || body != "ready\n" {
					t.Errorf("/readyz after it was added: %d %s", code, body)
				}
			})
		}
		t.Run(fault.name+", alone", func(t *testing.T) {
			c := config.Default()
			c.Data, c.Listen = t.TempDir(), "127.0.0.1:0"
			makeStored(t, c.Data, "evm", "second")
			mend := fault.make(t, store.Dir(c.Data), store.Dir(c.Data).Network("second"))
			defer mend()
			if _, err := Open(t.Context(), c, nil); err == nil || !strings.Contains(err.Error(), fault.says) {
				t.Errorf("the only network: %v", err)
			}
		})
	}
}

// TestWrongConfigurationOfANetwork: a server does not start if the store opens and the configuration does not
// fit, or if there is no store.
func TestWrongConfigurationOfANetwork(t *testing.T) {
	c := config.Default()
	c.Data, c.Listen = t.TempDir(), "127.0.0.1:0"
	makeStored(t, c.Data, "evm", "demo")
	makeStored(t, c.Data, "evm", "second")
	for want, networks := range map[string]map[string]config.Network{
		"it is of family evm": {"demo": {}, "second": {Family: "starknet"}},
		"not found in":        {"demo": {}, "third": {}},
	} {
		c.Networks = networks
		s, err := Open(t.Context(), c, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
		if err == nil {
			_ = errors.Join(s.Stop(t.Context()), s.Close())
		}
	}
}

// TestNotTakenBack: a network that was lent to a command and whose store does not open afterwards is named,
// and the server is not ready.
func TestNotTakenBack(t *testing.T) {
	s, _ := served(t, func(c *config.Config) { makeStored(t, c.Data, "evm", "second") })
	_, release, err := s.LendNetwork(t.Context(), control.Borrowing{Network: "second"})
	if err != nil {
		t.Fatal(err)
	}
	data := store.Dir(s.config.Data)
	mend := storeFaults()[0].make(t, data, data.Network("second"))
	if err := release(t.Context()); err == nil {
		t.Error("a damaged network is taken back")
	}
	if err := s.ready(t.Context(), *s.current.Load()); err == nil || !strings.Contains(err.Error(), "network second is not served: ") {
		t.Errorf("ready: %v", err)
	}
	mend()
	if err := s.AddNetwork(t.Context(), "second"); err != nil {
		t.Fatal(err)
	}
	if err := s.ready(t.Context(), *s.current.Load()); err != nil {
		t.Errorf("ready: %v", err)
	}
}

// TestTakenBackInUse: a script removes a network and imports it anew at once, so another command has its store when
// the server may have it back. That is no failure of the server, which stays ready.
func TestTakenBackInUse(t *testing.T) {
	s, _ := served(t, func(c *config.Config) { makeStored(t, c.Data, "evm", "second") })
	_, release, err := s.LendNetwork(t.Context(), control.Borrowing{Network: "second"})
	if err != nil {
		t.Fatal(err)
	}
	opened, err := store.Dir(s.config.Data).OpenNetwork("second", kv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
	left := s.Unserved(t.Context())
	if len(left) != 1 || left[0].Failed || !strings.Contains(left[0].Why, "the store is in use") || !strings.Contains(left[0].Why, "ashlar network add") {
		t.Errorf("left out: %+v", left)
	}
	if err := s.ready(t.Context(), *s.current.Load()); err != nil {
		t.Errorf("ready: %v", err)
	}
	if err := opened.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.AddNetwork(t.Context(), "second"); err != nil {
		t.Fatal(err)
	}
}

// TestAddFails: a network that is left out, whose store opens and that cannot be served all the same, such as for
// a host that another network has by now, stays left out.
func TestAddFails(t *testing.T) {
	fault := storeFaults()[0]
	var mend func()
	s, _ := served(t, func(c *config.Config) {
		data := store.Dir(c.Data)
		makeStored(t, c.Data, "evm", "second")
		mend = fault.make(t, data, data.Network("second"))
	})
	mend()
	s.Load = func() (config.Config, error) {
		c := *s.current.Load()
		c.Networks = map[string]config.Network{"demo": {Hosts: []string{"own.test"}}, "second": {Hosts: []string{"not a host"}}}
		return c, nil
	}
	if err := s.AddNetwork(t.Context(), "second"); err == nil {
		t.Fatal("a network with a wrong host is served")
	}
	if left := s.Unserved(t.Context()); len(left) != 1 || left[0].Name != "second" || !left[0].Failed {
		t.Errorf("left out: %+v", left)
	}
}

// TestNotWantedBack: a network that was lent to a command is not missed if the configuration no longer has it
// afterwards, or if it is served already.
func TestNotWantedBack(t *testing.T) {
	s, _ := served(t, func(c *config.Config) { makeStored(t, c.Data, "evm", "second") })
	_, release, err := s.LendNetwork(t.Context(), control.Borrowing{Network: "second"})
	if err != nil {
		t.Fatal(err)
	}
	s.Load = func() (config.Config, error) {
		c := *s.current.Load()
		c.Networks = map[string]config.Network{"demo": {}}
		return c, nil
	}
	if err := release(t.Context()); err == nil {
		t.Error("a network that the configuration does not have is served")
	}
	if left := s.Unserved(t.Context()); len(left) != 0 {
		t.Errorf("left out: %+v", left)
	}
}
