package proven

import (
	"encoding/json"
	"fmt"
	"math"

	"ashlar/evm/source/node"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
)

// mostPriceExponent bounds the exponent of the price of blobs, e^(excess/fraction), with the greatest fraction
// of a chain. With a higher one the price has more than 256 bits.
const mostPriceExponent = 178

// parseHeader decodes the answer to a question for the header with a number, and checks it.
func (r *Remote) parseHeader(answer json.RawMessage, number uint64) (*types.Header, error) {
	header, err := node.ParseHeader(answer)
	if err == nil {
		err = r.checkHeader(header, number)
	}
	return header, err
}

// checkHeader returns a lie unless a header is that of the block with a number, and has what is computed
// with by the rules of its time. Which head is right cannot be proven, so a node can make up headers. The
// price of blobs is exponential in their excess: with enough of it, computing it would not end.
func (r *Remote) checkHeader(header *types.Header, number uint64) error {
	what := fmt.Sprintf("header %d", number)
	if err := header.SanityCheck(); err != nil {
		return lie(what, "%w", err)
	}
	if got := header.Number.Uint64(); got != number {
		return lie(what, "its number is %d", got)
	}
	if number == 0 {
		return nil // the chain's own
	}
	if limit := header.GasLimit; limit < params.MinGasLimit || limit > params.MaxGasLimit || header.GasUsed > limit {
		return lie(what, "its gas limit is %d, used are %d (want a limit of %d to %d)", limit, header.GasUsed, params.MinGasLimit, uint64(params.MaxGasLimit))
	}
	if has, wants := header.BaseFee != nil, r.chain.IsLondon(header.Number); has != wants {
		return lie(what, "it has a base fee: %t, want %t", has, wants)
	}
	wants := r.chain.IsCancun(header.Number, header.Time)
	if (header.ExcessBlobGas != nil) != wants || (header.BlobGasUsed != nil) != wants {
		return lie(what, "it has excess blob gas: %t, and blob gas: %t, want %t", header.ExcessBlobGas != nil, header.BlobGasUsed != nil, wants)
	}
	// The excess after the block is that before it and what the block used.
	if most := mostExcess(r.chain); wants && max(*header.ExcessBlobGas, *header.BlobGasUsed) > most {
		return lie(what, "its excess blob gas is %d, used are %d (want at most %d)", *header.ExcessBlobGas, *header.BlobGasUsed, most)
	}
	return nil
}

// mostExcess is more excess blob gas than any block of a chain has.
func mostExcess(chain *params.ChainConfig) (most uint64) {
	schedule := chain.BlobScheduleConfig
	if schedule == nil {
		return 0
	}
	for _, blobs := range []*params.BlobConfig{
		schedule.Cancun, schedule.Prague, schedule.BPO1, schedule.BPO2, schedule.BPO3, schedule.BPO4, schedule.BPO5,
	} {
		if blobs != nil {
			most = max(most, mostPriceExponent*min(blobs.UpdateFraction, math.MaxUint64/mostPriceExponent))
		}
	}
	return most
}
