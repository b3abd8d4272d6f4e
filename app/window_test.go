package app

import (
	"strings"
	"testing"

	"ashlar/app/config"
	"ashlar/app/store"
	evm "ashlar/evm/network"
	"ashlar/history/retention"
	"ashlar/internal/await"
)

// TestWindow: a network that had all history and gets a window is ready while older history is
// removed, and metrics and status show the window.
func TestWindow(t *testing.T) {
	s, key := served(t, func(c *config.Config) {
		f := Families().Default()
		demo, err := f.Demo()
		if err != nil {
			t.Fatal(err)
		}
		place, err := Place(t.Context(), store.Dir(c.Data), f, demo.Name())
		if err == nil {
			err = demo.Create(t.Context(), place, 20)
		}
		if err != nil {
			t.Fatal(err)
		}
		entries := &evm.Entries{Retention: retention.Window{Proofs: 4, State: 8, History: 12}}
		c.Networks = map[string]config.Network{"demo": config.Network{}.With(evm.Family{}, entries)}
	})
	operator, url := "http://"+s.operator.listener.Addr().String(), "http://"+s.server.Addr().String()+"/v3/"+key
	const first = 13
	var metrics string
	await.Until(t, "the window to move", func() bool {
		_, metrics = get(t, operator+"/metrics")
		return strings.Contains(metrics, `ashlar_retention_removing{network="demo"} 1`) // for a minute it waits for requests that have begun
	})
	for _, want := range []string{
		`ashlar_first_block{network="demo"} 0`, // 256 blocks before the state stay
		`ashlar_first_state_block{network="demo"} 13`, `ashlar_first_proof_block{network="demo"} 17`,
		`ashlar_retention_removed_rows_total{network="demo"} 0`, `ashlar_ready{network="demo"} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("not in the metrics: %s", want)
		}
	}
	if status, body := get(t, operator+"/readyz"); status != 200 {
		t.Errorf("it is not ready: %d %s", status, body)
	}
	got, err := s.status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := got.(Status).Networks[0]; n.FirstState != first || n.FirstProof != 17 || n.NotReady != "" || n.Retention == nil || n.Retention.Proofs != 4 || n.Retention.State != 8 || n.Retention.History != 12 || !n.Retention.Removing {
		t.Errorf("the status is %+v %+v", n, n.Retention)
	}
	for block, want := range map[string]string{"0xc": "historical state is not available at block 12 (the first block with state is 13)", "0xd": ""} {
		a := post(t, url, `{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x00000000000000000000000000000000000000aa","`+block+`"]}`, 200)
		if want == "" && len(a.Error) > 0 || !strings.Contains(string(a.Error), want) {
			t.Errorf("block %s: %s %s", block, a.Result, a.Error)
		}
	}
}
