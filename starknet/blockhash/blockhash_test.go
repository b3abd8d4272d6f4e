package blockhash_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ashlar/internal/vectors"
	"ashlar/starknet"
	"ashlar/starknet/blockhash"
	"ashlar/starknet/source/feeder"
)

// chainID returns a chain ID as a felt.
func chainID(text string) (f starknet.Felt) {
	copy(f[len(f)-len(text):], text)
	return f
}

// checkers returns the checkers for the networks of the test data, by the first part of a file's
// name.
func checkers() map[string]*blockhash.Checker {
	return map[string]*blockhash.Checker{
		"mainnet":             blockhash.New(chainID("SN_MAIN")),
		"goerli":              blockhash.New(chainID("SN_GOERLI")),
		"goerli2":             blockhash.New(chainID("SN_GOERLI2")),
		"integration":         blockhash.New(chainID("SN_GOERLI")),
		"sepolia":             blockhash.New(chainID("SN_SEPOLIA")),
		"sepolia-integration": blockhash.New(chainID("SN_INTEGRATION_SEPOLIA")),
	}
}

func read(t testing.TB, path string) *starknet.Block {
	t.Helper()
	files, err := feeder.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	block, err := files.Next()
	if err != nil {
		t.Fatal(err)
	}
	return block
}

// Every recorded block of a gateway is confirmed, except for those of the months in which goerli's
// sequencer was not published.
func TestHashesOfRealBlocks(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(vectors.Path(t, "starknet", "feeder"), "*block_*.json"))
	if err != nil {
		t.Fatal(err)
	}
	networks := checkers()
	versions := make(map[string]int)
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		if strings.HasSuffix(name, "_pending") {
			continue
		}
		want := blockhash.Confirmed
		if slices.Contains([]string{"goerli_block_119802", "goerli_block_156000"}, name) {
			want = blockhash.UnknownRule
		}
		block := read(t, path)
		network, _, _ := strings.Cut(name, "_")
		got, err := networks[network].Check(block)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got != want {
			t.Errorf("%s: the hash is %s, expected %s", name, got, want)
		}
		if got == blockhash.Confirmed {
			versions[block.Version]++
		}
	}
	t.Logf("confirmed blocks by version: %v", versions)
}

// A missing, changed or moved event is detected, and so is any other change to the inputs of a
// hash.
func TestChangedBlocksAreRefused(t *testing.T) {
	changes := []struct {
		name   string
		change func(b *starknet.Block)
		from   string // the file with the first version whose hash covers it
	}{
		{"another parent", func(b *starknet.Block) { b.Parent[31] ^= 1 }, ""},
		{"another state", func(b *starknet.Block) { b.NewRoot[31] ^= 1 }, ""},
		{"another number", func(b *starknet.Block) { b.Number++ }, ""},
		{"another transaction", func(b *starknet.Block) { b.Transactions[0].Hash[31] ^= 1 }, ""},
		{"a transaction fewer", func(b *starknet.Block) { b.Transactions = b.Transactions[1:] }, ""},
		{"another signature", func(b *starknet.Block) {
			b.Transactions[invoke(b)].Signature = []starknet.Felt{starknet.FeltOf(1)}
		}, ""},
		{"another time", func(b *starknet.Block) { b.Timestamp++ }, "mainnet_block_1059"},
		{"an event fewer", func(b *starknet.Block) {
			r := &b.Transactions[eventful(b)].Receipt
			r.Events = r.Events[1:]
		}, "mainnet_block_1059"},
		{"an event twice", func(b *starknet.Block) {
			r := &b.Transactions[eventful(b)].Receipt
			r.Events = append(r.Events, r.Events[0])
		}, "mainnet_block_1059"},
		{"an event of another contract", func(b *starknet.Block) {
			b.Transactions[eventful(b)].Receipt.Events[0].From[31] ^= 1
		}, "mainnet_block_1059"},
		{"a key that is data", func(b *starknet.Block) {
			e := &b.Transactions[eventful(b)].Receipt.Events[0]
			e.Keys, e.Data = nil, append(slices.Clone(e.Keys), e.Data...)
		}, "mainnet_block_1059"},
		{"another sequencer", func(b *starknet.Block) { b.Sequencer[31] ^= 1 }, "mainnet_block_11817"},
		{"another fee", func(b *starknet.Block) { b.Transactions[0].Receipt.ActualFee[31] ^= 1 }, "sepolia-integration_block_35748"},
		{"a failure", func(b *starknet.Block) { b.Transactions[0].Receipt.Reverted = true }, "sepolia-integration_block_35748"},
		{"another state diff", func(b *starknet.Block) { b.Commitments.StateDiff[31] ^= 1 }, "sepolia-integration_block_35748"},
		{"another price", func(b *starknet.Block) { b.L1DataGasPrice.Fri[31] ^= 1 }, "sepolia-integration_block_35748"},
		{"another data mode", func(b *starknet.Block) { b.L1DataMode ^= starknet.Blob }, "sepolia-integration_block_35748"},
		{"another event commitment", func(b *starknet.Block) { b.Commitments.Events[31] ^= 1 }, "sepolia-integration_block_35748"},
	}
	networks := checkers()
	files := []string{"mainnet_block_192", "mainnet_block_1059", "mainnet_block_11817", "sepolia_block_56377", "sepolia-integration_block_35748"}
	for _, file := range files {
		network, _, _ := strings.Cut(file, "_")
		for _, test := range changes {
			if slices.Index(files, file) < slices.Index(files, test.from) {
				continue
			}
			block := read(t, vectors.Path(t, "starknet", "feeder", file+".json"))
			test.change(block)
			var wrong *blockhash.Error
			if verdict, err := networks[network].Check(block); !errors.As(err, &wrong) {
				t.Errorf("%s with %s: the verdict is %s, %v, expected an error", file, test.name, verdict, err)
			}
		}
	}
}

