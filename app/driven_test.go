package app

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ashlar/app/config"
	evm "ashlar/evm/network"
	"ashlar/internal/node"
)

// A network with an engine is driven by whoever knows the secret, and says so.
func TestDrivenByAConsensusClient(t *testing.T) {
	address, err := node.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	s, _ := served(t, func(c *config.Config) {
		entries := &evm.Entries{Engine: evm.Engine{Listen: address}}
		c.Networks = map[string]config.Network{"demo": config.Network{}.With(evm.Family{}, entries)}
	})
	file := filepath.Join(s.config.Data, "engine", "demo.jwt")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the secret: %v, %v", info, err)
	}
	client, err := node.NewEngineClient("http://"+address, file)
	if err != nil {
		t.Fatal(err)
	}
	metric := func(want string) {
		t.Helper()
		if _, text := get(t, "http://"+s.operator.listener.Addr().String()+"/metrics"); !strings.Contains(text, want) {
			t.Errorf("not in the metrics: %s", want)
		}
	}
	metric(`ashlar_consensus_heard_timestamp_seconds{call="forkchoice",network="demo"} 0`)
	var genesis struct{ Hash string }
	if err := client.Call(t.Context(), &genesis, "eth_getBlockByNumber", "0x0", false); err != nil {
		t.Fatal(err)
	}
	zero := "0x" + strings.Repeat("0", 64)
	unknown := "0x" + strings.Repeat("12", 32)
	for _, test := range []struct{ head, want string }{{genesis.Hash, "VALID"}, {unknown, "SYNCING"}} {
		var answer struct{ PayloadStatus struct{ Status string } }
		state := map[string]string{"headBlockHash": test.head, "safeBlockHash": zero, "finalizedBlockHash": zero}
		if err := client.Call(t.Context(), &answer, "engine_forkchoiceUpdatedV3", state, nil); err != nil || answer.PayloadStatus.Status != test.want {
			t.Errorf("head %s: %+v, %v, expected %s", test.head, answer, err, test.want)
		}
	}
	status, err := s.networks[0].Status(t.Context())
	if err != nil || status.Consensus == nil || status.Consensus.Forkchoice == 0 || status.Consensus.Payload != 0 || status.Source != nil {
		t.Errorf("the status is %+v, %v", status, err)
	}
	var syncing struct{ CurrentBlock string }
	if err := client.Call(t.Context(), &syncing, "eth_syncing"); err != nil || syncing.CurrentBlock != "0x0" {
		t.Errorf("with a head that nobody has: %+v, %v", syncing, err)
	}
	metric(`ashlar_consensus_heard_timestamp_seconds{call="forkchoice",network="demo"} ` + strconv.FormatFloat(float64(status.Consensus.Forkchoice), 'g', -1, 64))
	metric(`ashlar_calls_total{code="ok",method="engine_forkchoiceUpdatedV3",network="demo"} 2`)
	metric(`ashlar_call_seconds_count{method="engine_forkchoiceUpdatedV3",network="demo"} 2`)
	metric(`ashlar_consensus_answers_total{call="forkchoice",network="demo",status="valid"} 1`)
	metric(`ashlar_consensus_answers_total{call="forkchoice",network="demo",status="syncing"} 1`)
	metric(`ashlar_consensus_answers_total{call="payload",network="demo",status="invalid"} 0`)
	metric(`ashlar_consensus_held_bytes{network="demo"} 0`)
	if status, _ := get(t, "http://"+address); status != http.StatusUnauthorized {
		t.Errorf("a request without a token got status %d", status)
	}
	metric(`ashlar_consensus_refused_total{network="demo",reason="token"} 1`)
	metric(`ashlar_consensus_refused_total{network="demo",reason="memory"} 0`)
	metric(`ashlar_behind_blocks{network="demo"} 0`)
}
