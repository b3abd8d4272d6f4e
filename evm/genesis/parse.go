package genesis

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

// Parse reads a genesis file in geth's JSON, or Besu's. Errors are of type
// *FieldError; warnings say what in the file was ignored, and where.
//
// Two fields of the config that files older than them lack are filled in, as
// they follow from the rest and do not enter the hash of the block: the blob
// schedules of Cancun and Prague, which their EIPs fix, and a terminal total
// difficulty of zero for a chain that begins under proof of stake.
func Parse(data []byte) (g *core.Genesis, warnings []string, err error) {
	s, err := scan(data, fileRule())
	if err != nil {
		return nil, nil, err
	}
	g = new(core.Genesis)
	if err := json.Unmarshal(data, g); err != nil {
		return nil, nil, &FieldError{Err: err}
	}
	if err := s.completeBesu(data, g.Config); err != nil {
		return nil, nil, err
	}
	if err := s.checkHeader(g); err != nil {
		return nil, nil, err
	}
	s.completeMerge(g)
	if err := s.completeBlobSchedule(data, g.Config); err != nil {
		return nil, nil, err
	}
	if err := g.Config.CheckConfigForkOrder(); err != nil {
		return nil, nil, s.at("config", "%w", err)
	}
	return g, s.warnings, nil
}

