package api_test

import (
	"math/big"
	"testing"

	"ashlar/evm/ingest/ingesttest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/params"
)

// TestSimulatedTypes: a simulated block has no transactions of a type that its rules do not
// know. Its hash and its roots depend on the types.
func TestSimulatedTypes(t *testing.T) {
	const berlin, london, head = 20, 30, 40
	config := *params.AllEthashProtocolChanges // until London, mined
	config.BerlinBlock, config.LondonBlock = big.NewInt(berlin), big.NewInt(london)
	config.ArrowGlacierBlock, config.GrayGlacierBlock = nil, nil
	genesis, blocks := newRandomChain(0).build(t, &config, head)
	s := serve(t, genesis, ingesttest.SourceOf(blocks))

	plain := map[string]any{"to": common.Address{0xaa}}
	listed := map[string]any{"to": common.Address{0xaa}, "accessList": []any{}}
	for _, test := range []struct {
		name   string
		parent uint64
		call   map[string]any
		want   string
	}{
		{"before Berlin", berlin - 2, plain, "0x0"},
		{"before London", london - 2, plain, "0x0"},
		{"before London, with an access list", london - 2, listed, "0x1"},
		{"in London", london - 1, plain, "0x2"},
	} {
		var simulated []struct {
			Transactions []struct{ Type string }
		}
		s.ask(t, &simulated, "eth_simulateV1", map[string]any{
			"blockStateCalls": []any{map[string]any{"calls": []any{test.call}}}, "returnFullTransactions": true,
		}, hexutil.Uint64(test.parent))
		if len(simulated) != 1 || len(simulated[0].Transactions) != 1 {
			t.Fatalf("%s: simulated %+v", test.name, simulated)
		}
		if got := simulated[0].Transactions[0].Type; got != test.want {
			t.Errorf("%s: a transaction of type %s, want %s", test.name, got, test.want)
		}
	}
}
