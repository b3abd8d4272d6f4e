package evm

import "github.com/ethereum/go-ethereum/params"

// defaultEpoch is the epoch of a clique chain whose configuration has none, as in go-ethereum.
const defaultEpoch = 30_000

// CliqueEpoch returns the number of blocks from one checkpoint of a clique chain to the next, 0 for other
// chains. The header of a checkpoint lists all signers. Headers between checkpoints have votes only, so who may
// sign a block follows from a checkpoint and all headers after it.
func CliqueEpoch(config *params.ChainConfig) uint64 {
	switch {
	case config.Clique == nil:
		return 0
	case config.Clique.Epoch == 0:
		return defaultEpoch
	}
	return config.Clique.Epoch
}
