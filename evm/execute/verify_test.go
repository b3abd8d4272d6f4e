package execute

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
)

func TestVerifyMerge(t *testing.T) {
	for _, test := range []struct {
		name     string
		terminal *big.Int
		parent   *big.Int // total difficulty
		block    int64    // difficulty
		refused  string
	}{
		{"work below the terminal difficulty", big.NewInt(100), big.NewInt(99), 5, ""},
		{"work that begins at it", big.NewInt(100), big.NewInt(100), 5, "proof of work after the merge"},
		{"stake at it", big.NewInt(100), big.NewInt(100), 0, ""},
		{"stake above it", big.NewInt(100), big.NewInt(104), 0, ""},
		{"stake below it", big.NewInt(100), big.NewInt(99), 0, "proof of stake before the merge"},
		{"stake from the genesis on", new(big.Int), big.NewInt(1), 0, ""},
		{"work where stake begins with the genesis", new(big.Int), new(big.Int), 1, "proof of work after the merge"},
		{"work on a chain that never merges", nil, big.NewInt(1000), 5, ""},
		{"a total difficulty that is not known", big.NewInt(100), nil, 0, ""},
	} {
		e := &Executor{config: &params.ChainConfig{TerminalTotalDifficulty: test.terminal}}
		err := e.verifyMerge(test.parent, &types.Header{Difficulty: big.NewInt(test.block)})
		if test.refused == "" && err != nil || test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)) {
			t.Errorf("%s: got %v, expected %q", test.name, err, test.refused)
		}
	}
}

// A block of Osaka has at most so many bytes, and one of before has any number.
func TestVerifyBodySize(t *testing.T) {
	osaka := uint64(1000)
	e, err := New(&params.ChainConfig{ChainID: big.NewInt(1), OsakaTime: &osaka, LondonBlock: new(big.Int)})
	if err != nil {
		t.Fatal(err)
	}
	blockOf := func(time uint64, data int) *types.Block {
		tx := types.NewTx(&types.LegacyTx{GasPrice: new(big.Int), Data: make([]byte, data)})
		return types.NewBlockWithHeader(&types.Header{Time: time, Number: big.NewInt(1), Difficulty: new(big.Int)}).WithBody(types.Body{Transactions: types.Transactions{tx}})
	}
	data := params.MaxBlockSize - 1000
	data += params.MaxBlockSize - int(blockOf(osaka, data).Size()) // so that the block has just the size
	for _, test := range []struct {
		name  string
		block *types.Block
		check string
	}{
		{"the greatest size", blockOf(osaka, data), CheckUnclesHash}, // the next check, for which nothing was done
		{"a byte more", blockOf(osaka, data+1), CheckSize},
		{"a byte more before Osaka", blockOf(osaka-1, data+1), CheckUnclesHash},
	} {
		var refused *CheckError
		if err := e.VerifyBody(test.block); !errors.As(err, &refused) || refused.Check != test.check {
			t.Errorf("%s, %d bytes: got %v, expected that it ends with the check %q", test.name, test.block.Size(), err, test.check)
		}
	}
}
