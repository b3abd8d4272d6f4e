package follow

import (
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ashlar/evm/ingest/ingesttest"
	"ashlar/internal/node"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

// upstream is a geth that makes blocks, and a record of these.
type upstream struct {
	t       *testing.T
	process *node.Process
	client  *node.Client
	socket  string
	signer  types.Signer
	keys    []*ecdsa.PrivateKey
	blocks  map[common.Hash]made // all that were ever made
	mined   uint64               // number of calls of mine
}

// made is a block that geth made.
type made struct {
	number uint64
	parent common.Hash
	count  common.Hash // slot 0 of the counter after the block
}

// startGeth starts a geth on a new chain, which may enter Amsterdam, and also returns its genesis file.
func startGeth(t *testing.T, amsterdam bool) (*upstream, string) {
	t.Helper()
	bin := findGeth(t)
	genesis := ingesttest.Genesis(t)
	if amsterdam {
		genesis.Config.AmsterdamTime = amsterdamTime(t, bin)
	}
	u := &upstream{t: t, signer: types.LatestSigner(genesis.Config), blocks: make(map[common.Hash]made)}
	for i := range senders {
		key, err := crypto.ToECDSA(crypto.Keccak256(fmt.Append(nil, "sender ", i)))
		if err != nil {
			t.Fatal(err)
		}
		u.keys = append(u.keys, key)
		genesis.Alloc[crypto.PubkeyToAddress(key.PublicKey)] = types.Account{Balance: new(big.Int).Mul(big.NewInt(1000), big.NewInt(params.Ether))}
	}
	genesis.Alloc[counter] = types.Account{Code: common.FromHex(counterCode), Balance: new(big.Int)}
	file := writeGenesis(t, genesis)
	g := node.Geth{Bin: bin, Data: t.TempDir(), Scheme: node.HashScheme}
	if err := g.Init(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	var err error
	if u.process, u.client, u.socket, err = g.ServeDev(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.process.Kill)
	u.record()
	return u, file
}

// findGeth returns the path of geth. Without it the test is skipped.
func findGeth(t *testing.T) string {
	t.Helper()
	bin, err := node.FindGeth()
	if errors.Is(err, node.ErrNoGeth) && os.Getenv("ASHLAR_REQUIRE_ALL") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// amsterdamTime is when the chain enters Amsterdam: while it is followed, or never with a
// geth whose rules of Amsterdam are not the final ones.
func amsterdamTime(t *testing.T, bin string) *uint64 {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), bin, "version").Output()
	if err != nil {
		t.Fatal(err)
	}
	var minor, patch int
	for line := range strings.Lines(string(out)) {
		if n, _ := fmt.Sscanf(line, "Version: 1.%d.%d", &minor, &patch); n == 2 {
			break
		}
	}
	if minor < 17 || minor == 17 && patch < 8 {
		return nil
	}
	soon := uint64(time.Now().Add(8 * time.Second).Unix())
	return &soon
}

func writeGenesis(t *testing.T, genesis *core.Genesis) string {
	t.Helper()
	text, err := json.Marshal(genesis)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "genesis.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// patience is the timeout of await. It is far longer than anything takes, so a failing test reports what
// it was waiting for.
const patience = 2 * time.Minute

// await polls a condition until it holds. It gives up if the test has failed: a client that has exited
// receives no more notifications.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(10 * time.Millisecond) {
		if t.Failed() || time.Now().After(end) {
			t.Fatalf("timeout waiting for %s", what)
		}
	}
}

// call makes a call that must succeed.
func call[T any](t *testing.T, client *node.Client, method string, params ...any) (result T) {
	t.Helper()
	if err := client.Call(t.Context(), &result, method, params...); err != nil {
		t.Fatal(err)
	}
	return result
}

func (u *upstream) head() uint64 {
	return uint64(call[hexutil.Uint64](u.t, u.client, "eth_blockNumber"))
}

// mine sends transactions and returns when blocks contain as many. Each round pays more than the one
// before, to replace transactions of blocks that geth has dropped: these may be pending again, or be in
// new blocks already, and then count as well.
func (u *upstream) mine(count int) {
	u.t.Helper()
	u.mined++
	nonces := make([]uint64, senders)
	for i := range u.keys {
		nonces[i] = u.nonce(i)
	}
	var requests []json.RawMessage
	for i := range count {
		from := i % senders
		encoded, err := u.sign(from, nonces[from], u.mined).MarshalBinary()
		nonces[from]++
		if err != nil {
			u.t.Fatal(err)
		}
		request, err := node.Request(i, "eth_sendRawTransaction", hexutil.Bytes(encoded))
		if err != nil {
			u.t.Fatal(err)
		}
		requests = append(requests, request)
	}
	for batch := range slices.Chunk(requests, batchCalls) {
		u.send(batch)
	}
	for i := range u.keys {
		await(u.t, "geth's blocks", func() bool { return u.nonce(i) >= nonces[i] })
	}
	u.record()
}

