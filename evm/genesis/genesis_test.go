package genesis

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

func TestBuiltinHashes(t *testing.T) {
	want := map[string]string{
		"mainnet": "0xd4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3",
		"sepolia": "0x25a5cc106eea7138acab33231d7160d69cb777ee0c2c553fcddf5138993e6dd9",
		"holesky": "0xb5f7f912443c940f21fd611f12828d75b534364ed9e95ca4e307729a4661bde4",
		"hoodi":   "0xbbe312868b376a3001692a646dd2d7d1e4406380dfd86b98aa8a34d1557c971b",
	}
	for _, name := range Names() {
		g, ok := Builtin(name)
		if !ok {
			t.Fatalf("%s is listed but not built in", name)
		}
		if got := g.ToBlock().Hash(); got != common.HexToHash(want[name]) {
			t.Errorf("%s: genesis hash is %s, want %s", name, got, want[name])
		}
		if err := g.Config.CheckConfigForkOrder(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"mainnet", "sepolia", "hoodi"} {
		g, _ := Builtin(name)
		if config, ok := Schedule(common.HexToHash(want[name])); !ok || config.String() != g.Config.String() {
			t.Errorf("%s: the schedule is %v, want %v", name, config, g.Config)
		}
	}
	if _, ok := Schedule(common.Hash{1}); ok {
		t.Error("a chain that is not public has a schedule")
	}
	if _, ok := Builtin("ropsten"); ok {
		t.Error("ropsten is not built in, but found")
	}
}
