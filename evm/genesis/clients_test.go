package genesis

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
)

// accounts of the files below.
const funded = `"alloc": {"00000000000000000000000000000000000000aa": {"balance": "0x10"}}`

// besuNetwork is written as Besu's files of public networks are: with where to find
// peers, where to begin a sync, and the contracts of requests. Besu writes names in any
// case.
const besuNetwork = `{
  "config": {
    "chainID": 777,
    "homesteadBlock": 0, "eip150Block": 0, "eip155Block": 0, "eip158Block": 0, "byzantiumBlock": 0,
    "constantinopleBlock": 0, "petersburgBlock": 0, "istanbulBlock": 0, "berlinBlock": 0, "londonBlock": 0,
    "mergeNetSplitBlock": 12, "terminalTotalDifficulty": 500,
    "shanghaiTime": 100, "cancunTime": 200, "pragueTime": 300,
    "blobSchedule": {
      "cancun": {"target": 3, "max": 6, "baseFeeUpdateFraction": 3338477},
      "prague": {"target": 6, "max": 9, "baseFeeUpdateFraction": 5007716}
    },
    "ethash": {},
    "depositContractAddress": "0x4242424242424242424242424242424242424242",
    "withdrawalRequestContractAddress": "0x00000961ef480eb55e80d19ad83579a64c007002",
    "consolidationRequestContractAddress": "0x0000bbddc7ce488642fb579f8b00f3a590007251",
    "discovery": {"dns": "enrtree://somewhere", "bootnodes": ["enode://one", "enode://two"]},
    "checkpoint": {"hash": "0x01", "number": 9, "totalDifficulty": "0x1"}
  },
  "gasLimit": "0x1c9c380", "difficulty": "0x20", "nonce": "0x000000000000000", "extraData": "0x11",
  "mixhash": "0x0000000000000000000000000000000000000000000000000000000000000000",
  ` + funded + `
}`

// besuDevelopment is written as Besu's files of development networks are: with notes
// beside the accounts, and Petersburg by another name.
const besuDevelopment = `{
  "config": {
    "chainId": 777,
    "homesteadBlock": 0, "daoForkBlock": 0, "eip150Block": 0, "eip155Block": 0, "eip158Block": 0,
    "byzantiumBlock": 0, "constantinopleBlock": 0, "constantinopleFixBlock": 3,
    "contractSizeLimit": 2147483647,
    "ethash": {"fixeddifficulty": 100}
  },
  "gasLimit": "0x1000000", "difficulty": "0x10000",
  "alloc": {
    "00000000000000000000000000000000000000aa": {"privateKey": "01", "comment": "not on a real chain", "balance": "90000"},
    "00000000000000000000000000000000000000bb": {"privateKey": "02", "comment": "not on a real chain", "balance": "0x90"}
  }
}`

// besuClique is a network that began with clique, by Besu's names of its numbers.
const besuClique = `{
  "config": {
    "chainId": 777,
    "homesteadBlock": 0, "eip150Block": 0, "eip155Block": 0, "eip158Block": 0, "byzantiumBlock": 0,
    "constantinopleBlock": 0, "petersburgBlock": 0, "istanbulBlock": 0, "berlinBlock": 0, "londonBlock": 0,
    "clique": {"createemptyblocks": true, "blockperiodseconds": 2, "epochlength": 30000}
  },
  "gasLimit": "0x1c9c380", "difficulty": "0x1",
  "extraData": "0x%s", ` + funded + `
}`

// kurtosis is written as ethereum-genesis-generator writes it for geth, %s for Besu:
// Kurtosis makes its networks with it.
const kurtosis = `{
  "config": {
    "chainId": 777,
    "homesteadBlock": 0, "eip150Block": 0, "eip155Block": 0, "eip158Block": 0, "byzantiumBlock": 0,
    "constantinopleBlock": 0, "petersburgBlock": 0, "istanbulBlock": 0, "berlinBlock": 0, "londonBlock": 0,
    %s
    "terminalTotalDifficulty": 0,
    "shanghaiTime": 0, "cancunTime": 0, "pragueTime": 0, "osakaTime": 0, "bpo1Time": 50, "amsterdamTime": 90, "bogotaTime": 99,
    "depositContractAddress": "0x00000000219ab540356cBB839Cbe05303d7705Fa",
    "blobSchedule": {
      "cancun": {"target": 3, "max": 6, "baseFeeUpdateFraction": 3338477},
      "prague": {"target": 6, "max": 9, "baseFeeUpdateFraction": 5007716},
      "bpo1": {"target": 9, "max": 12, "baseFeeUpdateFraction": 5007716},
      "bogota": {"target": 9, "max": 12, "baseFeeUpdateFraction": 5007716}
    }
  },
  "coinbase": "0x0000000000000000000000000000000000000000",
  "baseFeePerGas": "0x3B9ACA00", "difficulty": "0x1", "extraData": "", "gasLimit": "0x3938700", "nonce": "0x1234",
  "mixhash": "0x0000000000000000000000000000000000000000000000000000000000000000",
  "timestamp": "40", ` + funded + `
}`

