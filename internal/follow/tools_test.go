package follow

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"ashlar/internal/node"
	"ashlar/internal/ponder"
	"ashlar/internal/vectors"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// libraries is the folder of the client libraries.
func libraries(t *testing.T) string {
	dir := os.Getenv("ASHLAR_CLIENTS")
	if dir == "" {
		vectors.Missing(t, "needs client libraries: run internal/clients/install.sh DIR and set ASHLAR_CLIENTS to DIR")
	}
	return dir
}

// startPonder has Ponder index the blocks and the calls of the counter, and the counter's slot.
func startPonder(t *testing.T, service *node.Client, u *upstream) *ponder.Index {
	t.Helper()
	return ponder.Start(t, libraries(t), filepath.Join("scripts", "ponder"),
		"RPC_URL="+service.URL, "CHAIN_ID="+u.signer.ChainID().String(), "COUNTER="+counter.Hex())
}

// indexed is a block that Ponder has indexed.
type indexed struct {
	Hash   common.Hash
	Number uint64
	Count  common.Hash // slot 0 of the counter
}

// awaitPonder waits until Ponder has geth's head, which may move meanwhile, and returns its blocks. It asks for the
// logs of each new block, and again and again for a minute if that was dropped meanwhile; so it must have got them
// before.
func awaitPonder(t *testing.T, index *ponder.Index, u *upstream) (blocks []indexed) {
	t.Helper()
	await(t, "Ponder to have the head", func() bool {
		index.Get(t, "/blocks", &blocks)
		return len(blocks) > 0 && blocks[len(blocks)-1].Hash == tagged(t, u.client, "latest").hash
	})
	return blocks
}

// checkPonder waits until Ponder has geth's head, and compares what it has with geth's chain up to there:
// nothing of a dropped block is left.
func checkPonder(t *testing.T, index *ponder.Index, u *upstream) {
	t.Helper()
	type made struct{ Hash, Block common.Hash }
	var blocks []indexed
	var calls, wantCalls []made
	await(t, "Ponder to stay at the head", func() bool {
		blocks = awaitPonder(t, index, u)
		index.Get(t, "/calls", &calls)
		return slices.Equal(blocks, awaitPonder(t, index, u))
	})
	u.record()
	for i, got := range blocks {
		b := call[struct {
			Hash         common.Hash
			Transactions []common.Hash
		}](t, u.client, "eth_getBlockByNumber", hexutil.Uint64(i+1), false)
		if want := (indexed{b.Hash, uint64(i + 1), u.blocks[b.Hash].count}); got != want {
			t.Errorf("Ponder has the block %v, expected %v", got, want)
		}
		for _, transaction := range b.Transactions {
			wantCalls = append(wantCalls, made{transaction, b.Hash})
		}
	}
	order := func(a, b made) int { return a.Hash.Cmp(b.Hash) }
	slices.SortFunc(calls, order)
	slices.SortFunc(wantCalls, order)
	if !slices.Equal(calls, wantCalls) {
		t.Errorf("Ponder has %d calls of the counter, expected %d, or others", len(calls), len(wantCalls))
	}
	t.Logf("Ponder has %d blocks and %d calls", len(blocks), len(calls))
}

// fork is a chain of anvil's, which continues the service's after a block.
type fork struct {
	client *node.Client
	after  uint64
	count  common.Hash // slot 0 of the counter
}

// startFork starts anvil.
func startFork(t *testing.T, service *node.Client, u *upstream, after uint64) *fork {
	t.Helper()
	address, err := node.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(libraries(t), "node_modules", "@foundry-rs", "anvil-"+runtime.GOOS+"-"+runtime.GOARCH, "bin", "anvil")
	command := exec.Command(bin, "--fork-url", service.URL, "--fork-block-number", fmt.Sprint(after), "--port", address[len("127.0.0.1:"):])
	said, err := os.Create(filepath.Join(t.TempDir(), "anvil"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	command.Stdout, command.Stderr = said, said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill() // fails only if it has ended
		_ = command.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(said.Name())
			t.Logf("anvil said:\n%s", text)
		}
	})
	f := &fork{client: node.NewClient("http://" + address), after: after, count: u.countAt(after)}
	await(t, "anvil", func() bool {
		var id hexutil.Uint64
		return f.client.Call(t.Context(), &id, "eth_chainId") == nil
	})
	return f
}

func (u *upstream) countAt(number uint64) common.Hash {
	u.t.Helper()
	return call[common.Hash](u.t, u.client, "eth_getStorageAt", counter, "0x0", hexutil.Uint64(number))
}

// check calls the counter on the fork, and reads the balance of a sender, which anvil asks the service for.
func (f *fork) check(t *testing.T, u *upstream, sender int) {
	t.Helper()
	account := crypto.PubkeyToAddress(u.keys[sender].PublicKey)
	got := call[string](t, f.client, "eth_getBalance", account, "latest")
	if want := call[string](t, u.client, "eth_getBalance", account, hexutil.Uint64(f.after)); got != want {
		t.Errorf("anvil has the balance %s of sender %d at block %d, expected %s", got, sender, f.after, want)
	}
	accounts := call[[]common.Address](t, f.client, "eth_accounts")
	sent := call[common.Hash](t, f.client, "eth_sendTransaction", map[string]any{"from": accounts[0], "to": counter})
	var receipt *types.Receipt
	await(t, "anvil's block", func() bool {
		receipt = call[*types.Receipt](t, f.client, "eth_getTransactionReceipt", sent)
		return receipt != nil
	})
	f.count = common.BigToHash(f.count.Big().Add(f.count.Big(), common.Big1))
	if receipt.Status != types.ReceiptStatusSuccessful || len(receipt.Logs) != 1 || receipt.Logs[0].Topics[0] != f.count {
		t.Errorf("anvil's receipt has status %d and the logs %v, expected one with topic %x", receipt.Status, receipt.Logs, f.count)
	}
}
