package feeder

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ashlar/internal/vectors"
	"ashlar/starknet"
	"ashlar/starknet/source/wire"
	"ashlar/strictjson"

	"github.com/ethereum/go-ethereum/common"
)

func gatewayFile(t testing.TB, name string) string {
	return vectors.Path(t, "starknet", "feeder", name+".json")
}

// All recorded responses of gateways, of any version, are read, except for those about blocks that
// are not part of the chain.
func TestEveryAnswerOfAGatewayIsRead(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(vectors.Path(t, "starknet", "feeder"), "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		blocks, err := readAll(t, path)
		if strings.HasSuffix(path, "_pending.json") {
			var wrong *strictjson.Error
			if !errors.As(err, &wrong) || !strings.HasSuffix(wrong.Place, "block_number") {
				t.Errorf("%s: %v, expected an error about the missing number of a pending block", path, err)
			}
			continue
		}
		if err != nil || len(blocks) != 1 {
			t.Errorf("%s: %d blocks, %v, expected one", path, len(blocks), err)
		}
	}
}

func TestChainsOfAGatewayAreLinked(t *testing.T) {
	for _, test := range []struct {
		network string
		last    uint64
	}{{"mainnet", 2}, {"sepolia", 6}, {"goerli2", 6}} {
		var paths []string
		for number := range test.last + 1 {
			paths = append(paths, gatewayFile(t, fmt.Sprintf("%s_block_%d", test.network, number)))
		}
		slices.Reverse(paths)
		blocks, err := readAll(t, paths...)
		if err != nil || uint64(len(blocks)) != test.last+1 {
			t.Errorf("%s: %d blocks, %v, expected %d", test.network, len(blocks), err, test.last+1)
		}
	}
}

// Members that changed over time are read into the same fields.
func TestMembersOfAllVersions(t *testing.T) {
	felt := func(text string) starknet.Felt {
		f, err := starknet.ParseFelt(text)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for _, test := range []struct {
		file  string
		check func(b *starknet.Block) bool
		what  string
	}{
		{"mainnet_block_192", func(b *starknet.Block) bool {
			return b.Version == "" && b.Sequencer.IsZero() && b.L1GasPrice == starknet.GasPrice{}
		}, "neither version nor sequencer nor price"},
		{"mainnet_block_2889", func(b *starknet.Block) bool {
			return b.Version == "" && !b.Sequencer.IsZero() && b.L1GasPrice == starknet.GasPrice{Wei: felt("0x1086b5efe4")}
		}, "a sequencer, and a price in wei"},
		{"integration_block_319132", func(b *starknet.Block) bool {
			return b.Version == "0.13.0" && b.L1GasPrice == starknet.GasPrice{Wei: felt("0x3b9aca08"), Fri: felt("0x2540be400")}
		}, "both prices of L1 gas"},
		{"sepolia-integration_block_35748", func(b *starknet.Block) bool {
			return b.Version == "0.13.2" && b.L1DataMode == starknet.Blob && !b.L1DataGasPrice.Fri.IsZero() &&
				!b.Commitments.Receipts.IsZero() && b.Commitments.StateDiffLength > 0 &&
				b.Transactions[0].Receipt.Gas == starknet.GasUsed{L1: 117620, L1Data: 192}
		}, "commitments, and gas that was used"},
		{"sepolia-integration_block_35749", func(b *starknet.Block) bool {
			return slices.ContainsFunc(b.Transactions, func(t starknet.Transaction) bool {
				return t.Kind == starknet.DeployAccount && t.Version == 3 && !t.ContractAddress.IsZero()
			})
		}, "an account that deploys itself"},
		{"integration_block_304740", func(b *starknet.Block) bool {
			return slices.ContainsFunc(b.Transactions, func(t starknet.Transaction) bool {
				return t.Receipt.Reverted && t.Receipt.RevertReason != ""
			})
		}, "a failure and its reason"},
	} {
		blocks, err := readAll(t, gatewayFile(t, test.file))
		if err != nil {
			t.Fatal(err)
		}
		if !test.check(blocks[0]) {
			t.Errorf("%s: expected %s, read %+v", test.file, test.what, blocks[0].Header)
		}
	}
}

// The hash is that of the message in Starknet's contract on L1.
func TestMessageHash(t *testing.T) {
	// From mainnet's transaction 0x63f36452a4255a9d3f06def95a08bbc295f0de0515adefbf04ee795ed4c3f12.
	message := `{"from_address":"0xae0ee0a63a2ce6baeeffe56e7714fb4efe48d419",` +
		`"to_address":"0x73314940630fd6dcda0d772d4c972c4e0a9946bef9dabf4ef84eda8ef542b82",` +
		`"selector":"0x2d757788a8d8d6f21d1cd40bce38a8222d70654214e96ff95d8086e684fbee5",` +
		`"payload":["0x2c63ec1313901744d1321b93bda51418cc18998a1562d368960711367f7530f","0x11e14e1039c000","0x0"],"nonce":"0x17824b"}`
	in := wire.NewReader(strings.NewReader(message), maxBlockBytes)
	if err := in.Next(); err != nil {
		t.Fatal(err)
	}
	got, err := readConsumedMessage(in)
	want := common.HexToHash("0x573aeff3cf703775e8a76a27adee9e80f2ce558a6a38ec87e0249a8b175e5c1a")
	if err != nil || got != want {
		t.Errorf("the hash is %s, %v, expected %s", got, err, want)
	}
}
