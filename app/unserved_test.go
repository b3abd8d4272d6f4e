package app

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"ashlar/app/config"
	"ashlar/app/store"
	"ashlar/chain"
	"ashlar/evm/archive"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/params"
)

// incomplete makes networks that commands have not completed: the state with which one begins
// came in part, another was rewound in part, and to a third one rows were added in part. It
// returns what completes the third.
func incomplete(t *testing.T, data string) (join func()) {
	t.Helper()
	change := func(name string, put func(kv.Store, kv.Batch)) {
		t.Helper()
		opened, err := store.Dir(data).OpenNetwork(name, kv.Options{})
		if err != nil {
			t.Fatal(err)
		}
		batch := opened.NewBatch()
		put(opened, batch)
		if err := errors.Join(opened.Write(t.Context(), batch), opened.Close()); err != nil {
			t.Fatal(err)
		}
	}
	f := Families().Default()
	demo, err := f.Demo()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"demo", "joined", "rewound"} {
		place, err := Place(t.Context(), store.Dir(data), f, name)
		if err == nil {
			err = demo.Create(t.Context(), place, 2)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	change("begun", func(s kv.Store, _ kv.Batch) {
		genesis := &core.Genesis{Config: params.TestChainConfig, Difficulty: big.NewInt(1)}
		if _, err := archive.Begin(t.Context(), s, genesis, archive.Beginning{Ref: chain.Ref{Number: 7, Hash: common.Hash{7}}}); err != nil {
			t.Fatal(err)
		}
	})
	change("joined", func(_ kv.Store, batch kv.Batch) { archive.SetJoining(batch, &archive.Joining{Border: 2, Above: true}) })
	change("rewound", func(_ kv.Store, batch kv.Batch) {
		batch.SetPointer("rewind", append([]byte{0, 0, 0, 0, 0, 0, 0, 1}, make([]byte, 32)...))
		batch.SetPointer(kv.EpochPointer, []byte{0, 0, 0, 0, 0, 0, 0, 1})
	})
	return func() { change("joined", func(_ kv.Store, batch kv.Batch) { archive.SetJoining(batch, nil) }) }
}

// TestUnserved: networks that a command must complete first are left out and named with the
// reason, while another one is served. Once completed and added, they are served too. A server whose
// configuration lists such a network is not ready. One without any other network does not start.
func TestUnserved(t *testing.T) {
	var join func()
	var data string
	s, _ := served(t, func(c *config.Config) { data, join = c.Data, incomplete(t, c.Data) })
	operator := "http://" + s.operator.listener.Addr().String()
	check := func(want ...Unserved) {
		t.Helper()
		status, body := get(t, operator+"/readyz")
		_, metrics := get(t, operator+"/metrics")
		shown, err := s.status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all := shown.(Status).Unserved
		if lines := strings.Count(body, "\n") - 1; status != 200 || lines != len(want) || len(all) != len(want) {
			t.Errorf("%d %s %+v, want %q", status, body, all, want)
		}
		for i, want := range want {
			if i < len(all) && (all[i].Name != want.Name || !strings.HasSuffix(all[i].Why, want.Why) || !strings.Contains(body, "\n"+all[i].String()+"\n")) {
				t.Errorf("%+v and %s, want %+v", all[i], body, want)
			}
			if gauge := `ashlar_ready{network="` + want.Name + `"} 0`; !strings.Contains(metrics, gauge) {
				t.Errorf("not in the metrics: %s", gauge)
			}
		}
	}
	begun := Unserved{Name: "begun", Why: "archive: its first state is not complete: to complete it, run the same `ashlar snapshot load` or `ashlar import --state` again, with the state of block 7 (07000000…)"}
	joined := Unserved{Name: "joined", Why: "archive: a join is not complete: run `ashlar join` again with the same --from, or give it up by `ashlar rewind` with --to 2"}
	rewound := Unserved{Name: "rewound", Why: "archive: a rewind is not complete: to complete it, run `ashlar rewind` with --to 1"}
	check(begun, joined, rewound)
	if err := s.AddNetwork(t.Context(), "joined"); err == nil {
		t.Error("a network is served before it is complete")
	}
	check(begun, joined, rewound)
	held, err := store.Dir(data).OpenNetwork("joined", kv.Options{}) // as the command does that completes it
	if err != nil {
		t.Fatal(err)
	}
	if err := s.AddNetwork(t.Context(), "joined"); !errors.Is(err, kv.ErrInUse) {
		t.Errorf("a network that another process has open: %v, want %v", err, kv.ErrInUse)
	}
	check(begun, joined, rewound)
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	join()
	if err := s.AddNetwork(t.Context(), "joined"); err != nil {
		t.Fatal(err)
	}
	check(begun, rewound)
	if err := store.Dir(data).Remove("rewound"); err != nil {
		t.Fatal(err)
	}
	check(begun)

	c := config.Default()
	c.Data, c.Listen = t.TempDir(), "127.0.0.1:0"
	incomplete(t, c.Data)
	c.Networks = map[string]config.Network{"demo": {}, "begun": {}}
	listed, _, stop := running(t, c)
	if err := listed.ready(t.Context(), c); err == nil || !strings.Contains(err.Error(), "its first state is not complete") {
		t.Errorf("an incomplete network is listed: %v", err)
	}
	stop()
	c.Networks = nil
	for _, name := range []string{"demo", "rewound"} {
		if err := store.Dir(c.Data).Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(t.Context(), c, nil); err == nil || !strings.Contains(err.Error(), begun.Why+"\nnetwork joined is not served") || !strings.HasSuffix(err.Error(), joined.Why) {
		t.Errorf("only incomplete networks: %v", err)
	}
}
