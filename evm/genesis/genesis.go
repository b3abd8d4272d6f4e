// Package genesis provides the first block of an EVM chain: the rules of the
// chain, the header of block 0 and the state that it begins with.
//
// There are two sources: the public networks, built in, and genesis files in
// the JSON that geth and Besu read. A file is read strictly. What is missing, given
// twice or out of range is refused with the path of the field and the line it is on.
// So is an unknown setting that may be a fork or names other rules: ignoring it would
// make another chain, which shows only at the first block whose root differs. Other
// unknown fields are ignored with a warning.
package genesis

import (
	"fmt"
	"os"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/params"
)

// Names lists the networks that Builtin knows.
func Names() []string { return []string{"mainnet", "sepolia", "holesky", "hoodi"} }

// Builtin returns the genesis of a public network, and false for a name that is
// not one of Names. Its Config is shared and must not be changed.
func Builtin(name string) (*core.Genesis, bool) {
	switch name {
	case "mainnet":
		return core.DefaultGenesisBlock(), true
	case "sepolia":
		return core.DefaultSepoliaGenesisBlock(), true
	case "holesky":
		return holesky(), true
	case "hoodi":
		return core.DefaultHoodiGenesisBlock(), true
	}
	return nil, false
}

// Schedule returns the configuration of the public network whose genesis block has a
// hash. An archive may have been made before a fork of its network was scheduled.
func Schedule(block common.Hash) (*params.ChainConfig, bool) {
	switch block {
	case params.MainnetGenesisHash:
		return params.MainnetChainConfig, true
	case params.SepoliaGenesisHash:
		return params.SepoliaChainConfig, true
	case params.HoodiGenesisHash:
		return params.HoodiChainConfig, true
	}
	return nil, false // Holesky's forks have all come
}

// Load returns the genesis of a public network by its name, or reads the genesis
// file at that path. A name of Names wins over a file of the same name. Warnings are
// those of [Parse].
func Load(nameOrPath string) (g *core.Genesis, warnings []string, err error) {
	if g, ok := Builtin(nameOrPath); ok {
		return g, nil, nil
	}
	data, err := os.ReadFile(nameOrPath)
	if err != nil {
		return nil, nil, fmt.Errorf("genesis: %w (want one of %s, or the path of a genesis file)",
			err, strings.Join(Names(), ", "))
	}
	if g, warnings, err = Parse(data); err != nil {
		return nil, nil, fmt.Errorf("genesis file %s: %w", nameOrPath, err)
	}
	return g, warnings, nil
}