// invoke returns the index of a transaction whose signature is covered in every version.
func invoke(b *starknet.Block) int {
	return max(0, slices.IndexFunc(b.Transactions, func(t starknet.Transaction) bool { return t.Kind == starknet.Invoke }))
}

// eventful returns the index of a transaction with an event that has a key.
func eventful(b *starknet.Block) int {
	return slices.IndexFunc(b.Transactions, func(t starknet.Transaction) bool {
		return len(t.Receipt.Events) > 0 && len(t.Receipt.Events[0].Keys) > 0
	})
}

// Without signatures, no real block is found to be wrong, and each is confirmed if its header has
// the commitment by the rules of its time.
func TestRealBlocksWithoutSignatures(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(vectors.Path(t, "starknet", "feeder"), "*block_*.json"))
	if err != nil {
		t.Fatal(err)
	}
	networks := checkers()
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		if strings.HasSuffix(name, "_pending") {
			continue
		}
		block := read(t, path)
		unsigned := true
		for i := range block.Transactions {
			unsigned = unsigned && len(block.Transactions[i].Signature) == 0
			block.Transactions[i].Signature = nil
		}
		network, _, _ := strings.Cut(name, "_")
		verdict, err := networks[network].CheckUnsigned(block)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		declared := !block.Commitments.Transactions.IsZero() && name != "integration_block_330363"
		if (declared || unsigned) && verdict != blockhash.Confirmed {
			t.Errorf("%s: the hash is %s, expected %s", name, verdict, blockhash.Confirmed)
		}
	}
}

func TestUncheckedHashes(t *testing.T) {
	network := blockhash.New(chainID("SN_SEPOLIA"))
	for _, test := range []struct {
		name  string
		block starknet.Block
		want  blockhash.Verdict
	}{
		{"no state diff commitment", starknet.Block{Header: starknet.Header{Version: "0.13.2"}}, blockhash.Incomplete},
		{"a version of the future", starknet.Block{Header: starknet.Header{
			Version: "0.99.0", Commitments: starknet.Commitments{StateDiff: starknet.FeltOf(1)},
		}}, blockhash.UnknownRule},
		{"an invalid version", starknet.Block{Header: starknet.Header{Version: "new"}}, blockhash.UnknownRule},
		{"no version, and no rule matches", starknet.Block{}, blockhash.UnknownRule},
	} {
		if got, err := network.Check(&test.block); err != nil || got != test.want {
			t.Errorf("%s: the verdict is %s, %v, expected %s", test.name, got, err, test.want)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	networks := checkers()
	for _, name := range []string{"mainnet_block_19199", "sepolia-integration_block_38748"} {
		b.Run(name, func(b *testing.B) {
			network, _, _ := strings.Cut(name, "_")
			block := read(b, vectors.Path(b, "starknet", "feeder", name+".json"))
			for b.Loop() {
				if _, err := networks[network].Check(block); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(block.Transactions)), "transactions")
			b.ReportMetric(float64(block.EventCount()), "events")
		})
	}
}