// TestParseOtherClients reads files as other clients and tools write them. It expects a
// warning of what is ignored, once for each field.
func TestParseOtherClients(t *testing.T) {
	signer := strings.Repeat("00", 32) + strings.Repeat("ab", 20) + strings.Repeat("00", 65)
	for _, test := range []struct {
		name, file string
		warnings   []string
	}{
		{"a public network of Besu", besuNetwork, []string{
			"line 14: config.withdrawalRequestContractAddress: a field of other clients; it is ignored: EIP-7002 fixes the address",
			"line 15: config.consolidationRequestContractAddress: a field of other clients; it is ignored: EIP-7251 fixes the address",
			"line 16: config.discovery: a field of other clients; it is ignored: is about finding peers",
			"line 17: config.checkpoint: a field of other clients; it is ignored: is about where a client begins to sync",
		}},
		{"a development network of Besu", besuDevelopment, []string{
			"line 6: config.contractSizeLimit: a field of other clients; it is ignored: the limits of Ethereum hold: blocks that need others are refused",
			"line 7: config.ethash.fixeddifficulty: unknown field; it is ignored",
			"line 11: alloc[…].privateKey: unknown field; it is ignored",
			"line 11: alloc[…].comment: unknown field; it is ignored",
		}},
		{"a network of Besu with clique", fmt.Sprintf(besuClique, signer), nil},
		{"Kurtosis for geth", fmt.Sprintf(kurtosis, `"mergeNetsplitBlock": 0, "terminalTotalDifficultyPassed": true,`), nil},
		{"Kurtosis for Besu", fmt.Sprintf(kurtosis, `"preMergeForkBlock": 0, "ethash": {},`), []string{
			"line 6: config.preMergeForkBlock: a field of other clients; it is ignored: names the merge for peers",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, warnings, err := Parse([]byte(test.file))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(warnings, test.warnings) {
				t.Errorf("the warnings are\n%s\nwant\n%s", strings.Join(warnings, "\n"), strings.Join(test.warnings, "\n"))
			}
			if g.Config.ChainID.Int64() != 777 {
				t.Errorf("the chain ID is %d", g.Config.ChainID)
			}
		})
	}
}

// TestParseBesu: what Besu calls by other names has its effect.
func TestParseBesu(t *testing.T) {
	network := mustParse(t, besuNetwork)
	if n := network.Config.MergeNetsplitBlock; n == nil || n.Int64() != 12 {
		t.Errorf("the block of the merge is %v, want 12", n)
	}
	if n := mustParse(t, besuDevelopment).Config.PetersburgBlock; n == nil || n.Int64() != 3 {
		t.Errorf("Petersburg is at block %v, want 3", n)
	}
	clique := mustParse(t, fmt.Sprintf(besuClique, strings.Repeat("00", 32+20+65))).Config.Clique
	if clique.Period != 2 || clique.Epoch != 30000 {
		t.Errorf("clique has the period %d and the epoch %d", clique.Period, clique.Epoch)
	}
	// The files of one network for different clients have one genesis block.
	geth := mustParse(t, fmt.Sprintf(kurtosis, `"mergeNetsplitBlock": 0, "terminalTotalDifficultyPassed": true,`))
	besu := mustParse(t, fmt.Sprintf(kurtosis, `"preMergeForkBlock": 0, "ethash": {},`))
	if a, b := geth.ToBlock().Hash(), besu.ToBlock().Hash(); a != b || a == types.EmptyRootHash {
		t.Errorf("geth's file has the genesis block %s, Besu's %s", a, b)
	}
}

// TestParseWarns: unknown fields anywhere but among what looks like a fork.
func TestParseWarns(t *testing.T) {
	file := replace(t, whole, `"nonce": "0x42",`, `"nonce": "0x42", "remark": {"by": ["somebody"]},`)
	file = replace(t, file, `"pragueTime": 30,`, `"pragueTime": 30, "shuffle": 1, "zeroBaseFee": false, "verkleTime": null,`)
	file = replace(t, file, `"balance": "1000"`, `"balance": "1000", "root": "0x"`)
	_, warnings, err := Parse([]byte(file))
	want := []string{
		"line 9: config.shuffle: unknown field; it is ignored",
		"line 12: remark: unknown field; it is ignored",
		"line 18: alloc[…].root: unknown field; it is ignored",
	}
	if err != nil || !slices.Equal(warnings, want) {
		t.Errorf("the warnings are %q and the error %v, want %q", warnings, err, want)
	}
}
