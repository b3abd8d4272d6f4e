package genesis

import (
	"bytes"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/internal/vectors"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rlp"
)

// whole is a genesis file in which the cases below put something wrong.
const whole = `{
  "config": {
    "chainId": 1337,
    "homesteadBlock": 0, "eip150Block": 0, "eip155Block": 0, "eip158Block": 0,
    "byzantiumBlock": 0, "constantinopleBlock": 0, "petersburgBlock": 0,
    "istanbulBlock": 0, "berlinBlock": 0, "londonBlock": 0,
    "shanghaiTime": 10,
    "cancunTime": 20,
    "pragueTime": 30,
    "terminalTotalDifficulty": 0
  },
  "nonce": "0x42",
  "timestamp": 5,
  "extraData": "0x",
  "gasLimit": "0x1c9c380",
  "difficulty": "0x1",
  "alloc": {
    "0x00000000000000000000000000000000000000aa": {"balance": "1000"},
    "00000000000000000000000000000000000000bb": {
      "balance": "0x0", "nonce": "0x1", "code": "0x6000",
      "storage": {"0x01": "0x02", "0x0000000000000000000000000000000000000000000000000000000000000003": "04"}
    }
  }
}
`

func TestParse(t *testing.T) {
	g, warnings, err := Parse([]byte(whole))
	if len(warnings) > 0 {
		t.Errorf("the warnings are %q, want none", warnings)
	}
	if err != nil {
		t.Fatal(err)
	}
	if g.Config.ChainID.Int64() != 1337 || g.Nonce != 0x42 || g.Timestamp != 5 || g.GasLimit != 30_000_000 {
		t.Errorf("the header is %+v", g)
	}
	b := g.Alloc[common.HexToAddress("0xbb")]
	if b.Nonce != 1 || !bytes.Equal(b.Code, []byte{0x60, 0}) || b.Storage[common.HexToHash("0x3")] != common.HexToHash("0x4") {
		t.Errorf("account bb is %+v", b)
	}
	if a := g.Alloc[common.HexToAddress("0xaa")]; a.Balance.Int64() != 1000 {
		t.Errorf("account aa has the balance %s", a.Balance)
	}
}

// TestParseCompletes covers what a file may leave out, since it follows.
func TestParseCompletes(t *testing.T) {
	t.Run("blob schedules", func(t *testing.T) {
		g := mustParse(t, whole)
		blobs := g.Config.BlobScheduleConfig
		if *blobs.Cancun != *params.DefaultCancunBlobConfig || *blobs.Prague != *params.DefaultPragueBlobConfig {
			t.Errorf("the schedule is %+v", blobs)
		}
		if blobs.Cancun == params.DefaultCancunBlobConfig {
			t.Error("the schedule is shared with the params package")
		}
	})
	for _, test := range []struct {
		name     string
		old, new string
		want     *big.Int
	}{
		{"as given", `"terminalTotalDifficulty": 0`, `"terminalTotalDifficulty": 77`, big.NewInt(77)},
		{"no difficulty at genesis", `"terminalTotalDifficulty": 0`, `"terminalTotalDifficulty": null`, new(big.Int)},
		{"shanghai at genesis", `"terminalTotalDifficulty": 0`, `"terminalTotalDifficulty": null`, new(big.Int)},
		{"before the merge for good", `"terminalTotalDifficulty": 0`, `"terminalTotalDifficulty": null`, nil},
		{"shanghai later", `"terminalTotalDifficulty": 0`, `"terminalTotalDifficulty": null`, nil},
		{"out of reach", `"terminalTotalDifficulty": 0`, `"terminalTotalDifficulty": 9223372036854775807`, nil},
		{"barely within reach", `"terminalTotalDifficulty": 0`, `"terminalTotalDifficulty": 4398046511104`, big.NewInt(1 << 42)},
		{"shanghai at genesis, after a difficulty that was never reached", `"terminalTotalDifficulty": 0`, `"terminalTotalDifficulty": 99`, new(big.Int)},
	} {
		t.Run("terminal total difficulty, "+test.name, func(t *testing.T) {
			file := replace(t, whole, test.old, test.new)
			switch test.name {
			case "no difficulty at genesis":
				file = replace(t, file, `"difficulty": "0x1"`, `"difficulty": "0x0"`)
			case "shanghai at genesis":
				file = replace(t, file, `"shanghaiTime": 10`, `"shanghaiTime": 5`)
			case "shanghai at genesis, after a difficulty that was never reached":
				file = replace(t, file, `"shanghaiTime": 10`, `"shanghaiTime": 5`)
			case "before the merge for good":
				for _, fork := range []string{`"shanghaiTime": 10,`, `"cancunTime": 20,`, `"pragueTime": 30,`} {
					file = replace(t, file, fork, "")
				}
			}
			got := mustParse(t, file).Config.TerminalTotalDifficulty
			if (got == nil) != (test.want == nil) || got != nil && got.Cmp(test.want) != 0 {
				t.Errorf("it is %v, want %v", got, test.want)
			}
		})
	}
}

