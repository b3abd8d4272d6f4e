// Package demo is the traffic of the demo EVM network: its genesis, its contracts
// and, block for block, the signed transactions and the other things that a
// block builder puts into a block.
//
// Everything follows from the [Config] alone: the same configuration gives the
// same keys, contracts, transactions and, built by any correct block builder,
// the same block hashes. The keys are made from labels that anyone can read:
// they are for the demo network only and worth nothing anywhere else.
//
// A [Network] is what stays the same (genesis, accounts, contracts); a [Traffic]
// is one run through its blocks. Traffic needs no state of the chain: it keeps
// account of nonces, allowances and owners itself, and every transaction that it
// gives is valid where it stands. Those that are meant to fail say so.
//
// The package builds no blocks. Package demo/reference does, with go-ethereum's
// chain maker, for tests and for making chain files.
package demo

import (
	"fmt"

	"github.com/ethereum/go-ethereum/params"
)

const (
	// GenesisTime is the timestamp of block 0, 2025-06-15 15:06:40 UTC.
	GenesisTime = 1_750_000_000
	// BlockSeconds is the time between two blocks of the past.
	BlockSeconds = 12
)

// Timestamp is the time of a block of the network's past: a fixed step after
// its parent's. Blocks made while the network is served carry the clock's time
// instead; no transaction depends on it.
func Timestamp(number uint64) uint64 {
	return GenesisTime + BlockSeconds*number
}

// Config says how large and how busy a network is. Two networks with equal
// configurations are equal.
type Config struct {
	ChainID uint64
	Seed    uint64

	Senders int // accounts that send transactions, at least 4
	Holders int // further accounts that only receive, at least 1
	Tokens  int // ERC-20 contracts, at least 2; the first is the hot one

	// MeanTransactions is the mean number of transactions in a block. Single blocks have
	// from none to a little over three times as many; fewer in Amsterdam, where a block has
	// room for less new state.
	MeanTransactions int

	// GasLimit of every block. Blocks hold fewer transactions than the mean
	// asks for where they do not fit.
	GasLimit uint64

	// AmsterdamBlock is the first block of Amsterdam, 0 for never. Those before it are of
	// Osaka.
	AmsterdamBlock uint64

	// SteadyFee fills blocks with gas (not with work) whenever the base fee is
	// below 1 gwei, so that it moves around there. Without it, blocks this
	// small let the base fee sink to 7 wei. One transaction fills a block, so
	// GasLimit may be at most 24,000,000 then.
	SteadyFee bool
}

// Default is the network that the demo serves.
func Default() Config {
	return Config{
		ChainID:          1337001,
		Seed:             1,
		Senders:          64,
		Holders:          400,
		Tokens:           6,
		MeanTransactions: 25,
		GasLimit:         16_000_000,
		AmsterdamBlock:   30,
		SteadyFee:        true,
	}
}

// Dense is a network for measurements: many accounts, and blocks as full as asked.
func Dense(meanTransactions int) Config {
	c := Default()
	c.Senders = 2000
	c.Holders = 6000
	c.Tokens = 24
	c.MeanTransactions = meanTransactions
	c.GasLimit = 60_000_000
	c.SteadyFee = false
	return c
}

const (
	minSenders  = 4
	minTokens   = 2
	minGasLimit = 4 * actionGas

	// The network's contracts are deployed before the first block that may be of Amsterdam,
	// whose blocks would have no room for their code.
	firstFork            = 20
	minGasLimitAmsterdam = 2 * (actionGas + actionState*params.CostPerStateByte)

	// Half of a block is the target above which the base fee rises.
	maxGasLimitSteady = 2 * maxFill
)

func (c Config) check() error {
	switch {
	case c.ChainID == 0:
		return fmt.Errorf("demo: chain id is 0, expected a positive number")
	case c.Senders < minSenders:
		return fmt.Errorf("demo: %d senders, expected at least %d", c.Senders, minSenders)
	case c.Holders < 1:
		return fmt.Errorf("demo: %d holders, expected at least 1", c.Holders)
	case c.Tokens < minTokens:
		return fmt.Errorf("demo: %d tokens, expected at least %d", c.Tokens, minTokens)
	case c.MeanTransactions < 1:
		return fmt.Errorf("demo: %d transactions a block, expected at least 1", c.MeanTransactions)
	case c.AmsterdamBlock > 0 && c.AmsterdamBlock < firstFork:
		return fmt.Errorf("demo: Amsterdam begins with block %d (want 0, or at least %d: contracts are deployed before)", c.AmsterdamBlock, uint64(firstFork))
	case c.GasLimit < minGasLimit || c.GasLimit > params.MaxGasLimit:
		return fmt.Errorf("demo: gas limit is %d, expected %d to %d", c.GasLimit, uint64(minGasLimit), uint64(params.MaxGasLimit))
	case c.AmsterdamBlock > 0 && c.GasLimit < minGasLimitAmsterdam:
		return fmt.Errorf("demo: gas limit is %d (want at least %d with blocks of Amsterdam)", c.GasLimit, uint64(minGasLimitAmsterdam))
	case c.SteadyFee && c.GasLimit > maxGasLimitSteady:
		return fmt.Errorf("demo: gas limit is %d (want at most %d with a steady fee)", c.GasLimit, uint64(maxGasLimitSteady))
	}
	return nil
}
