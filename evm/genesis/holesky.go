package genesis

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
)

// go-ethereum no longer carries Holesky, which was shut down in 2025, but its
// history is still asked for. What follows are the network's published facts
// (eth-clients/holesky on GitHub); a test holds their genesis hash.

// holeskyDeposit is the code of Holesky's deposit contract, in hexadecimal.
//
//go:embed holesky_deposit.hex
var holeskyDeposit string

const holeskyDepositAddress = "0x4242424242424242424242424242424242424242"

// holeskyFunds lists who began with how much.
var holeskyFunds = []struct {
	ether    int64
	accounts []string
}{
	{1000000, []string{
		"0x0c35317b7a96c454e2cb3d1a255d775ab112ccc8",
		"0x0d731cfabc5574329823f26d488416451d2ea376",
		"0x0e79065b5f11b5bd1e62b935a600976fff3754b9",
		"0x105083929bf9bb22c26cb1777ec92661170d4285",
		"0x1268ad189526ac0b386faf06effc46779c340ee6",
		"0x12cba59f5a74db81a12ff63c349bd82cbf6007c2",
		"0x1446d7f6df00380f246d8211de7f0fabc4fd248c",
		"0x15e719b6acaf1e4411bf0f9576cb1d0db161ddfc",
		"0x164e38a375247a784a81d420201aa8fe4e513921",
		"0x222222222222cf64a76ae3d36859958c864fda2c",
		"0x341c40b94bf2afbfa42573cb78f16ee15a056238",
		"0x346d827a75f98f0a7a324ff80b7c3f90252e8bac",
		"0x34f845773d4364999f2fbc7aa26abdee902cbb46",
		"0x3c75594181e03e8ecd8468a0037f058a9dafad79",
		"0x49df3cca2670eb0d591146b16359fe336e476f29",
		"0x4d0b04b405c6b62c7cfc3ae54759747e2c0b4662",
		"0x5180db0237291a6449dda9ed33ad90a38787621c",
		"0x52730f347def6ba09adff62eac60d5fee8205bc4",
		"0x5eac0fbd3dfef8ae3efa3c5dc1aa193bc6033dfd",
		"0x762ca62ca2549ad806763b3aa1ea317c429bdbda",
		"0x834dbf5a03e29c25bc55459cce9c021eebe676ad",
		"0x875d25ee4bc604c71baf6236a8488f22399bed4b",
		"0x9e415a096ff77650dc925dea546585b4adb322b6",
		"0xa0766b65a4f7b1da79a1af79ac695456efa28644",
		"0xa29b144a449e414a472c60c7aaf1aaffe329021d",
		"0xa55395566b0b54395b3246f96a0bdc4b8a483df9",
		"0xac9ba72fb61aa7c31a95df0a8b6eba6f41ef875e",
		"0xb0498c15879db2ee5471d4926c5faa25c9a09683",
		"0xb04aef2a3d2d86b01006ccd4339a2e943d9c6480",
		"0xbb977b2ee8a111d788b3477d242078d0b837e72b",
		"0xc21cb9c99c316d1863142f7dd86dd5496d81a8d6",
		"0xc473d412dc52e349862209924c8981b2ee420768",
		"0xc9ca2ba9a27de1db589d8c33ab8edfa2111b31fb",
		"0xd1f77e4c1c45186e8653c489f90e008a73597296",
		"0xdca6e9b48ea86aebfdf9929949124042296b6e34",
		"0xe0991e844041be6f11b99da5b114b6bcf84ebd57",
		"0xea28d002042fd9898d0db016be9758eeafe35c1e",
		"0xefa7454f1116807975a4750b46695e967850de5d",
	}},
	{10000000, []string{
		"0x4bc656b34de23896fa6069c9862f355b740401af",
	}},
	{100000000, []string{
		"0x0000006916a87b82333f4245046623b23794c65c",
		"0x0c100000006d7b5e23a1eaee637f28ca32cd5b31",
		"0x10f5d45854e038071485ac9e402308cf80d2d2fe",
		"0x1b7aa44088a0ea95bdc65fef6e5071e946bf7d8f",
		"0x2f14582947e292a2ecd20c430b46f2d27cfe213c",
		"0x2f2c75b5dd5d246194812b00eeb3b09c2c66e2ee",
		"0x4d496ccc28058b1d74b7a19541663e21154f9c84",
		"0x6a7aa9b882d50bb7bc5da1a244719c99f12f06a3",
		"0x6cc9397c3b38739dacbfaa68ead5f5d77ba5f455",
		"0x73b2e0e54510239e22cc936f0b4a6de1acf0abde",
		"0x778f5f13c4be78a3a4d7141bcb26999702f407cf",
		"0x8df7878d3571bef5e5a744f96287c8d20386d75a",
		"0xb19fb4c1f280327e60ed37b1dc6ee77533539314",
		"0xc48e23c5f6e1ea0baef6530734edc3968f79af2e",
		"0xc6e2459991bfe27cca6d86722f35da23a1e4cb97",
		"0xe0a2bd4258d2768837baa26a28fe71dc079f84c7",
		"0xfbfd6fa9f73ac6a058e01259034c28001bef8247",
	}},
	{150000000, []string{
		"0x0be949928ff199c9eba9e110db210aa5c94efad0",
		"0x509a7667ac8d0320e36172c192506a6188aa84f6",
	}},
	{200000000, []string{
		"0x462396e69dbfa455f405f4dd82f3014af8003b72",
	}},
	{500000000, []string{
		"0xd3994e4d3202dd23c8497d7f75bf1647d1da1bb1",
	}},
}

