package conformance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"ashlar/internal/vectors"
)

// TestImportChains imports whole chains, which verifies every root of every block, and compares the head.
func TestImportChains(t *testing.T) {
	tests := []struct {
		name    string
		genesis string // path below chains/, or a built-in network
		file    string
		number  uint64
		head    string
	}{
		{"sync-3000", "chains/sync-3000/genesis.json", "chains/sync-3000/chain.rlp",
			3000, "0xd4a8090b9de16baae99540d32b02b4d970428fb1d07b4ea200bc6bb7894034a0"},
		{"prague-with-state", "chains/prague-with-state/genesis.json", "chains/prague-with-state/chain.rlp",
			600, "0xce8d86ba17a2ec303155f0e264c58a4b8f94ce3436274cf1924f91acdb7502d0"},
		{"reorg-branches/blocks_1024", "chains/reorg-branches/genesis.json", "chains/reorg-branches/blocks_1024_td_135112316.rlp",
			1024, "0x2fa54c75120b03b657e995715fba21f8f93b6dd4c42e92f1216ff0df0abc76e7"},
		{"era1/mainnet", "mainnet", "era1/mainnet-00000-5ec1ffb8.era1",
			8191, "0xa6860fefa339c963e1bb622526cc8dd4344eedd2a9b969e74de5cccc445fbed4"},
		{"era1/sepolia", "sepolia", "era1/sepolia-00000-643a00f7.era1",
			8191, "0x8e3e7dc9ef199c05683417b4aa572f0b7a8bcfafca7edb6045baabc01aa4fb0c"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			file := vectors.Path(t, filepath.FromSlash(test.file))
			genesis := test.genesis
			if filepath.Ext(genesis) == ".json" {
				genesis = mergedGenesis(t, vectors.Path(t, filepath.FromSlash(genesis)))
			}
			s := importChain(t, genesis, file)
			s.importFiles(t, genesis, file) // a second time, which must change nothing
			c := s.serve(t)
			checkHead(t, c, test.number, common.HexToHash(test.head))
			if filepath.Base(file) == "chain.rlp" {
				checkHeadBlock(t, filepath.Join(filepath.Dir(file), "headblock.json"), latest(t, c))
			}
		})
	}
}

// checkHeadBlock compares the head with the recorded head block of the chain.
func checkHeadBlock(t *testing.T, file string, got header) {
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var want header
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("head: got %+v, want %+v", got, want)
	}
}

// mergedGenesis returns a genesis file with a terminal total difficulty. If the original has none, it is
// set to one that the chain never reaches.
func mergedGenesis(t *testing.T, file string) string {
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var genesis map[string]any
	if err := json.Unmarshal(raw, &genesis); err != nil {
		t.Fatal(err)
	}
	config, ok := genesis["config"].(map[string]any)
	if _, named := config["terminalTotalDifficulty"]; named || !ok {
		return file
	}
	config["terminalTotalDifficulty"] = 1 << 50
	if raw, err = json.Marshal(genesis); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "genesis.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
