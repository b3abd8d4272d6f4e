package beacon

import (
	"time"

	"ashlar/evm/source/beacon/lightclient"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/params"
)

// Public returns what is known of the beacon chain of a public network, by the hash of its
// genesis block of the execution layer; nil if nothing is. The values are those of
// go-ethereum 1.17.10, beacon/params.
func Public(genesis common.Hash) *lightclient.Chain {
	chain := &lightclient.Chain{SlotTime: 12 * time.Second, SlotsPerEpoch: 32}
	add := func(name string, epoch uint64, version uint32) {
		fork := lightclient.Fork{Name: name, Epoch: epoch, Version: [4]byte{byte(version >> 24), byte(version >> 16), byte(version >> 8), byte(version)}}
		chain.Forks = append(chain.Forks, fork)
	}
	switch genesis {
	case params.MainnetGenesisHash:
		chain.GenesisTime = 1606824023
		chain.GenesisValidatorsRoot = common.HexToHash("0x4b363db94e286120d76eb905340fdd4e54bfe9f06bf33ff6cf5ad27f511bfe95")
		add("phase0", 0, 0x00000000)
		add("altair", 74240, 0x01000000)
		add("bellatrix", 144896, 0x02000000)
		add("capella", 194048, 0x03000000)
		add("deneb", 269568, 0x04000000)
		add("electra", 364032, 0x05000000)
		add("fulu", 411392, 0x06000000)
	case params.SepoliaGenesisHash:
		chain.GenesisTime = 1655733600
		chain.GenesisValidatorsRoot = common.HexToHash("0xd8ea171f3c94aea21ebc42a1ed61052acf3f9209c00e4efbaaddac09ed9b8078")
		add("phase0", 0, 0x90000069)
		add("altair", 50, 0x90000070)
		add("bellatrix", 100, 0x90000071)
		add("capella", 56832, 0x90000072)
		add("deneb", 132608, 0x90000073)
		add("electra", 222464, 0x90000074)
		add("fulu", 272640, 0x90000075)
		add("gloas", 353024, 0x90000076)
	case params.HoodiGenesisHash:
		chain.GenesisTime = 1742213400
		chain.GenesisValidatorsRoot = common.HexToHash("0x212f13fc4df078b6cb7db228f1c8307566dcecf900867401a92023d7ba99cb5f")
		add("phase0", 0, 0x10000910)
		add("altair", 0, 0x20000910)
		add("bellatrix", 0, 0x30000910)
		add("capella", 0, 0x40000910)
		add("deneb", 0, 0x50000910)
		add("electra", 2048, 0x60000910)
		add("fulu", 50688, 0x70000910)
	default:
		return nil
	}
	return chain
}