func holesky() *core.Genesis {
	zero := new(big.Int)
	at := func(unix uint64) *uint64 { return &unix }
	return &core.Genesis{
		Config: &params.ChainConfig{
			ChainID:                 big.NewInt(17000),
			HomesteadBlock:          zero,
			DAOForkSupport:          true,
			EIP150Block:             zero,
			EIP155Block:             zero,
			EIP158Block:             zero,
			ByzantiumBlock:          zero,
			ConstantinopleBlock:     zero,
			PetersburgBlock:         zero,
			IstanbulBlock:           zero,
			BerlinBlock:             zero,
			LondonBlock:             zero,
			ShanghaiTime:            at(1696000704),
			CancunTime:              at(1707305664),
			PragueTime:              at(1740434112),
			OsakaTime:               at(1759308480),
			BPO1Time:                at(1759800000),
			BPO2Time:                at(1760389824),
			TerminalTotalDifficulty: zero,
			DepositContractAddress:  common.HexToAddress(holeskyDepositAddress),
			Ethash:                  new(params.EthashConfig),
			BlobScheduleConfig: &params.BlobScheduleConfig{
				Cancun: params.DefaultCancunBlobConfig,
				Prague: params.DefaultPragueBlobConfig,
				BPO1:   params.DefaultBPO1BlobConfig,
				BPO2:   params.DefaultBPO2BlobConfig,
			},
		},
		Nonce:      0x1234,
		Timestamp:  1695902100,
		GasLimit:   25_000_000,
		Difficulty: big.NewInt(1),
		Alloc:      holeskyAlloc(),
	}
}

// holeskyAlloc is the state at Holesky's genesis: one wei for each of the 256
// lowest addresses, the funded accounts, and the deposit contract.
func holeskyAlloc() types.GenesisAlloc {
	alloc := make(types.GenesisAlloc)
	for i := range 256 {
		alloc[common.BytesToAddress([]byte{byte(i)})] = types.Account{Balance: big.NewInt(1)}
	}
	for _, fund := range holeskyFunds {
		for _, account := range fund.accounts {
			wei := new(big.Int).Mul(big.NewInt(fund.ether), big.NewInt(params.Ether))
			alloc[common.HexToAddress(account)] = types.Account{Balance: wei}
		}
	}
	code, err := hex.DecodeString(strings.Join(strings.Fields(holeskyDeposit), ""))
	if err != nil {
		panic("the embedded code of Holesky's deposit contract is not hexadecimal: " + err.Error())
	}
	alloc[common.HexToAddress(holeskyDepositAddress)] = types.Account{
		Balance: new(big.Int),
		Code:    code,
		Storage: depositZeroHashes(),
	}
	return alloc
}

// depositZeroHashes is the storage with which a deposit contract begins: the
// roots of empty trees of height 1 to 31, in its slots 0x22 to 0x40.
func depositZeroHashes() map[common.Hash]common.Hash {
	const firstSlot, heights = 0x22, 31
	storage := make(map[common.Hash]common.Hash, heights)
	var root common.Hash
	for i := range int64(heights) {
		root = sha256.Sum256(append(root.Bytes(), root.Bytes()...))
		storage[common.BigToHash(big.NewInt(firstSlot+i))] = root
	}
	return storage
}