func TestParseRefused(t *testing.T) {
	const schedule = `"blobSchedule": {"cancun": {"target": 3, "max": 6, "baseFeeUpdateFraction": 1}, `
	for _, test := range []struct {
		name     string
		old, new string // "" for old replaces the whole file
		path     string
		line     int
		want     string
	}{
		{"empty", "", "", "", 1, "empty"},
		{"cut short", "", whole[:200], "config", 6, "cut short"},
		{"no JSON", "", "chainId = 1", "", 1, "not JSON"},
		{"an array", "", "[]", "", 1, "found an array, expected an object"},
		{"more after the end", "", whole + "{}", "", 25, "more after the end"},
		{"no config", `"config": {`, `"konfig": {`, "config", 24, "is missing"},
		{"config null", "", `{"config": null}`, "config", 1, "is null"},
		{"config a string", "", `{"config": "mainnet"}`, "config", 1, `found the string "mainnet", expected an object`},
		{"no chain id", `"chainId": 1337,`, "", "config.chainId", 11, "is missing"},
		{"chain id a string", `1337`, `"0x539"`, "config.chainId", 3, "expected a plain number"},
		{"chain id zero", `1337`, `0`, "config.chainId", 3, "above 0"},
		{"chain id a fraction", `1337`, `13.5`, "config.chainId", 3, "found the number 13.5"},
		{"the same in another case", `"chainId": 1337,`, `"chainId": 1337, "chainID": 1337,`, "config.chainID", 3, "given twice"},
		{"an unknown fork by its time", `"pragueTime": 30,`, `"pragueTime": 30, "pariserTime": 31,`, "config.pariserTime", 9, "looks like a fork, and is not known"},
		{"an unknown fork by its block", `"pragueTime": 30,`, `"pragueTime": 30, "classicForkBlock": 0,`, "config.classicForkBlock", 9, "looks like a fork, and is not known"},
		{"a time of words", `"cancunTime": 20`, `"cancunTime": "soon"`, "config.cancunTime", 8, `found the string "soon"`},
		{"a time below zero", `"cancunTime": 20`, `"cancunTime": -1`, "config.cancunTime", 8, "not negative"},
		{"a block over 64 bits", `"londonBlock": 0`, `"londonBlock": 18446744073709551616`, "config.londonBlock", 6, "at most 64 bits"},
		{"a field twice", `"chainId": 1337,`, `"chainId": 1337, "chainId": 1,`, "config.chainId", 3, "given twice"},
		{"forks out of order", `"pragueTime": 30`, `"pragueTime": 15`, "config", 2, "cancunTime enabled at timestamp 20, but pragueTime enabled at timestamp 15"},
		{"a fork left out", `"berlinBlock": 0,`, ``, "config", 2, "berlinBlock not enabled, but londonBlock enabled"},
		{"a bpo fork without schedule", `"pragueTime": 30`, `"pragueTime": 30, "bpo1Time": 40`, "config.blobSchedule.bpo1", 2, "config.bpo1Time is set"},
		{"a schedule without fraction", `"pragueTime": 30,`, `"pragueTime": 30, "blobSchedule": {"cancun": {"target": 3, "max": 6}},`,
			"config.blobSchedule.cancun.baseFeeUpdateFraction", 9, "is missing"},
		{"a fraction of zero", `"pragueTime": 30,`, `"pragueTime": 30, "blobSchedule": {"cancun": {"target": 3, "max": 6, "baseFeeUpdateFraction": 0}},`,
			"config.blobSchedule.cancun", 9, "above 0"},
		{"a target over the max", `"pragueTime": 30,`, `"pragueTime": 30, "blobSchedule": {"cancun": {"target": 7, "max": 6, "baseFeeUpdateFraction": 1}},`,
			"config.blobSchedule.cancun", 9, "target is 7"},
		{"a schedule of an unknown fork", `"pragueTime": 30,`, `"pragueTime": 30, ` + schedule + `"bpo9": {}},`, "config.blobSchedule.bpo9", 9, "unknown field"},
		{"a schedule of Osaka's own", `"pragueTime": 30,`, `"pragueTime": 30, ` + schedule + `"osaka": {"target": 1, "max": 2, "baseFeeUpdateFraction": 3}},`,
			"config.blobSchedule.osaka", 9, "differs from the schedule that is in force"},
		{"a binary tree", `"pragueTime": 30,`, `"pragueTime": 30, "ubtTime": 99,`, "config.ubtTime", 9, "not supported"},
		{"rules of another chain", `"pragueTime": 30,`, `"pragueTime": 30, "optimism": {},`, "config.optimism", 9, "the rules of the OP Stack cannot be verified"},
		{"seals of another chain", `"pragueTime": 30,`, `"pragueTime": 30, "qbft": {"epochlength": 30000},`, "config.qbft", 9, "blocks sealed by QBFT cannot be verified"},
		{"fees of another chain", `"pragueTime": 30,`, `"pragueTime": 30, "zeroBaseFee": true,`, "config.zeroBaseFee", 9, "a base fee of zero"},
		{"two blocks of Petersburg", `"pragueTime": 30,`, `"pragueTime": 30, "constantinopleFixBlock": 3,`, "config.constantinopleFixBlock", 9, "is 3 and config.petersburgBlock is 0"},
		{"clique without signers", `"pragueTime": 30,`, `"pragueTime": 30, "clique": {"period": 1, "epoch": 1},`, "extraData", 14, "found 0 bytes"},
		{"clique without epoch", `"pragueTime": 30,`, `"pragueTime": 30, "clique": {"period": 1},`, "config.clique.epoch", 9, "is missing"},
		{"clique with two periods", `"pragueTime": 30,`, `"pragueTime": 30, "clique": {"period": 1, "epoch": 9, "blockperiodseconds": 2},`, "config.clique.period", 9, "is 1, and by Besu's name it is 2"},
		{"no gas limit", `"gasLimit": "0x1c9c380",`, "", "gasLimit", 24, "is missing"},
		{"gas limit empty", `"0x1c9c380"`, `""`, "gasLimit", 15, "expected a number"},
		{"no difficulty", `"difficulty": "0x1",`, "", "difficulty", 24, "is missing"},
		{"no alloc", "", `{"config": {"chainId": 1}, "gasLimit": 1, "difficulty": 1}`, "alloc", 1, "is missing"},
		{"a block other than 0", `"timestamp": 5,`, `"timestamp": 5, "number": "0x1",`, "number", 13, "want 0"},
		{"extra data not hexadecimal", `"extraData": "0x"`, `"extraData": "hello"`, "extraData", 14, "expected bytes"},
		{"a short coinbase", `"timestamp": 5,`, `"timestamp": 5, "coinbase": "0x01",`, "coinbase", 13, "expected 20 bytes"},
		{"a mix hash by both names", `"timestamp": 5,`, `"timestamp": 5, "mixHash": null, "mixhash": null,`, "mixhash", 13, "given twice"},
		{"an address too short", `0x00000000000000000000000000000000000000aa`, `0xaa`, "alloc[0xaa]", 18, "20 bytes"},
		{"an account twice", `"00000000000000000000000000000000000000bb"`, `"0x00000000000000000000000000000000000000AA"`,
			"alloc[0x00000000000000000000000000000000000000aa]", 19, "given twice"},
		{"an account null", `{"balance": "1000"}`, `null`, "alloc[0x00000000000000000000000000000000000000aa]", 18, "found null"},
		{"no balance", `{"balance": "1000"}`, `{}`, "alloc[0x00000000000000000000000000000000000000aa].balance", 18, "is missing"},
		{"a balance of words", `"balance": "1000"`, `"balance": "a lot"`, "alloc[0x00000000000000000000000000000000000000aa].balance", 18, `found the string "a lot"`},
		{"a balance below zero", `"balance": "1000"`, `"balance": "-1"`, "alloc[0x00000000000000000000000000000000000000aa].balance", 18, "not negative"},
		{"a balance over 256 bits", `"balance": "1000"`, `"balance": "0x1` + strings.Repeat("0", 64) + `"`, "alloc[0x00000000000000000000000000000000000000aa].balance", 18, "at most 256 bits"},
		{"code of odd length", `"0x6000"`, `"0x600"`, "alloc[0x00000000000000000000000000000000000000bb].code", 20, "expected bytes"},
		{"a storage key too long", `"0x01"`, `"0x` + strings.Repeat("0", 66) + `"`, "alloc[0x00000000000000000000000000000000000000bb].storage[0x" + strings.Repeat("0", 66) + "]", 21, "up to 32 bytes"},
		{"a storage key twice", `"0x01"`, `"0x03"`, "alloc[0x00000000000000000000000000000000000000bb].storage[0x" + strings.Repeat("0", 63) + "3]", 21, "given twice"},
		{"a storage value of words", `"04"`, `"four"`, "alloc[0x00000000000000000000000000000000000000bb].storage[0x" + strings.Repeat("0", 63) + "3]", 21, "up to 32 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := test.new
			if test.old != "" {
				file = replace(t, whole, test.old, test.new)
			}
			_, _, err := Parse([]byte(file))
			var at *FieldError
			if !errors.As(err, &at) {
				t.Fatalf("got the error %v, want one of a field", err)
			}
			if at.Path != test.path || at.Line != test.line || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %q (line %d, path %q)\nwant line %d, path %q and %q", err, at.Line, at.Path, test.line, test.path, test.want)
			}
		})
	}
}

func TestLoadRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "genesis.json")
	if err := os.WriteFile(path, []byte(`{"config": {}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Load(path); err == nil || !strings.Contains(err.Error(), path+": line 1: config.chainId: is missing") {
		t.Errorf("a wrong file: %v", err)
	}
	if _, _, err := Load("ropsten"); err == nil || !strings.Contains(err.Error(), "ropsten: no such file or directory (want one of mainnet, sepolia, holesky, hoodi, or the path") {
		t.Errorf("neither a name nor a file: %v", err)
	}
	if g, _, err := Load("hoodi"); err != nil || g.Config.ChainID.Int64() != 560048 {
		t.Errorf("a built-in network: %v", err)
	}
}

// TestLoadVectors loads genesis files of other clients. The hash of each is the
// parent of the first block of the chain beside it.
func TestLoadVectors(t *testing.T) {
	for _, test := range []struct{ folder, chain string }{
		{"execution-apis", "chain.rlp"},
		{"chains/sync-3000", "chain.rlp"},
		{"chains/prague-with-state", "chain.rlp"},
		{"chains/reorg-branches", "blocks_1_td_196416.rlp"},
		{"chains/reorg-branches", "blocks_1024_td_135112316.rlp"},
	} {
		t.Run(test.folder+"/"+test.chain, func(t *testing.T) {
			g, _, err := Load(vectors.Path(t, test.folder, "genesis.json"))
			if err != nil {
				t.Fatal(err)
			}
			chain, err := os.ReadFile(vectors.Path(t, test.folder, test.chain))
			if err != nil {
				t.Fatal(err)
			}
			var first types.Block
			if err := rlp.NewStream(bytes.NewReader(chain), 0).Decode(&first); err != nil {
				t.Fatal(err)
			}
			want := first.ParentHash()
			if first.NumberU64() == 0 {
				want = first.Hash()
			}
			if got := g.ToBlock().Hash(); got != want {
				t.Errorf("the genesis hash is %s, the chain begins with %s", got, want)
			}
		})
	}
}

// TestBuiltinVectors compares the built-in networks with geth's own genesis
// files: the block by its hash, the configuration field by field.
func TestBuiltinVectors(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			file, _, err := Load(vectors.Path(t, "genesis", name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			own, _ := Builtin(name)
			if file.ToBlock().Hash() != own.ToBlock().Hash() {
				t.Error("the genesis blocks differ")
			}
			config := *own.Config
			if file.Config.AmsterdamTime == nil {
				config.AmsterdamTime = nil // scheduled after these files were written
			}
			if got, want := config.String(), file.Config.String(); got != want {
				t.Errorf("the configuration is %s, want %s", got, want)
			}
		})
	}
}

func mustParse(t *testing.T, file string) *core.Genesis {
	t.Helper()
	g, _, err := Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func replace(t *testing.T, file, old, new string) string {
	t.Helper()
	if strings.Count(file, old) != 1 {
		t.Fatalf("the file has %q %d times, want once", old, strings.Count(file, old))
	}
	return strings.Replace(file, old, new, 1)
}
