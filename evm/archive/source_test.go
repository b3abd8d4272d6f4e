package archive

import (
	"context"
	"math/big"
	"testing"

	"ashlar/evm"
)

// settlingSource has the blocks of a chain. Those that are asked for settle in the archive meanwhile, as in an import that
// is under way.
type settlingSource struct {
	Source
	chain   Chain
	archive *Archive
}

func (s *settlingSource) Block(ctx context.Context, number uint64) (*evm.Delta, error) {
	settled, _ := s.archive.Settled()
	return s.chain.blocks[number], s.archive.Append(ctx, s.chain.blocks[settled.Number+1:number+1]...)
}

// TestTotalDifficultyOfSettling reads a block that settles while it is fetched from a source, which does not know the total
// difficulty.
func TestTotalDifficultyOfSettling(t *testing.T) {
	chain := GrowChain(t, 1500, 9)
	a, err := Open(t.Context(), chain.Between(t, 0, 3))
	if err != nil {
		t.Fatal(err)
	}
	history := a.CompletedBy(&settlingSource{chain: chain, archive: a})
	for _, number := range []uint64{5, 9} {
		var got *big.Int
		for range 2 {
			header, err := history.Header(t.Context(), number)
			if err != nil {
				t.Fatal(err)
			}
			got = header.TotalDifficulty
			if got != nil && got.Int64() != 7*int64(number+1) {
				t.Errorf("block %d has the total difficulty %v, want %d", number, got, 7*(number+1))
			}
		}
		if got == nil {
			t.Errorf("the total difficulty of block %d, which is stored, is not known", number)
		}
	}
}
