package network

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"slices"
	"strings"
	"testing"

	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/source/demo"
	"ashlar/family"
	"ashlar/internal/await"
	"ashlar/jsonrpc"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/txpool"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/crypto/kzg4844"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
	"golang.org/x/sync/errgroup"
)

// fullDemo returns a demo whose blocks are full, with the first block of Amsterdam or 0, and a store for it.
func fullDemo(t *testing.T, amsterdam uint64) (*demo.Network, kv.Store, family.Place) {
	t.Helper()
	config := demo.Default()
	config.Seed, config.GasLimit, config.AmsterdamBlock, config.MeanTransactions = 0, 10_200_000, amsterdam, 60
	shown, err := demo.New(config)
	if err != nil {
		t.Fatal(err)
	}
	store := ingesttest.Store(t)
	return shown, store, family.Place{Name: "demo", Open: func(kv.Options) (kv.Store, error) { return keptOpen{store}, nil }}
}

// A transaction of the demo that has no room in its block is left out alone: later ones of its sender continue with the nonce that
// the sender has on the chain, also after a restart.
func TestDemoGoesOnAfterATransactionLeftOut(t *testing.T) {
	shown, _, place := fullDemo(t, 20)
	const restart, last = 60, 75
	for _, blocks := range []uint64{restart, last} {
		if err := (demoNetwork{shown: shown, before: shown}).Create(t.Context(), place, blocks); err != nil {
			t.Fatal(err)
		}
	}
	i, err := createDemo(t.Context(), place, shown)
	if err != nil {
		t.Fatal(err)
	}
	traffic, err := shown.Traffic()
	if err != nil {
		t.Fatal(err)
	}
	missing := 0
	for number := uint64(1); number <= last; number++ {
		header, err := i.archive.Header(t.Context(), number)
		if err != nil {
			t.Fatal(err)
		}
		contents, err := traffic.Next(number, header.BaseFee)
		if err != nil {
			t.Fatal(err)
		}
		body, err := i.archive.Body(t.Context(), number, nil)
		if err != nil {
			t.Fatal(err)
		}
		lacks := len(contents.Transactions) - body.Len()
		if lacks > 1 {
			t.Errorf("block %d lacks %d transactions of %d", number, lacks, len(contents.Transactions))
		}
		missing += lacks
	}
	if missing == 0 {
		t.Error("no transaction was left out: expected blocks that are fuller")
	}
}

// A user's transaction that has no room in a block waits, and so do the later ones of its sender.
func TestDemoKeepsTransactionsThatWait(t *testing.T) {
	shown, store, place := fullDemo(t, 0)
	n, m := startMiner(t, shown, store, place)
	defer runBeside(t, m.follower.Run, m.runPool)()

	examples, key := visitor(t, shown)
	chainID := n.executor.Config().ChainID
	plain := func(gas uint64) types.TxData {
		return &types.DynamicFeeTx{ChainID: chainID, To: &examples.Sender, Gas: gas, GasTipCap: big.NewInt(params.GWei), GasFeeCap: big.NewInt(500 * params.GWei)}
	}
	withBlobs := withSixBlobs(t, chainID, examples.Sender)
	nonce := uint64(0)
	for name, group := range map[string][]types.TxData{
		"gas":   {plain(9_000_000), plain(21_000)}, // the first leaves no room for much else
		"blobs": {withBlobs, withBlobs, withBlobs, withBlobs},
	} {
		var sent []common.Hash
		first := nonce
		for _, data := range group {
			tx := types.MustSignNewTx(key, types.LatestSigner(n.executor.Config()), withNonce(data, nonce))
			await.Until(t, "the pool to follow the block with the other group", func() bool {
				err := m.pool.Add(t.Context(), tx)
				if err != nil && !errors.Is(err, txpool.ErrAlreadyReserved) {
					t.Fatalf("%s: %v", name, err)
				}
				return err == nil
			})
			sent, nonce = append(sent, tx.Hash()), nonce+1
		}
		blocks := 0
		for next := first; next < nonce && blocks < 60; blocks++ {
			next = mineNext(t, m, examples.Visitor)
			for i, hash := range sent[next-first:] {
				if _, _, waits := m.pool.Get(hash); !waits {
					t.Fatalf("%s: the transaction with nonce %d is not in the chain and does not wait", name, int(next)+i)
				}
			}
		}
		if blocks == 1 || blocks == 60 {
			t.Errorf("%s: the transactions took %d blocks, expected some", name, blocks)
		}
	}
}

