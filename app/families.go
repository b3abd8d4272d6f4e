package app

import (
	evm "ashlar/evm/network"
	"ashlar/family"
	starknet "ashlar/starknet/network"
)

// Families are the families of networks that the service knows. To add one, add it here.
func Families() family.Families {
	return family.Families{
		evm.Family{}, // the default for new networks
		starknet.Family{},
	}
}
