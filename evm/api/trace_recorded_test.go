package api_test

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"os"
	"path"
	"strings"
	"testing"

	"ashlar/evm/ingest/ingesttest"
	"ashlar/internal/jsondiff"
	"ashlar/internal/vectors"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

// readTraces returns the files below a folder of the recorded traces, by path.
func readTraces(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	file, err := os.Open(vectors.Path(t, "traces.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string][]byte)
	for all := tar.NewReader(unzipped); ; {
		entry, err := all.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, name, ok := strings.Cut(entry.Name, folder+"/"); ok && entry.Typeflag == tar.TypeReg {
			if found[name], err = io.ReadAll(all); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// besuChain is the chain that Besu recorded its traces of: it made the blocks itself from
// the transactions, so only their hashes are others here.
func besuChain(t *testing.T, files map[string][]byte) *service {
	t.Helper()
	var read struct{ Alloc types.GenesisAlloc }
	if err := json.Unmarshal(files["chain-data/genesis.json"], &read); err != nil {
		t.Fatal(err)
	}
	zero := new(big.Int)
	config := &params.ChainConfig{
		ChainID: big.NewInt(1982), HomesteadBlock: zero, EIP150Block: zero, EIP155Block: zero, EIP158Block: zero, ByzantiumBlock: zero,
		ConstantinopleBlock: zero, PetersburgBlock: zero, IstanbulBlock: zero, Ethash: new(params.EthashConfig),
	}
	genesis := &core.Genesis{Config: config, GasLimit: 0x100000000000, Difficulty: big.NewInt(15), Alloc: read.Alloc, Nonce: 0x42}
	var wanted struct {
		Blocks []struct {
			Transactions []struct {
				SecretKey, GasLimit, GasPrice, To, Value, Data string
			}
		}
	}
	if err := json.Unmarshal(files["chain-data/blocks.json"], &wanted); err != nil {
		t.Fatal(err)
	}
	_, blocks, _ := core.GenerateChainWithGenesis(genesis, ethash.NewFaker(), len(wanted.Blocks), func(i int, b *core.BlockGen) {
		for _, tx := range wanted.Blocks[i].Transactions {
			key, err := crypto.ToECDSA(common.FromHex(tx.SecretKey))
			if err != nil {
				t.Fatal(err)
			}
			data := &types.LegacyTx{
				Nonce: b.TxNonce(crypto.PubkeyToAddress(key.PublicKey)), Gas: common.HexToHash(tx.GasLimit).Big().Uint64(),
				GasPrice: common.HexToHash(tx.GasPrice).Big(), Value: common.HexToHash(tx.Value).Big(), Data: common.FromHex(tx.Data),
			}
			if tx.To != "" {
				to := common.HexToAddress(tx.To)
				data.To = &to
			}
			b.AddTx(types.MustSignNewTx(key, types.HomesteadSigner{}, data))
		}
	})
	return serve(t, genesis, ingesttest.SourceOf(blocks))
}

// TestTracesOfBesu replays Besu's recorded conversations about traces in Parity's form.
func TestTracesOfBesu(t *testing.T) {
	files := readTraces(t, "besu-trace")
	served := besuChain(t, files)
	ran, used := 0, make(map[string]int)
	for name, text := range files {
		if !strings.HasPrefix(name, "specs/") || path.Ext(name) != ".json" {
			continue
		}
		var c struct{ Request, Response json.RawMessage }
		if err := json.Unmarshal(text, &c); err != nil {
			t.Fatal(err)
		}
		ran++
		t.Run(strings.TrimPrefix(name, "specs/"), func(t *testing.T) {
			// Besu's filters ask for frames that match both lists of addresses.
			request := strings.Replace(string(c.Request), `"fromBlock"`, `"mode": "intersection", "fromBlock"`, 1)
			got := served.Answer(t.Context(), []byte(request), nil)
			want, err := jsondiff.Decode(c.Response)
			if err != nil {
				t.Fatal(err)
			}
			answered, err := jsondiff.Decode(got)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range jsondiff.Values(withoutHashes(want), withoutHashes(answered)) {
				if why := besuOwn(name, d); why != "" {
					used[why]++
					continue
				}
				t.Errorf("Besu against Ashlar: %s", d)
			}
		})
	}
	if ran == 0 {
		t.Error("no recorded conversation was found")
	}
	t.Log("differences that are Besu's own:", used)
}

// besuOwn says why Besu answers otherwise than Erigon, reth and Ashlar, where it does.
func besuOwn(name string, d jsondiff.Difference) string {
	_, absent := d.A.(jsondiff.Absent)
	_, left := d.B.(jsondiff.Absent)
	last := d.Path[strings.LastIndex(d.Path, ".")+1:]
	switch {
	case last == "creationMethod" && absent:
		return "it names the method of creation rarely"
	case last == "revertReason", last == "output" && d.A == "0x":
		return "it has what a revert returned in a member of its own"
	case last == "result" && absent:
		return "it says nothing of a reverted frame's gas and output"
	case last == "transactionHash" && d.A == nil && left, last == "transactionPosition" && d.A == nil && left:
		return "it names the transaction of a reward as null"
	case strings.Contains(name, "callMany"):
		return "it runs the calls as one transaction, which makes writes of the same slot cheaper"
	case last == "ex" && d.B == nil:
		return "it shows what a jump did that failed"
	case last == "message", last == "error":
		return "wording"
	case strings.Contains(d.Path, "vmTrace") && last == "op" && absent:
		return "it does not name instructions, as Erigon and reth do and clients require"
	case strings.Contains(d.Path, "vmTrace") && last == "cost":
		return "costs of instructions lack what an account's creation costs"
	case strings.Contains(d.Path, "vmTrace") && strings.HasSuffix(d.Path, "ops"):
		return "it leaves out an instruction that fails"
	}
	return ""
}

// withoutHashes takes out the hashes of blocks.
func withoutHashes(value any) any {
	switch value := value.(type) {
	case []any:
		for i := range value {
			value[i] = withoutHashes(value[i])
		}
	case map[string]any:
		delete(value, "blockHash")
		for name := range value {
			value[name] = withoutHashes(value[name])
		}
	}
	return value
}