// completeBesu takes over what Besu's files have by other names.
func (s *scanner) completeBesu(data []byte, config *params.ChainConfig) error {
	var file struct {
		Config struct {
			ConstantinopleFixBlock *big.Int
			Clique                 *struct{ Period, Epoch, BlockPeriodSeconds, EpochLength *uint64 }
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return &FieldError{Err: err}
	}
	if fix := file.Config.ConstantinopleFixBlock; fix != nil {
		if config.PetersburgBlock != nil && config.PetersburgBlock.Cmp(fix) != 0 {
			return s.at("config.constantinopleFixBlock", "is %d and config.petersburgBlock is %d; want one of them, as they are the same fork", fix, config.PetersburgBlock)
		}
		config.PetersburgBlock = fix
	}
	clique := file.Config.Clique
	if clique == nil {
		return nil
	}
	for _, number := range []struct {
		name       string
		geth, besu *uint64
		to         *uint64
	}{
		{"period", clique.Period, clique.BlockPeriodSeconds, &config.Clique.Period},
		{"epoch", clique.Epoch, clique.EpochLength, &config.Clique.Epoch},
	} {
		switch path := "config.clique." + number.name; {
		case number.geth == nil && number.besu == nil:
			return s.at(path, "is missing")
		case number.geth != nil && number.besu != nil && *number.geth != *number.besu:
			return s.at(path, "is %d, and by Besu's name it is %d; want one number", *number.geth, *number.besu)
		case number.geth == nil:
			*number.to = *number.besu
		}
	}
	return nil
}

// checkHeader checks what holds between fields of the file.
func (s *scanner) checkHeader(g *core.Genesis) error {
	if g.Config.ChainID.Sign() == 0 {
		return s.at("config.chainId", "want a number above 0, found 0")
	}
	if g.Number != 0 {
		return s.at("number", "want 0, the number of a genesis block, found %d", g.Number)
	}
	if g.Config.EnableUBTAtGenesis || g.Config.UBTTime != nil {
		name := "config.ubtTime"
		if g.Config.EnableUBTAtGenesis {
			name = "config.enableUBTAtGenesis"
		}
		return s.at(name, "chains whose state is a unified binary tree are not supported; want it absent")
	}
	if g.Config.Clique != nil {
		const vanity = 32
		signers := len(g.ExtraData) - vanity - crypto.SignatureLength
		if signers <= 0 || signers%common.AddressLength != 0 {
			return s.at("extraData", "want %d bytes, the addresses of one or more signers and %d bytes, as config.clique is set; found %d bytes",
				vanity, crypto.SignatureLength, len(g.ExtraData))
		}
	}
	return nil
}

// maxBlocksOfWork is how many times the difficulty of the genesis block a terminal
// total difficulty can be that a chain reaches. Mainnet's, whose difficulty grew most,
// is a little below.
var maxBlocksOfWork = new(big.Int).Lsh(big.NewInt(1), 42)

// completeMerge fills in the terminal total difficulty of a chain that begins under
// proof of stake. A chain without it comes under proof of stake with its first block
// that has no difficulty, as go-ethereum judges every chain, and so does one whose
// terminal total difficulty is out of reach.
func (s *scanner) completeMerge(g *core.Genesis) {
	config := g.Config
	if config.ShanghaiTime != nil && *config.ShanghaiTime <= g.Timestamp || g.Difficulty.Sign() == 0 {
		if terminal := config.TerminalTotalDifficulty; terminal == nil || terminal.Cmp(g.Difficulty) > 0 {
			config.TerminalTotalDifficulty = new(big.Int)
		}
		return
	}
	if terminal := config.TerminalTotalDifficulty; terminal != nil {
		if limit := new(big.Int).Mul(g.Difficulty, maxBlocksOfWork); terminal.Cmp(limit) > 0 {
			config.TerminalTotalDifficulty = nil
			s.warnings = append(s.warnings, fmt.Sprintf("line %d: config.terminalTotalDifficulty: %d is out of reach; blocks without difficulty are taken to be after the merge",
				s.lines["config.terminaltotaldifficulty"], terminal))
		}
	}
}

// completeBlobSchedule fills in the schedules that the EIPs fix. Those of later
// forks have no defaults: a schedule is all that a BPO fork is.
func (s *scanner) completeBlobSchedule(data []byte, config *params.ChainConfig) error {
	if config.CancunTime == nil && config.BlobScheduleConfig == nil {
		return nil
	}
	if config.BlobScheduleConfig == nil {
		config.BlobScheduleConfig = new(params.BlobScheduleConfig)
	}
	schedule := config.BlobScheduleConfig
	if config.CancunTime != nil && schedule.Cancun == nil {
		schedule.Cancun = copyOf(params.DefaultCancunBlobConfig)
	}
	if config.PragueTime != nil && schedule.Prague == nil {
		schedule.Prague = copyOf(params.DefaultPragueBlobConfig)
	}
	forks := scheduledForks(config)
	for _, fork := range forks {
		path := "config.blobSchedule." + fork.name
		if fork.time != nil && fork.blobs == nil {
			return s.at(path, "is missing; config.%sTime is set", fork.name)
		}
		if err := s.checkBlobs(path, fork.blobs); err != nil {
			return err
		}
	}
	return s.checkNamedBlobs(data, config, forks)
}

// scheduledFork is a fork that brings a schedule.
type scheduledFork struct {
	name  string
	time  *uint64
	blobs *params.BlobConfig
}

// scheduledForks returns all forks that can bring a schedule, in their order.
func scheduledForks(config *params.ChainConfig) []scheduledFork {
	schedule := config.BlobScheduleConfig
	return []scheduledFork{
		{"cancun", config.CancunTime, schedule.Cancun},
		{"prague", config.PragueTime, schedule.Prague},
		{"bpo1", config.BPO1Time, schedule.BPO1},
		{"bpo2", config.BPO2Time, schedule.BPO2},
		{"bpo3", config.BPO3Time, schedule.BPO3},
		{"bpo4", config.BPO4Time, schedule.BPO4},
		{"bpo5", config.BPO5Time, schedule.BPO5},
	}
}

func (s *scanner) checkBlobs(path string, blobs *params.BlobConfig) error {
	if blobs == nil {
		return nil
	}
	if blobs.UpdateFraction == 0 {
		return s.at(path, "baseFeeUpdateFraction is 0; want a number above 0")
	}
	if blobs.Target > blobs.Max {
		return s.at(path, "target is %d, above max, which is %d", blobs.Target, blobs.Max)
	}
	return nil
}

// Osaka comes after Prague, and Amsterdam and Bogota after the second BPO fork.
const (
	beforeOsaka     = 2 // scheduled forks
	beforeAmsterdam = 4
)

// checkNamedBlobs refuses schedules that forks with names have of their own. They keep
// the schedule that is in force when they come, so an entry for one may repeat that, as
// files often do, and nothing else. scheduled are all forks that bring a schedule.
func (s *scanner) checkNamedBlobs(data []byte, config *params.ChainConfig, scheduled []scheduledFork) error {
	var file struct {
		Config struct {
			BlobSchedule struct{ Osaka, Amsterdam, Bogota *params.BlobConfig }
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return &FieldError{Err: err}
	}
	own := file.Config.BlobSchedule
	for _, fork := range []struct {
		scheduledFork
		before []scheduledFork
	}{
		{scheduledFork{"osaka", config.OsakaTime, own.Osaka}, scheduled[:beforeOsaka]},
		{scheduledFork{"amsterdam", config.AmsterdamTime, own.Amsterdam}, scheduled[:beforeAmsterdam]},
		{scheduledFork{"bogota", config.BogotaTime, own.Bogota}, scheduled[:beforeAmsterdam]},
	} {
		// A BPO fork at the same time replaces the schedule at once, so both are right.
		if fork.blobs != nil && !fork.repeats(fork.before) && !fork.repeats(scheduled) {
			return s.at("config.blobSchedule."+fork.name, "differs from the schedule that is in force when the fork comes, which it keeps; want it equal or absent")
		}
	}
	return nil
}

// repeats reports whether a fork's schedule is the one that others have brought by its time.
// The schedule of a fork without a time has no effect, and may be any of theirs.
func (f scheduledFork) repeats(others []scheduledFork) bool {
	for _, other := range slices.Backward(others) {
		switch {
		case other.blobs == nil || f.time != nil && (other.time == nil || *other.time > *f.time):
			// not brought by then
		case *other.blobs == *f.blobs:
			return true
		case f.time != nil:
			return false
		}
	}
	return false
}

func copyOf(blobs *params.BlobConfig) *params.BlobConfig {
	own := *blobs
	return &own
}
