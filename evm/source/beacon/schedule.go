package beacon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"ashlar/evm/source/beacon/lightclient"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// never is the epoch of a fork that is not scheduled.
const never = math.MaxUint64

// chain asks the node for what a light client must know of its chain.
func (n *Node) chain(ctx context.Context) (*lightclient.Chain, error) {
	var genesis struct {
		Data struct {
			Time uint64      `json:"genesis_time,string"`
			Root common.Hash `json:"genesis_validators_root"`
		} `json:"data"`
	}
	if err := n.get(ctx, &genesis, nil, "beacon", "genesis"); err != nil {
		return nil, fmt.Errorf("genesis: %w", err)
	}
	var spec struct {
		Data map[string]json.RawMessage `json:"data"`
	}
	if err := n.get(ctx, &spec, nil, "config", "spec"); err != nil {
		return nil, fmt.Errorf("specification: %w", err)
	}
	chain, err := readSpec(spec.Data)
	if err != nil {
		return nil, fmt.Errorf("specification: %w", err)
	}
	chain.GenesisTime, chain.GenesisValidatorsRoot = genesis.Data.Time, genesis.Data.Root
	return chain, nil
}

// spec is what a node says of its chain's constants. Most values are texts.
type spec map[string]json.RawMessage

// text returns a value, "" if it is missing or no text.
func (s spec) text(name string) (text string) {
	_ = json.Unmarshal(s[name], &text)
	return text
}

// number returns a value between two bounds.
func (s spec) number(name string, least, most uint64) (uint64, error) {
	n, err := strconv.ParseUint(s.text(name), 10, 64)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s is %q (want a number from %d to %d)", name, s.text(name), least, most)
	}
	return n, nil
}

// readSpec returns the chain with some constants, without its genesis.
func readSpec(constants spec) (*lightclient.Chain, error) {
	const hour = 3600
	milliseconds, err := constants.number("SLOT_DURATION_MS", 100, hour*1000)
	if err != nil {
		seconds, err := constants.number("SECONDS_PER_SLOT", 1, hour)
		if err != nil {
			return nil, err
		}
		milliseconds = 1000 * seconds
	}
	chain := &lightclient.Chain{SlotTime: time.Duration(milliseconds) * time.Millisecond}
	if chain.SlotsPerEpoch, err = constants.number("SLOTS_PER_EPOCH", 1, 1<<16); err != nil {
		return nil, err
	}
	if err := constants.addFork(chain, "GENESIS", 0); err != nil {
		return nil, err
	}
	for name := range constants {
		fork, ok := strings.CutSuffix(name, "_FORK_EPOCH")
		if !ok {
			continue
		}
		if !isForkName(fork) {
			return nil, fmt.Errorf("invalid fork name %q (want upper case)", fork)
		}
		epoch, err := constants.number(name, 0, never)
		if err == nil && epoch < never {
			err = constants.addFork(chain, fork, epoch)
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(chain.Forks, func(a, b lightclient.Fork) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), lightclient.CompareForks(a.Name, b.Name))
	})
	return chain, checkForks(chain.Forks)
}

// checkForks checks that forks follow each other as this release knows them, and that each has a
// version of its own. Signatures bind the versions alone: with two names for one, a node could
// choose where a signed block has its values.
func checkForks(forks []lightclient.Fork) error {
	names, versions := make(map[string]bool), make(map[[4]byte]string)
	for i, fork := range forks {
		if names[fork.Name] {
			return fmt.Errorf("the fork %s is named twice (want each once)", fork.Name)
		}
		if other, ok := versions[fork.Version]; ok {
			return fmt.Errorf("the forks %s and %s both have the version %#x (want one for each)", other, fork.Name, fork.Version)
		}
		if i > 0 && lightclient.KnowsFork(fork.Name) && lightclient.CompareForks(forks[i-1].Name, fork.Name) > 0 {
			return fmt.Errorf("the fork %s at epoch %d follows %s (want the order of the specification)", fork.Name, fork.Epoch, forks[i-1].Name)
		}
		names[fork.Name], versions[fork.Version] = true, fork.Name
	}
	return nil
}

// isForkName reports whether a constant's name may begin so: in upper case, as specifications and
// clients have them, so that no fork has two names.
func isForkName(name string) bool {
	return name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

func (s spec) addFork(chain *lightclient.Chain, name string, epoch uint64) error {
	fork := lightclient.Fork{Name: strings.ToLower(name), Epoch: epoch}
	if name == "GENESIS" {
		fork.Name = "phase0"
	}
	if err := hexutil.UnmarshalFixedText("fork version", []byte(s.text(name+"_FORK_VERSION")), fork.Version[:]); err != nil {
		return fmt.Errorf("%s_FORK_VERSION: %w", name, err)
	}
	chain.Forks = append(chain.Forks, fork)
	return nil
}

// errOtherChain means that a node is of another chain, or has another schedule.
var errOtherChain = errors.New("the node is of another chain")

// compare returns an error if a chain is not the known one. It may have later forks, after the last
// known one.
func compare(chain, known *lightclient.Chain) error {
	switch {
	case known == nil:
		return nil
	case chain.GenesisValidatorsRoot != known.GenesisValidatorsRoot:
		return fmt.Errorf("%w: its genesis validators root is %#x, expected %#x", errOtherChain, chain.GenesisValidatorsRoot, known.GenesisValidatorsRoot)
	case chain.GenesisTime != known.GenesisTime || chain.SlotTime != known.SlotTime || chain.SlotsPerEpoch != known.SlotsPerEpoch:
		return fmt.Errorf("%w: its genesis is at %d, with %d slots of %v in an epoch, expected %d, %d and %v", errOtherChain,
			chain.GenesisTime, chain.SlotsPerEpoch, chain.SlotTime, known.GenesisTime, known.SlotsPerEpoch, known.SlotTime)
	}
	for _, fork := range known.Forks {
		if !slices.Contains(chain.Forks, fork) {
			return fmt.Errorf("%w: it does not have the fork %s at epoch %d with version %#x", errOtherChain, fork.Name, fork.Epoch, fork.Version)
		}
	}
	if len(known.Forks) == 0 {
		return nil
	}
	last := known.Forks[len(known.Forks)-1]
	for _, fork := range chain.Forks {
		later := fork.Epoch > last.Epoch && lightclient.CompareForks(fork.Name, last.Name) > 0
		if !later && !slices.Contains(known.Forks, fork) {
			return fmt.Errorf("%w: it has the fork %s at epoch %d (want additional forks after %s at epoch %d)", errOtherChain, fork.Name, fork.Epoch, last.Name, last.Epoch)
		}
	}
	return nil
}
