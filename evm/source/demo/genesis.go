package demo

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
)

// depositContract is where the network's deposits are logged. The address is
// the demo's own, chosen to be recognized.
var depositContract = common.HexToAddress("0x00000000000000000000000000000000de905175")

// Genesis is the network's block 0: every fork up to Osaka active from the
// start, proof of stake, the system contracts in place and the accounts funded.
// The factory of EIP-7997 is there as in geth's developer network: Foundry and
// other tools deploy through it with CREATE2.
// Each call makes a new one.
func (n *Network) Genesis() (*core.Genesis, error) {
	deposits, err := n.contracts.get("Deposits")
	if err != nil {
		return nil, err
	}
	alloc := types.GenesisAlloc{
		params.BeaconRootsAddress:          systemContract(params.BeaconRootsCode),
		params.HistoryStorageAddress:       systemContract(params.HistoryStorageCode),
		params.WithdrawalQueueAddress:      systemContract(params.WithdrawalQueueCode),
		params.ConsolidationQueueAddress:   systemContract(params.ConsolidationQueueCode),
		params.BuilderDepositAddress:       systemContract(params.BuilderDepositCode),
		params.BuilderExitAddress:          systemContract(params.BuilderExitCode),
		params.DeterministicFactoryAddress: systemContract(params.DeterministicFactoryCode),
		depositContract:                    systemContract(deposits.Runtime),
	}
	fund := func(a account) {
		// Enough for years of traffic: nothing refills it but a few withdrawals.
		alloc[a.address] = types.Account{Balance: ether(10_000_000)}
	}
	fund(n.deployer)
	fund(n.visitor)
	for _, a := range n.senders {
		fund(a)
	}
	for _, a := range n.authorities {
		fund(a)
	}
	return &core.Genesis{
		Config:     n.chainConfig(),
		Timestamp:  GenesisTime,
		ExtraData:  []byte("ashlar demo"),
		GasLimit:   n.config.GasLimit,
		Difficulty: new(big.Int),
		BaseFee:    gwei(1),
		Alloc:      alloc,
	}, nil
}

// chainConfig has every fork up to Osaka at the start. Osaka takes over Prague's
// blob schedule: changes of it since then are forks of their own.
func (n *Network) chainConfig() *params.ChainConfig {
	atTime := func() *uint64 { return new(uint64) }
	config := &params.ChainConfig{
		ChainID:                 new(big.Int).SetUint64(n.config.ChainID),
		HomesteadBlock:          new(big.Int),
		EIP150Block:             new(big.Int),
		EIP155Block:             new(big.Int),
		EIP158Block:             new(big.Int),
		ByzantiumBlock:          new(big.Int),
		ConstantinopleBlock:     new(big.Int),
		PetersburgBlock:         new(big.Int),
		IstanbulBlock:           new(big.Int),
		MuirGlacierBlock:        new(big.Int),
		BerlinBlock:             new(big.Int),
		LondonBlock:             new(big.Int),
		ArrowGlacierBlock:       new(big.Int),
		GrayGlacierBlock:        new(big.Int),
		MergeNetsplitBlock:      new(big.Int),
		TerminalTotalDifficulty: new(big.Int),
		ShanghaiTime:            atTime(),
		CancunTime:              atTime(),
		PragueTime:              atTime(),
		OsakaTime:               atTime(),
		DepositContractAddress:  depositContract,
		BlobScheduleConfig: &params.BlobScheduleConfig{
			Cancun: params.DefaultCancunBlobConfig,
			Prague: params.DefaultPragueBlobConfig,
		},
	}
	if n.config.AmsterdamBlock > 0 {
		amsterdam := Timestamp(n.config.AmsterdamBlock-1) + 1
		config.AmsterdamTime = &amsterdam
	}
	return config
}

// systemContract is an account with code, as a contract deployed earlier would be.
func systemContract(code []byte) types.Account {
	return types.Account{Nonce: 1, Code: code, Balance: new(big.Int)}
}

func ether(n int64) *big.Int { return new(big.Int).Mul(big.NewInt(n), big.NewInt(params.Ether)) }
func gwei(n int64) *big.Int  { return new(big.Int).Mul(big.NewInt(n), big.NewInt(params.GWei)) }