// Blocks are made from the pool itself, so what the pool says of a transaction is the answer: one that is sent
// again is refused as by a node.
func TestDemoRefusesATransactionSentAgain(t *testing.T) {
	shown, store, place := fullDemo(t, 0)
	n, m := startMiner(t, shown, store, place)
	defer runBeside(t, m.runPool)()

	examples, key := visitor(t, shown)
	raw, err := types.MustSignNewTx(key, types.LatestSigner(n.executor.Config()), &types.DynamicFeeTx{
		ChainID: n.executor.Config().ChainID, To: &examples.Sender, Gas: 100_000, GasTipCap: big.NewInt(params.GWei), GasFeeCap: big.NewInt(500 * params.GWei),
	}).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	methods, err := n.live.Methods()
	if err != nil {
		t.Fatal(err)
	}
	server := jsonrpc.NewServer(methods.Handlers(), jsonrpc.Config{})
	await.Until(t, "the pool to have a head", func() bool { return m.pool.Head() != nil })
	for _, want := range []string{`"result":"0x`, `"error":{"code":-32000,"message":"already known"}`} {
		request := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["%#x"]}`, raw)
		if got := string(server.Answer(t.Context(), []byte(request), nil)); !strings.Contains(got, want) {
			t.Errorf("answered %s, want %s", got, want)
		}
	}
}

// runBeside runs functions beside a test until stop is called, which waits for their end. Any of their errors fails the test.
func runBeside(t *testing.T, runs ...func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var running errgroup.Group
	for _, run := range runs {
		running.Go(func() error { return run(ctx) })
	}
	return func() {
		t.Helper()
		cancel()
		if err := running.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// startMiner makes a demo of 40 blocks and its miner.
func startMiner(t *testing.T, shown *demo.Network, store kv.Store, place family.Place) (*network, *miner) {
	t.Helper()
	if err := (demoNetwork{shown: shown, before: shown}).Create(t.Context(), place, 40); err != nil {
		t.Fatal(err)
	}
	opened, err := Family{}.Open(t.Context(), store, new(Entries), false)
	if err != nil {
		t.Fatal(err)
	}
	n := opened.(*network)
	if _, err := n.Serve(t.Context(), family.Service{Name: "demo", Data: t.TempDir(), Observe: func([]string) jsonrpc.Observer { return nil }}); err != nil {
		t.Fatal(err)
	}
	m, err := newMiner(t.Context(), shown, n)
	if err != nil {
		t.Fatal(err)
	}
	return n, m
}

// visitor returns the examples of a network, and the key of its account with ether.
func visitor(t *testing.T, shown *demo.Network) (demo.Examples, *ecdsa.PrivateKey) {
	t.Helper()
	examples, err := shown.Examples()
	if err != nil {
		t.Fatal(err)
	}
	key, err := crypto.ToECDSA(examples.VisitorKey)
	if err != nil {
		t.Fatal(err)
	}
	return examples, key
}

// A transaction that leaves the pool without being included is logged with the name of its network. One that a block has included
// stays in the pool until the pool follows that block, and is not logged: removed before, it would be accepted again.
func TestDemoLogsATransactionLeftOut(t *testing.T) {
	var text bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
	defer slog.SetDefault(before)
	shown, store, place := fullDemo(t, 0)
	n, m := startMiner(t, shown, store, place)
	stop := runBeside(t, m.runPool)
	examples, key := visitor(t, shown)
	half := new(big.Int).Div(balanceOf(t, m, examples.Visitor), big.NewInt(2))
	send := func(nonce uint64, value *big.Int) common.Hash {
		tx := types.MustSignNewTx(key, types.LatestSigner(n.executor.Config()), &types.DynamicFeeTx{
			ChainID: n.executor.Config().ChainID, Nonce: nonce, To: &examples.Sender, Value: value, Gas: 21_000,
			GasTipCap: big.NewInt(2 * params.GWei), GasFeeCap: big.NewInt(500 * params.GWei),
		})
		if err := m.pool.Add(t.Context(), tx); err != nil {
			t.Fatal(err)
		}
		return tx.Hash()
	}
	included := send(0, half)
	stop() // from here on the pool does not follow the blocks
	for range 2 {
		mineNext(t, m, examples.Visitor)
	}
	if _, _, waits := m.pool.Get(included); !waits || strings.Contains(text.String(), "left out") {
		t.Errorf("the transaction that was included waits until the pool follows its block: %t, expected true; the log is:\n%s", waits, &text)
	}

	// The pool does not know that half of the balance is gone.
	m.pool.Remove(included)
	known, unaffordable := send(0, new(big.Int)), send(1, half)
	mineNext(t, m, examples.Visitor)
	for hash, expected := range map[common.Hash]bool{known: true, unaffordable: false} {
		if _, _, waits := m.pool.Get(hash); waits != expected {
			t.Errorf("%s waits: %t, expected %t", hash, waits, expected)
		}
	}
	_, line, _ := strings.Cut(text.String(), `"transaction left out"`)
	if line, _, _ = strings.Cut(line, "\n"); !strings.Contains(line, "network=demo") || !strings.Contains(line, "insufficient funds") {
		t.Errorf("the log is:\n%s", &text)
	}
}

// balanceOf returns the balance of an account at the head.
func balanceOf(t *testing.T, m *miner, address common.Address) *big.Int {
	t.Helper()
	view, err := m.chain.View()
	if err != nil {
		t.Fatal(err)
	}
	account, err := view.State(view.Head().Number).Account(t.Context(), evm.HashAddress(address))
	if err != nil {
		t.Fatal(err)
	}
	return account.Balance.ToBig()
}

// mineNext makes a block, and returns the next nonce of an account.
func mineNext(t *testing.T, m *miner, account common.Address) uint64 {
	t.Helper()
	if err := m.mine(t.Context()); err != nil {
		t.Fatal(err)
	}
	view, err := m.chain.View()
	if err != nil {
		t.Fatal(err)
	}
	next, err := nonces(t.Context(), view.State(view.Head().Number))(account)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// withSixBlobs returns a transaction with as many blobs as one may have.
func withSixBlobs(t *testing.T, chainID *big.Int, to common.Address) types.TxData {
	t.Helper()
	commitment, err := kzg4844.BlobToCommitment(new(kzg4844.Blob))
	if err != nil {
		t.Fatal(err)
	}
	proof, err := kzg4844.ComputeCellProofs(new(kzg4844.Blob))
	if err != nil {
		t.Fatal(err)
	}
	const blobs = 6
	sidecar := types.NewBlobTxSidecar(types.BlobSidecarVersion1, make([]kzg4844.Blob, blobs),
		slices.Repeat([]kzg4844.Commitment{commitment}, blobs), slices.Repeat(proof, blobs))
	return &types.BlobTx{
		ChainID: uint256.MustFromBig(chainID), To: to, Gas: 21_000, GasTipCap: uint256.NewInt(params.GWei),
		GasFeeCap: uint256.NewInt(500 * params.GWei), BlobFeeCap: uint256.NewInt(500 * params.GWei), BlobHashes: sidecar.BlobHashes(), Sidecar: sidecar,
	}
}

// withNonce returns data of a transaction with a nonce.
func withNonce(data types.TxData, nonce uint64) types.TxData {
	switch of := data.(type) {
	case *types.DynamicFeeTx:
		of.Nonce = nonce
	case *types.BlobTx:
		of.Nonce = nonce
	}
	return data
}

// A demo that has passed the first block of Amsterdam, in Osaka or not, goes on under its rules, whatever --blocks says later.
func TestDemoKeepsItsRules(t *testing.T) {
	for name, amsterdam := range map[string]uint64{"Osaka": 0, "Amsterdam": 20} {
		t.Run(name, func(t *testing.T) {
			shown, _, place := fullDemo(t, 20)
			before, _, _ := fullDemo(t, 0)
			begun, _, _ := fullDemo(t, amsterdam)
			if err := (demoNetwork{shown: begun, before: begun}).Create(t.Context(), place, 30); err != nil {
				t.Fatal(err)
			}
			for _, blocks := range []uint64{10, 40} {
				if err := (demoNetwork{shown: shown, before: before}).Create(t.Context(), place, blocks); err != nil {
					t.Errorf("with --blocks %d: %v", blocks, err)
				}
			}
		})
	}
	shown, _, place := fullDemo(t, 20)
	if err := (demoNetwork{shown: shown, before: shown}).Create(t.Context(), place, 20); err != nil {
		t.Fatal(err)
	}
	another, err := demo.New(demo.Default())
	if err != nil {
		t.Fatal(err)
	}
	err = demoNetwork{shown: another, before: another}.Create(t.Context(), place, 20)
	if !errors.Is(err, archive.ErrOtherChain) || !strings.Contains(err.Error(), "such as that of another version (want another directory)") {
		t.Errorf("the demo of another version: %v", err)
	}
}
