package blocktests

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/params"
)

// fork is a change of the rules, as the tests name it.
type fork struct {
	name string
	by   measure
	at   func(c *params.ChainConfig, when uint64) // schedules the fork
	// aside means that later forks do not imply this one: a network has it only
	// if its name says so.
	aside bool
}

// measure is the quantity that activates a fork. Networks that change their rules
// on the way name it before the value, as in ParisToShanghaiAtTime15k.
type measure string

const (
	byBlock      measure = ""
	byDifficulty measure = "Diff" // the chain's total
	byTime       measure = "Time"
)

func block(n uint64) *big.Int { return new(big.Int).SetUint64(n) }

// forks lists the forks in the order of their activation.
func forks() []fork {
	return []fork{
		{name: "Frontier", at: func(*params.ChainConfig, uint64) {}},
		{name: "Homestead", at: func(c *params.ChainConfig, n uint64) { c.HomesteadBlock = block(n) }},
		{name: "EIP150", at: func(c *params.ChainConfig, n uint64) { c.EIP150Block = block(n) }},
		{name: "EIP158", at: func(c *params.ChainConfig, n uint64) { c.EIP155Block, c.EIP158Block = block(n), block(n) }},
		{name: "Byzantium", at: func(c *params.ChainConfig, n uint64) { c.ByzantiumBlock = block(n) }},
		{name: "ConstantinopleFix", at: func(c *params.ChainConfig, n uint64) { c.ConstantinopleBlock, c.PetersburgBlock = block(n), block(n) }},
		{name: "Istanbul", at: func(c *params.ChainConfig, n uint64) { c.IstanbulBlock = block(n) }},
		{name: "MuirGlacier", at: func(c *params.ChainConfig, n uint64) { c.MuirGlacierBlock = block(n) }},
		{name: "Berlin", at: func(c *params.ChainConfig, n uint64) { c.BerlinBlock = block(n) }},
		{name: "London", at: func(c *params.ChainConfig, n uint64) { c.LondonBlock = block(n) }},
		{name: "ArrowGlacier", at: func(c *params.ChainConfig, n uint64) { c.ArrowGlacierBlock = block(n) }},
		{name: "Paris", by: byDifficulty, at: func(c *params.ChainConfig, n uint64) { c.TerminalTotalDifficulty = block(n) }},
		{name: "Shanghai", by: byTime, at: func(c *params.ChainConfig, t uint64) { c.ShanghaiTime = &t }},
		{name: "Cancun", by: byTime, at: func(c *params.ChainConfig, t uint64) { c.CancunTime = &t }},
		{name: "Prague", by: byTime, at: func(c *params.ChainConfig, t uint64) { c.PragueTime = &t }},
		{name: "Osaka", by: byTime, at: func(c *params.ChainConfig, t uint64) { c.OsakaTime = &t }},
		{name: "BPO1", by: byTime, at: func(c *params.ChainConfig, t uint64) { c.BPO1Time = &t }},
		{name: "BPO2", by: byTime, at: func(c *params.ChainConfig, t uint64) { c.BPO2Time = &t }},
		{name: "BPO3", by: byTime, at: func(c *params.ChainConfig, t uint64) { c.BPO3Time = &t }, aside: true},
		{name: "BPO4", by: byTime, at: func(c *params.ChainConfig, t uint64) { c.BPO4Time = &t }, aside: true},
		{name: "Amsterdam", by: byTime, at: func(c *params.ChainConfig, t uint64) { c.AmsterdamTime = &t }},
	}
}

// dao is the fork that only some chains had. No other fork implies it.
func dao() fork {
	return fork{name: "Dao", at: func(c *params.ChainConfig, n uint64) { c.DAOForkBlock, c.DAOForkSupport = block(n), true }}
}

// chainConfig makes the configuration of the network that a test names: one fork,
// or two forks and the time of the second.
func chainConfig(network string, schedules map[string]blobSchedule) (*params.ChainConfig, error) {
	first, change, changes := strings.Cut(network, "To")
	begin := slices.IndexFunc(forks(), func(f fork) bool { return f.name == first })
	if begin < 0 {
		return nil, fmt.Errorf("network %q: unknown fork %q", network, first)
	}
	config := &params.ChainConfig{
		ChainID:                big.NewInt(1),
		DepositContractAddress: params.MainnetChainConfig.DepositContractAddress,
	}
	for _, f := range forks()[:begin+1] {
		// From BPO3 on, the named fork implies BPO3: BPO3ToBPO4 has both.
		if !f.aside || f.name == first || forks()[begin].aside {
			f.at(config, 0)
		}
	}
	if changes {
		if err := applyChange(config, change, begin); err != nil {
			return nil, fmt.Errorf("network %q: %w", network, err)
		}
	}
	if err := setBlobSchedule(config, schedules); err != nil {
		return nil, fmt.Errorf("network %q: %w", network, err)
	}
	return config, config.CheckConfigForkOrder()
}

// applyChange schedules the forks after position begin, up to the one that change
// names, at the time it names.
func applyChange(config *params.ChainConfig, change string, begin int) error {
	name, when, _ := strings.Cut(change, "At")
	if name == dao().name {
		return applyAt(config, dao(), when)
	}
	for _, f := range forks()[begin+1:] {
		if f.aside && f.name != name {
			continue
		}
		if err := applyAt(config, f, when); err != nil {
			return err
		}
		if f.name == name {
			return nil
		}
	}
	return fmt.Errorf("unknown fork %q after %q", name, forks()[begin].name)
}

