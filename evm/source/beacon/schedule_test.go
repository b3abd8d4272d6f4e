package beacon

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"ashlar/evm/source/beacon/lightclient"

	"github.com/ethereum/go-ethereum/params"
)

// constants are what an honest node says of a chain's constants.
func constants(chain *lightclient.Chain) map[string]string {
	all := map[string]string{"SECONDS_PER_SLOT": fmt.Sprint(chain.SlotTime.Seconds()), "SLOTS_PER_EPOCH": fmt.Sprint(chain.SlotsPerEpoch)}
	for _, fork := range chain.Forks {
		name := strings.ToUpper(fork.Name)
		if fork.Name == "phase0" {
			name = "GENESIS"
		} else {
			all[name+"_FORK_EPOCH"] = fmt.Sprint(fork.Epoch)
		}
		all[name+"_FORK_VERSION"] = fmt.Sprintf("%#x", fork.Version)
	}
	return all
}

// A node's schedule has each fork once, in the order of forks, with a version of its own; of a
// known chain it may add later forks alone. Else a node could say which fork a block is of whose
// signatures are valid, and so where its values are.
func TestSchedule(t *testing.T) {
	never := fmt.Sprint(uint64(never))
	for name, test := range map[string]struct {
		changes map[string]string // of mainnet's constants; empty: removed
		want    string            // part of the error; empty: there is none
		made    bool              // the error is of any chain, not of mainnet alone
	}{
		"as known":                   {},
		"unscheduled fork":           {map[string]string{"GLOAS_FORK_EPOCH": never, "GLOAS_FORK_VERSION": "0x07000000"}, "", false},
		"later fork":                 {map[string]string{"GLOAS_FORK_EPOCH": "500000", "GLOAS_FORK_VERSION": "0x07000000"}, "", false},
		"unknown later forks":        {map[string]string{"HEZE_FORK_EPOCH": "500000", "HEZE_FORK_VERSION": "0x08000000", "EIP1_FORK_EPOCH": "600000", "EIP1_FORK_VERSION": "0x09000000"}, "", false},
		"missing fork":               {map[string]string{"FULU_FORK_EPOCH": ""}, "does not have the fork fulu", false},
		"later epoch":                {map[string]string{"FULU_FORK_EPOCH": "411393"}, "does not have the fork fulu", false},
		"second capella":             {map[string]string{"Capella_FORK_EPOCH": "411400", "Capella_FORK_VERSION": "0x06000000"}, `"Capella"`, true},
		"second capella, new number": {map[string]string{"capella_FORK_EPOCH": "411400", "capella_FORK_VERSION": "0x06000001"}, `"capella"`, true},
		"no name":                    {map[string]string{"_FORK_EPOCH": "411400", "_FORK_VERSION": "0x06000001"}, `""`, true},
		"second genesis":             {map[string]string{"GENESIS_FORK_EPOCH": "411400"}, "phase0", true},
		"second phase0":              {map[string]string{"PHASE0_FORK_EPOCH": "411400", "PHASE0_FORK_VERSION": "0x06000001"}, "phase0", true},
		"used version":               {map[string]string{"GLOAS_FORK_EPOCH": "500000", "GLOAS_FORK_VERSION": "0x06000000"}, "version 0x06000000", true},
		"capella after deneb":        {map[string]string{"CAPELLA_FORK_EPOCH": "269569"}, "capella", true},
		"unknown fork before":        {map[string]string{"EIP1_FORK_EPOCH": "300000", "EIP1_FORK_VERSION": "0x09000000"}, "eip1", true},
		"fork of the last epoch":     {map[string]string{"GLOAS_FORK_EPOCH": "411392", "GLOAS_FORK_VERSION": "0x07000000"}, "gloas", false},
	} {
		known := Public(params.MainnetGenesisHash)
		s := spec{}
		all := constants(known)
		for name, value := range test.changes {
			all[name] = value
		}
		for name, value := range all {
			if value != "" {
				s[name], _ = json.Marshal(value)
			}
		}
		chain, err := readSpec(s)
		if test.made != (err != nil) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			chain.GenesisTime, chain.GenesisValidatorsRoot = known.GenesisTime, known.GenesisValidatorsRoot
			err = compare(chain, known)
		}
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, expected %q", name, err, test.want)
		}
	}
}

// A node of another chain is told by each of its constants.
func TestOtherConstants(t *testing.T) {
	known := Public(params.MainnetGenesisHash)
	for name, change := range map[string]func(*lightclient.Chain){
		"nothing": func(*lightclient.Chain) {}, "genesis": func(c *lightclient.Chain) { c.GenesisValidatorsRoot[0]++ },
		"genesis time": func(c *lightclient.Chain) { c.GenesisTime++ }, "slot time": func(c *lightclient.Chain) { c.SlotTime /= 2 },
		"epoch": func(c *lightclient.Chain) { c.SlotsPerEpoch++ },
	} {
		other := *known
		change(&other)
		if err := compare(&other, known); errors.Is(err, errOtherChain) != (name != "nothing") {
			t.Errorf("another %s: %v", name, err)
		}
	}
}
