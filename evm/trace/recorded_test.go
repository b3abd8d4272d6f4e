package trace_test

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/big"
	"os"
	"path"
	"strings"
	"testing"

	"ashlar/evm"
	"ashlar/evm/execute"
	"ashlar/evm/trace"
	"ashlar/internal/vectors"

	"github.com/ethereum/go-ethereum/common"
	gethmath "github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// recorded is a case of go-ethereum's: a transaction, the state and block around it,
// and what a tracer made of it.
type recorded struct {
	Genesis *core.Genesis
	Context struct {
		Number     gethmath.HexOrDecimal64
		Difficulty *gethmath.HexOrDecimal256
		Time       gethmath.HexOrDecimal64 `json:"timestamp"`
		GasLimit   gethmath.HexOrDecimal64
		Miner      common.Address
		BaseFee    *gethmath.HexOrDecimal256 `json:"baseFeePerGas"`
	}
	Input        string // with or without 0x
	TracerConfig json.RawMessage
	Result       any
}

// tracerOf is the tracer that a folder of the recorded cases is about.
func tracerOf(folder string) string {
	switch folder {
	case "call_tracer", "call_tracer_withLog":
		return "callTracer"
	case "call_tracer_flat":
		return "flatCallTracer"
	case "call_tracer_legacy":
		return "callTracerLegacy"
	case "prestate_tracer", "prestate_tracer_with_diff_mode":
		return "prestateTracer"
	case "prestate_tracer_legacy":
		return "prestateTracerLegacy"
	case "erc7562_tracer":
		return "erc7562Tracer"
	}
	return ""
}

// TestRecorded: tracers give what go-ethereum recorded of transactions of public networks.
func TestRecorded(t *testing.T) {
	ran := 0
	eachRecorded(t, func(name string, text []byte) {
		ran++
		t.Run(name, func(t *testing.T) {
			var c recorded
			if err := json.Unmarshal(text, &c); err != nil {
				t.Fatal(err)
			}
			got, err := c.traced(t.Context(), string(c.config(tracerOf(path.Base(path.Dir(name))))), roomFor(math.MaxInt))
			if err != nil {
				t.Fatal(err)
			}
			var result any
			if err := json.Unmarshal(got, &result); err != nil {
				t.Fatalf("%v: %s", err, got)
			}
			if a, b := comparable(result), comparable(c.Result); a != b {
				t.Errorf("got  %s\nwant %s", a, b)
			}
		})
	})
	if ran == 0 {
		t.Error("no recorded case was found")
	}
}