func applyAt(config *params.ChainConfig, f fork, when string) error {
	figure, ok := strings.CutPrefix(when, string(f.by))
	base := 10
	if f.by == byDifficulty {
		base = 16
	}
	thousands, inThousands := strings.CutSuffix(figure, "k")
	at, err := strconv.ParseUint(thousands, base, 64)
	if !ok || err != nil {
		return fmt.Errorf("%q does not say when %s happens", when, f.name)
	}
	if inThousands {
		at *= 1000
	}
	f.at(config, at)
	return nil
}

// setBlobSchedule sets the blob schedule of a test, or that of mainnet for a test
// without one.
func setBlobSchedule(config *params.ChainConfig, schedules map[string]blobSchedule) error {
	if config.CancunTime == nil {
		return nil
	}
	mainnet := params.MainnetChainConfig.BlobScheduleConfig
	blobs := &params.BlobScheduleConfig{Cancun: mainnet.Cancun, Prague: mainnet.Prague, BPO1: mainnet.BPO1, BPO2: mainnet.BPO2}
	config.BlobScheduleConfig = blobs
	// These forks keep the schedule of the one before.
	for name, before := range map[string]string{"Osaka": "Prague", "Amsterdam": "BPO2"} {
		if s, ok := schedules[name]; ok && s != schedules[before] {
			return fmt.Errorf("%s has the blob schedule %v, expected that of %s, %v", name, s, before, schedules[before])
		}
	}
	fields := map[string]**params.BlobConfig{
		"Cancun": &blobs.Cancun, "Prague": &blobs.Prague,
		"BPO1": &blobs.BPO1, "BPO2": &blobs.BPO2, "BPO3": &blobs.BPO3, "BPO4": &blobs.BPO4,
	}
	for name, s := range schedules {
		switch field := fields[name]; {
		case name == "Osaka" || name == "Amsterdam":
		case field == nil:
			return fmt.Errorf("blob schedule of the unknown fork %q", name)
		default:
			*field = &params.BlobConfig{Target: int(s.Target), Max: int(s.Max), UpdateFraction: uint64(s.BaseFeeUpdateFraction)}
		}
	}
	return nil
}

func TestChainConfig(t *testing.T) {
	for _, test := range []struct {
		network string
		want    string // "" when the network is not known
		got     func(*params.ChainConfig) any
	}{
		{"Frontier", "<nil>", func(c *params.ChainConfig) any { return c.HomesteadBlock }},
		{"EIP150", "<nil>", func(c *params.ChainConfig) any { return c.DAOForkBlock }},
		{"HomesteadToDaoAt5", "5", func(c *params.ChainConfig) any { return c.DAOForkBlock }},
		{"HomesteadToDaoAt5", "<nil>", func(c *params.ChainConfig) any { return c.EIP150Block }},
		{"ByzantiumToConstantinopleFixAt5", "5", func(c *params.ChainConfig) any { return c.PetersburgBlock }},
		{"ArrowGlacierToParisAtDiffC0000", "786432", func(c *params.ChainConfig) any { return c.TerminalTotalDifficulty }},
		{"ParisToShanghaiAtTime15k", "15000", func(c *params.ChainConfig) any { return *c.ShanghaiTime }},
		{"ParisToShanghaiAtTime15k", "0", func(c *params.ChainConfig) any { return c.TerminalTotalDifficulty }},
		{"Osaka", "9", func(c *params.ChainConfig) any { return c.BlobScheduleConfig.Prague.Max }},
		{"Amsterdam", "<nil>", func(c *params.ChainConfig) any { return c.BPO3Time }},
		{"BPO2ToAmsterdamAtTime15k", "15000", func(c *params.ChainConfig) any { return *c.AmsterdamTime }},
		{"BPO2ToAmsterdamAtTime15k", "<nil>", func(c *params.ChainConfig) any { return c.BPO3Time }},
		{"BPO2ToBPO3AtTime15k", "15000", func(c *params.ChainConfig) any { return *c.BPO3Time }},
		{"BPO3ToBPO4AtTime15k", "0", func(c *params.ChainConfig) any { return *c.BPO3Time }},
		{"BPO3ToBPO4AtTime15k", "15000", func(c *params.ChainConfig) any { return *c.BPO4Time }},
		{"Atlantis", "", nil},
		{"ParisToAtlantisAtTime15k", "", nil},
		{"ParisToShanghaiAt5", "", nil},
		{"BerlinToFrontierAt5", "", nil},
	} {
		config, err := chainConfig(test.network, map[string]blobSchedule{"BPO3": {21, 32, 20609697}, "BPO4": {14, 21, 13739630}})
		if test.want == "" {
			if err == nil {
				t.Errorf("%s: accepted, expected an error", test.network)
			}
			continue
		}
		if err != nil {
			t.Error(err)
			continue
		}
		if got := fmt.Sprint(test.got(config)); got != test.want {
			t.Errorf("%s: got %s, expected %s", test.network, got, test.want)
		}
	}
}
