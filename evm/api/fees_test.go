package api_test

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// TestFeeHistoryFollowsTheBlocks compares every range of a fee history with the
// blocks: what a block is said to charge it charges, what the next is foretold
// it charges too, and the extreme percentiles are the least and the greatest tip.
func TestFeeHistoryFollowsTheBlocks(t *testing.T) {
	s := serveMade(t)
	for last := range len(s.blocks) {
		for count := 1; count <= len(s.blocks)+2; count++ {
			var history struct {
				OldestBlock       hexutil.Uint64
				Reward            [][]*hexutil.Big
				BaseFeePerGas     []*hexutil.Big
				GasUsedRatio      []float64
				BaseFeePerBlobGas []*hexutil.Big
				BlobGasUsedRatio  []float64
			}
			s.ask(t, &history, "eth_feeHistory", count, hexutil.Uint64(last), []int{0, 100})
			want := min(count, last+1)
			oldest := last + 1 - want
			if int(history.OldestBlock) != oldest || len(history.Reward) != want || len(history.BaseFeePerGas) != want+1 ||
				len(history.GasUsedRatio) != want || len(history.BaseFeePerBlobGas) != want+1 || len(history.BlobGasUsedRatio) != want {
				t.Fatalf("%d blocks up to %d: %+v", count, last, history)
			}
			for i := range want {
				block := s.blocks[oldest+i]
				least, greatest := new(big.Int), new(big.Int)
				for n, tx := range block.Transactions() {
					tip := tx.EffectiveGasTipValue(block.BaseFee())
					if n == 0 || tip.Cmp(least) < 0 {
						least = tip
					}
					if tip.Cmp(greatest) > 0 {
						greatest = tip
					}
				}
				if r := history.Reward[i]; r[0].ToInt().Cmp(least) != 0 || r[1].ToInt().Cmp(greatest) != 0 {
					t.Errorf("block %d: tips from %v to %v, want %v to %v", oldest+i, r[0], r[1], least, greatest)
				}
				if got, want := history.GasUsedRatio[i], float64(block.GasUsed())/float64(block.GasLimit()); got != want {
					t.Errorf("block %d: gas used %v, want %v", oldest+i, got, want)
				}
			}
			for i, fee := range history.BaseFeePerGas {
				if oldest+i < len(s.blocks) && fee.ToInt().Cmp(s.blocks[oldest+i].BaseFee()) != 0 {
					t.Errorf("block %d: base fee %v, want %v", oldest+i, fee, s.blocks[oldest+i].BaseFee())
				}
			}
		}
	}
}