// sign signs a call of the counter that pays a fifth more than those of the previous round: geth takes a
// replacement that pays a tenth more.
func (u *upstream) sign(sender int, nonce, round uint64) *types.Transaction {
	price := func(first int64) *big.Int {
		rounds := new(big.Int).SetUint64(round)
		wei := new(big.Int).Exp(big.NewInt(6), rounds, nil)
		wei.Mul(wei, big.NewInt(first*params.GWei))
		return wei.Div(wei, new(big.Int).Exp(big.NewInt(5), rounds, nil))
	}
	return types.MustSignNewTx(u.keys[sender], u.signer, &types.DynamicFeeTx{
		ChainID: u.signer.ChainID(), Nonce: nonce, Gas: 300_000, To: &counter,
		GasFeeCap: price(100), GasTipCap: price(1),
	})
}

// nonce returns the next nonce of a sender after geth's newest block.
func (u *upstream) nonce(sender int) uint64 {
	u.t.Helper()
	address := crypto.PubkeyToAddress(u.keys[sender].PublicKey)
	return uint64(call[hexutil.Uint64](u.t, u.client, "eth_getTransactionCount", address, "latest"))
}

// send sends a batch of transactions, some of which may have been replaced already.
func (u *upstream) send(batch []json.RawMessage) {
	u.t.Helper()
	body, err := json.Marshal(batch)
	if err != nil {
		u.t.Fatal(err)
	}
	_, raw, err := u.client.Post(u.t.Context(), body)
	if err != nil {
		u.t.Fatal(err)
	}
	var answers []node.Answer
	if err := json.Unmarshal(raw, &answers); err != nil {
		u.t.Fatalf("%v in %.300s", err, raw)
	}
	for _, answer := range answers {
		if e := answer.Error; e != nil && !strings.Contains(e.Message, "nonce too low") && !strings.Contains(e.Message, "replacement transaction underpriced") {
			u.t.Fatal(e)
		}
	}
}

// record records the blocks of geth's chain.
func (u *upstream) record() {
	u.t.Helper()
	for number := u.head(); ; number-- {
		block := call[struct{ Hash, ParentHash common.Hash }](u.t, u.client, "eth_getBlockByNumber", hexutil.Uint64(number), false)
		if _, known := u.blocks[block.Hash]; known {
			return
		}
		count := call[common.Hash](u.t, u.client, "eth_getStorageAt", counter, "0x0", hexutil.Uint64(number))
		u.blocks[block.Hash] = made{number, block.ParentHash, count}
		if number == 0 {
			return
		}
	}
}

// windBack makes geth drop blocks, so that it makes others next.
func (u *upstream) windBack(to uint64) {
	u.t.Helper()
	before := tagged(u.t, u.client, "latest")
	call[any](u.t, u.client, "debug_setHead", hexutil.Uint64(to))
	// It may have made a block of what the dropped ones have left over since.
	if at := tagged(u.t, u.client, "latest"); at.number < to || at == before {
		u.t.Fatalf("geth is at block %d (%#x) after winding back from %d to %d", at.number, at.hash, before.number, to)
	}
}

// tagged is the block that has a tag, zero where there is none or it is the genesis,
// which geth calls final when nothing else is.
func tagged(t *testing.T, client *node.Client, tag string) (block place) {
	t.Helper()
	var answer *struct {
		Number hexutil.Uint64
		Hash   common.Hash
	}
	err := client.Call(t.Context(), &answer, "eth_getBlockByNumber", tag, false)
	var none *node.Error
	if err != nil && !(errors.As(err, &none) && strings.Contains(none.Message, "not found")) {
		t.Fatal(err)
	}
	if answer == nil || answer.Number == 0 {
		return place{}
	}
	return place{uint64(answer.Number), answer.Hash}
}

// finalized returns the number of geth's last finalized block.
func (u *upstream) finalized() uint64 {
	u.t.Helper()
	return tagged(u.t, u.client, "finalized").number
}
