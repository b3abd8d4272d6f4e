package execute

import (
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/params"
)

// A witness has the header of each block whose hash is read, as geth's and reth's have: reth's
// stateless execution knows the hashes of these alone.
func TestWitnessHasHeadersOfReadHashes(t *testing.T) {
	c := newFailingChain(t, &params.ChainConfig{ChainID: big.NewInt(1), HomesteadBlock: new(big.Int), Ethash: new(params.EthashConfig), TerminalTotalDifficulty: big.NewInt(1 << 60)})
	w, err := c.executor.Witness(t.Context(), c.parent, c.block)
	if err != nil {
		t.Fatal(err)
	}
	var got []uint64
	for _, header := range w.Headers {
		got = append(got, header.Number.Uint64())
	}
	last := c.block.NumberU64()
	if want := []uint64{last - 3, last - 2, last - 1}; !slices.Equal(got, want) {
		t.Errorf("headers %d, expected %d: the block reads the hash of block %d", got, want, last-3)
	}
}