func eachRecorded(t *testing.T, found func(name string, text []byte)) {
	file, err := os.Open(vectors.Path(t, "traces.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for all := tar.NewReader(unzipped); ; {
		entry, err := all.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(entry.Name, "geth-tracers/") || path.Ext(entry.Name) != ".json" {
			continue
		}
		text, err := io.ReadAll(all)
		if err != nil {
			t.Fatal(err)
		}
		found(entry.Name, text)
	}
}

// traced is the trace of the case's transaction by a configuration.
func (c *recorded) traced(ctx context.Context, options string, room trace.Room) (out json.RawMessage, err error) {
	config, err := trace.ParseConfig([]byte(options), c.Genesis.Config)
	if err != nil {
		return nil, err
	}
	config.AllowScripts()
	err = c.replay(ctx, func(r *execute.Replay) (err error) {
		out, err = config.AppendTransaction(ctx, r, nil, room)
		return err
	})
	return out, err
}

// replay runs use on a block that has the case's transaction alone.
func (c *recorded) replay(ctx context.Context, use func(*execute.Replay) error) error {
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(common.FromHex(c.Input)); err != nil {
		return err
	}
	header := &types.Header{
		Number: new(big.Int).SetUint64(uint64(c.Context.Number)), Time: uint64(c.Context.Time),
		GasLimit: uint64(c.Context.GasLimit), Coinbase: c.Context.Miner, Difficulty: new(big.Int),
	}
	if c.Context.Difficulty != nil {
		header.Difficulty = (*big.Int)(c.Context.Difficulty)
	}
	if c.Context.BaseFee != nil {
		header.BaseFee = (*big.Int)(c.Context.BaseFee)
	}
	if c.Genesis.Config.IsCancun(header.Number, header.Time) {
		header.ExcessBlobGas, header.BlobGasUsed = new(uint64), new(uint64)
		if c.Genesis.ExcessBlobGas != nil {
			header.ExcessBlobGas = c.Genesis.ExcessBlobGas
		}
	}
	executor, err := execute.New(c.Genesis.Config)
	if err != nil {
		return err
	}
	block := types.NewBlockWithHeader(header).WithBody(types.Body{Transactions: types.Transactions{tx}})
	parent := execute.Parent{Header: &types.Header{Number: header.Number}, State: newAllocated(c.Genesis.Alloc)}
	return executor.Replay(ctx, parent, execute.Decoded(block), execute.ReplayOptions{}, use)
}

func (c *recorded) config(tracer string) []byte {
	config := map[string]any{"tracer": tracer}
	if c.TracerConfig != nil {
		config["tracerConfig"] = c.TracerConfig
	}
	text, err := json.Marshal(config)
	if err != nil {
		panic(err)
	}
	return text
}

// comparable is a result as text with sorted members. It lacks the place in a chain,
// which the test's block does not have, and empty members, which some recorded cases
// write and others leave out for the same tracer.
func comparable(result any) string {
	text, err := json.Marshal(withoutEmpty(result))
	if err != nil {
		panic(err)
	}
	return string(text)
}

func withoutEmpty(value any) any {
	switch value := value.(type) {
	case []any:
		for i := range value {
			value[i] = withoutEmpty(value[i])
		}
		if len(value) == 0 {
			return nil
		}
	case map[string]any:
		for name, member := range value {
			member = withoutEmpty(member)
			switch value[name] = member; name {
			case "blockHash", "blockNumber", "transactionHash", "transactionPosition":
				delete(value, name)
			}
			if member == nil {
				delete(value, name)
			}
		}
		if len(value) == 0 {
			return nil
		}
	case string:
		if value == "0x" || value == "0x0" || value == (common.Address{}).Hex() || value == "" {
			return nil
		}
	}
	return value
}

// roomFor is room for so many bytes.
type roomFor int

var errFull = errors.New("the answer is too long")

func (r roomFor) Check(length int) error {
	if length > int(r) {
		return errFull
	}
	return nil
}

// allocated is the state that a genesis allocates.
type allocated struct {
	accounts map[common.Hash]*types.StateAccount
	codes    map[common.Hash][]byte
	slots    map[common.Hash]map[common.Hash]common.Hash
}

func newAllocated(alloc types.GenesisAlloc) *allocated {
	a := &allocated{make(map[common.Hash]*types.StateAccount), make(map[common.Hash][]byte), make(map[common.Hash]map[common.Hash]common.Hash)}
	for address, from := range alloc {
		account := types.NewEmptyStateAccount()
		account.Nonce = from.Nonce
		if from.Balance != nil {
			account.Balance.SetFromBig(from.Balance)
		}
		if len(from.Code) > 0 {
			account.CodeHash = crypto.Keccak256(from.Code)
			a.codes[common.Hash(account.CodeHash)] = from.Code
		}
		key := evm.HashAddress(address)
		a.slots[key] = make(map[common.Hash]common.Hash)
		for slot, value := range from.Storage {
			if value != (common.Hash{}) {
				a.slots[key][evm.HashSlot(slot)] = value
				account.Root = common.Hash{1}
			}
		}
		a.accounts[key] = account
	}
	return a
}

func (a *allocated) Account(_ context.Context, address common.Hash) (*types.StateAccount, error) {
	if account := a.accounts[address]; account != nil {
		return account.Copy(), nil
	}
	return nil, nil
}

func (a *allocated) Slot(_ context.Context, address, slot common.Hash) (common.Hash, error) {
	return a.slots[address][slot], nil
}

func (a *allocated) Code(_ context.Context, hash common.Hash) ([]byte, error) {
	return a.codes[hash], nil
}

func (a *allocated) Node(context.Context, common.Hash, []byte, common.Hash) ([]byte, error) {
	return nil, evm.ErrMissing
}
