package execute

import (
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
