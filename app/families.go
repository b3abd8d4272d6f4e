package app

import (
	evm "ashlar/evm/network"
	"ashlar/family"
	forwarded "ashlar/forwarded/network"
	starknet "ashlar/starknet/network"
)

// Families returns all supported families of networks. Register a new one here.
func Families() family.Families {
	return family.Families{
		evm.Family{}, // the default for new networks
		starknet.Family{},
		forwarded.Family{},
	}
}
