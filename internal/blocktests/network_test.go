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
	at   func(c *params.ChainConfig, when uint64) // makes the fork happen then
}

// measure is what says when a fork happens. The names of networks that change
// their rules on the way put it before the figure, as in ParisToShanghaiAtTime15k.
type measure string

const (
	byBlock      measure = ""
	byDifficulty measure = "Diff" // the chain's total
	byTime       measure = "Time"
)

func block(n uint64) *big.Int { return new(big.Int).SetUint64(n) }

// forks lists them in the order in which they came.
func forks() []fork {
	return []fork{
		{"Frontier", byBlock, func(*params.ChainConfig, uint64) {}},
		{"Homestead", byBlock, func(c *params.ChainConfig, n uint64) { c.HomesteadBlock = block(n) }},
		{"EIP150", byBlock, func(c *params.ChainConfig, n uint64) { c.EIP150Block = block(n) }},
		{"EIP158", byBlock, func(c *params.ChainConfig, n uint64) { c.EIP155Block, c.EIP158Block = block(n), block(n) }},
		{"Byzantium", byBlock, func(c *params.ChainConfig, n uint64) { c.ByzantiumBlock = block(n) }},
		{"ConstantinopleFix", byBlock, func(c *params.ChainConfig, n uint64) { c.ConstantinopleBlock, c.PetersburgBlock = block(n), block(n) }},
		{"Istanbul", byBlock, func(c *params.ChainConfig, n uint64) { c.IstanbulBlock = block(n) }},
		{"MuirGlacier", byBlock, func(c *params.ChainConfig, n uint64) { c.MuirGlacierBlock = block(n) }},
		{"Berlin", byBlock, func(c *params.ChainConfig, n uint64) { c.BerlinBlock = block(n) }},
		{"London", byBlock, func(c *params.ChainConfig, n uint64) { c.LondonBlock = block(n) }},
		{"ArrowGlacier", byBlock, func(c *params.ChainConfig, n uint64) { c.ArrowGlacierBlock = block(n) }},
		{"Paris", byDifficulty, func(c *params.ChainConfig, n uint64) { c.TerminalTotalDifficulty = block(n) }},
		{"Shanghai", byTime, func(c *params.ChainConfig, t uint64) { c.ShanghaiTime = &t }},
		{"Cancun", byTime, func(c *params.ChainConfig, t uint64) { c.CancunTime = &t }},
		{"Prague", byTime, func(c *params.ChainConfig, t uint64) { c.PragueTime = &t }},
		{"Osaka", byTime, func(c *params.ChainConfig, t uint64) { c.OsakaTime = &t }},
		{"BPO1", byTime, func(c *params.ChainConfig, t uint64) { c.BPO1Time = &t }},
		{"BPO2", byTime, func(c *params.ChainConfig, t uint64) { c.BPO2Time = &t }},
	}
}

// dao is the fork that not every chain had, so no other one implies it.
func dao() fork {
	return fork{"Dao", byBlock, func(c *params.ChainConfig, n uint64) { c.DAOForkBlock, c.DAOForkSupport = block(n), true }}
}

// chainConfig makes the configuration of the network that a test names: a fork,
// or two of them and when the second happens.
func chainConfig(network string, schedules map[string]blobSchedule) (*params.ChainConfig, error) {
	first, change, changes := strings.Cut(network, "To")
	begin := slices.IndexFunc(forks(), func(f fork) bool { return f.name == first })
	if begin < 0 {
		return nil, fmt.Errorf("network %q: no such fork as %q", network, first)
	}
	config := &params.ChainConfig{
		ChainID:                big.NewInt(1),
		DepositContractAddress: params.MainnetChainConfig.DepositContractAddress,
	}
	for _, f := range forks()[:begin+1] {
		f.at(config, 0)
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

// applyChange makes the forks after the one at position begin, up to the one that change
// names, happen when it says.
func applyChange(config *params.ChainConfig, change string, begin int) error {
	name, when, _ := strings.Cut(change, "At")
	if name == dao().name {
		return applyAt(config, dao(), when)
	}
	for _, f := range forks()[begin+1:] {
		if err := applyAt(config, f, when); err != nil {
			return err
		}
		if f.name == name {
			return nil
		}
	}
	return fmt.Errorf("no such fork as %q after %q", name, forks()[begin].name)
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

// setBlobSchedule takes over the schedules that a test tells, and those of
// mainnet for a test that tells none.
func setBlobSchedule(config *params.ChainConfig, schedules map[string]blobSchedule) error {
	if config.CancunTime == nil {
		return nil
	}
	mainnet := params.MainnetChainConfig.BlobScheduleConfig
	config.BlobScheduleConfig = &params.BlobScheduleConfig{Cancun: mainnet.Cancun, Prague: mainnet.Prague, BPO1: mainnet.BPO1, BPO2: mainnet.BPO2}
	if osaka, ok := schedules["Osaka"]; ok && osaka != schedules["Prague"] {
		return fmt.Errorf("Osaka has the blob schedule %v, expected that of Prague, %v", osaka, schedules["Prague"])
	}
	for name, s := range schedules {
		blobs := &params.BlobConfig{Target: int(s.Target), Max: int(s.Max), UpdateFraction: uint64(s.BaseFeeUpdateFraction)}
		switch name {
		case "Cancun":
			config.BlobScheduleConfig.Cancun = blobs
		case "Prague":
			config.BlobScheduleConfig.Prague = blobs
		case "Osaka":
		case "BPO1":
			config.BlobScheduleConfig.BPO1 = blobs
		case "BPO2":
			config.BlobScheduleConfig.BPO2 = blobs
		default:
			return fmt.Errorf("a blob schedule for %q, which is not known", name)
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
		{"Atlantis", "", nil},
		{"ParisToAtlantisAtTime15k", "", nil},
		{"ParisToShanghaiAt5", "", nil},
		{"BerlinToFrontierAt5", "", nil},
	} {
		config, err := chainConfig(test.network, nil)
		if test.want == "" {
			if err == nil {
				t.Errorf("%s is taken for a network", test.network)
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
