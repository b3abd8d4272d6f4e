package blocktests

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/types/bal"
	"github.com/ethereum/go-ethereum/rlp"
)

// vector is one block test.
type vector struct {
	file string // in the archive of tests
	name string // in the file

	Network string
	Config  struct {
		BlobSchedule map[string]blobSchedule
	}
	GenesisRLP hexutil.Bytes
	Pre        types.GenesisAlloc
	// PostState is the whole state after LastBlockHash; absent where it is large.
	PostState     types.GenesisAlloc
	LastBlockHash common.Hash
	Blocks        []encodedBlock
}

func (v *vector) String() string { return v.file + ": " + v.name }

// encodedBlock is a block of a test: either ExpectException says why it must be
// refused, or BlockHeader is there.
type encodedBlock struct {
	RLP             hexutil.Bytes
	ExpectException string
	BlockHeader     *struct{ Hash common.Hash }
	BlockAccessList *bal.BlockAccessList // from Amsterdam on
}

type blobSchedule struct {
	Target, Max           math.HexOrDecimal64
	BaseFeeUpdateFraction math.HexOrDecimal64
}

// genesis is the first block of a test, under the rules of its network.
func (v *vector) genesis() (*core.Genesis, error) {
	config, err := chainConfig(v.Network, v.Config.BlobSchedule)
	if err != nil {
		return nil, err
	}
	var first types.Block
	if err := rlp.DecodeBytes(v.GenesisRLP, &first); err != nil {
		return nil, fmt.Errorf("decode the genesis: %w", err)
	}
	header := first.Header()
	genesis := &core.Genesis{
		Config:        config,
		Nonce:         header.Nonce.Uint64(),
		Timestamp:     header.Time,
		ExtraData:     header.Extra,
		GasLimit:      header.GasLimit,
		Difficulty:    header.Difficulty,
		Mixhash:       header.MixDigest,
		Coinbase:      header.Coinbase,
		Alloc:         v.Pre,
		BaseFee:       header.BaseFee,
		BlobGasUsed:   header.BlobGasUsed,
		ExcessBlobGas: header.ExcessBlobGas,
		SlotNumber:    header.SlotNumber,
	}
	if got := genesis.ToBlock().Hash(); got != header.Hash() {
		return nil, fmt.Errorf("the genesis has the hash %x, expected %x", got, header.Hash())
	}
	return genesis, nil
}

// encodedTest is a test as it is stored.
type encodedTest struct {
	file, name string
	raw        json.RawMessage
}

// network is what the test says its network is; the rest is not decoded.
func (e encodedTest) network() (string, error) {
	var head struct{ Network string }
	if err := json.Unmarshal(e.raw, &head); err != nil {
		return "", fmt.Errorf("%s: %s: %w", e.file, e.name, err)
	}
	return head.Network, nil
}

func (e encodedTest) decode() (*vector, error) {
	v := &vector{file: e.file, name: e.name}
	if err := json.Unmarshal(e.raw, v); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", e.file, e.name, err)
	}
	return v, nil
}

// readArchive calls found with each test in the JSON files of a .tar.gz, in
// their order and as they come, so that never all of them are in memory.
func readArchive(path string, found func(encodedTest) error) (err error) {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	archived := tar.NewReader(unzipped)
	for {
		head, err := archived.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if head.Typeflag != tar.TypeReg || !strings.HasSuffix(head.Name, ".json") {
			continue
		}
		if err := readTests(head.Name, archived, found); err != nil {
			return fmt.Errorf("%s: %s: %w", path, head.Name, err)
		}
	}
}

// readTests reads a file of tests: an object with a test by each name.
func readTests(file string, in io.Reader, found func(encodedTest) error) error {
	decoder := json.NewDecoder(in)
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return fmt.Errorf("want an object of tests by name, found %v: %w", open, err)
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		test := encodedTest{file: file, name: fmt.Sprint(name)}
		if err := decoder.Decode(&test.raw); err != nil {
			return err
		}
		if err := found(test); err != nil {
			return err
		}
	}
	_, err := decoder.Token() // the end of the object
	return err
}

func TestReadTests(t *testing.T) {
	for _, test := range []struct {
		file, want string
		ok         bool
	}{
		{`{"b": {"network": "Paris"}, "a": {"network": "Berlin", "blocks": []}}`, "b Paris, a Berlin, ", true},
		{`{}`, "", true},
		{`[]`, "", false},
		{`{"a": {"network": "Berlin"}, "b": {`, "a Berlin, ", false},
		{`{"a": {"network": "Berlin"}`, "a Berlin, ", false},
		{``, "", false},
	} {
		var got string
		err := readTests("file", strings.NewReader(test.file), func(e encodedTest) error {
			network, err := e.network()
			got += e.name + " " + network + ", "
			return err
		})
		if (err == nil) != test.ok || got != test.want {
			t.Errorf("%s: got %q and the error %v, expected %q and ok %t", test.file, got, err, test.want, test.ok)
		}
	}
}
