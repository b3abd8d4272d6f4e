package genesis

import (
	"encoding/json"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

// Parse reads a genesis file in geth's JSON. Errors are of type *FieldError.
//
// Two fields of the config that files older than them lack are filled in, as
// they follow from the rest and do not enter the hash of the block: the blob
// schedules of Cancun and Prague, which their EIPs fix, and a terminal total
// difficulty of zero for a chain that begins under proof of stake.
func Parse(data []byte) (*core.Genesis, error) {
	s, err := scan(data, fileRule())
	if err != nil {
		return nil, err
	}
	g := new(core.Genesis)
	if err := json.Unmarshal(data, g); err != nil {
		return nil, &FieldError{Err: err}
	}
	if err := s.checkHeader(g); err != nil {
		return nil, err
	}
	if err := s.completeMerge(g); err != nil {
		return nil, err
	}
	if err := s.completeBlobSchedule(data, g.Config); err != nil {
		return nil, err
	}
	if err := g.Config.CheckConfigForkOrder(); err != nil {
		return nil, s.at("config", "%w", err)
	}
	return g, nil
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

// completeMerge fills in the terminal total difficulty of a chain that begins
// under proof of stake. Without it a chain is taken to stay before the merge.
func (s *scanner) completeMerge(g *core.Genesis) error {
	config := g.Config
	if config.TerminalTotalDifficulty != nil || config.ShanghaiTime == nil && g.Difficulty.Sign() > 0 {
		return nil
	}
	if g.Difficulty.Sign() > 0 && *config.ShanghaiTime > g.Timestamp {
		return s.at("config.terminalTotalDifficulty",
			"is missing; config.shanghaiTime comes after the merge, so the chain needs the total difficulty at which it merges")
	}
	config.TerminalTotalDifficulty = new(big.Int)
	return nil
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
	for _, fork := range []struct {
		name  string
		time  *uint64
		blobs *params.BlobConfig
	}{
		{"cancun", config.CancunTime, schedule.Cancun},
		{"prague", config.PragueTime, schedule.Prague},
		{"bpo1", config.BPO1Time, schedule.BPO1},
		{"bpo2", config.BPO2Time, schedule.BPO2},
		{"bpo3", config.BPO3Time, schedule.BPO3},
		{"bpo4", config.BPO4Time, schedule.BPO4},
		{"bpo5", config.BPO5Time, schedule.BPO5},
	} {
		path := "config.blobSchedule." + fork.name
		if fork.time != nil && fork.blobs == nil {
			return s.at(path, "is missing; config.%sTime is set", fork.name)
		}
		if err := s.checkBlobs(path, fork.blobs); err != nil {
			return err
		}
	}
	return s.checkOsakaBlobs(data, schedule)
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

// checkOsakaBlobs refuses a schedule of Osaka's own: Osaka keeps that of Prague,
// so an entry for it may repeat that one, as files often do, and nothing else.
func (s *scanner) checkOsakaBlobs(data []byte, schedule *params.BlobScheduleConfig) error {
	var file struct {
		Config struct {
			BlobSchedule struct{ Osaka *params.BlobConfig }
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return &FieldError{Err: err}
	}
	osaka := file.Config.BlobSchedule.Osaka
	if osaka == nil || schedule.Prague != nil && *osaka == *schedule.Prague {
		return nil
	}
	return s.at("config.blobSchedule.osaka", "differs from config.blobSchedule.prague, whose schedule Osaka keeps; want it equal or absent")
}

func copyOf(blobs *params.BlobConfig) *params.BlobConfig {
	own := *blobs
	return &own
}
