package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ashlar/evm/genesis"
	"ashlar/internal/fakenode"
	"ashlar/internal/node"
	"ashlar/internal/vectors"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// ofFollowers returns the conversations that require a network that follows a node: those about finality
// and transactions.
func ofFollowers() []string {
	return []string{
		"eth_getBlockByNumber/get-finalized", "eth_getBlockByNumber/get-safe", "eth_getBlockByNumber/get-latest",
		"eth_sendRawTransaction/", "txpool_contentFrom/", "txpool_status/", "eth_syncing/",
	}
}

// TestFollowed replays these on a service that follows a node, which has the chain, the safe and
// finalized blocks of headfcu.json, and accepts transactions.
func TestFollowed(t *testing.T) {
	folder := vectors.Path(t, "execution-apis")
	conversations, err := ReadConversations(folder)
	if err != nil {
		t.Fatal(err)
	}
	followed := startFollowed(t, folder)
	s := newService(t)
	s.Config = filepath.Join(t.TempDir(), "ashlar.yaml")
	text := fmt.Sprintf("networks:\n  %s:\n    genesis: %s\n    source: %s\n", s.Network, filepath.Join(folder, "genesis.json"), followed.SocketURL())
	if err := os.WriteFile(s.Config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	client := s.serve(t)
	awaitFinal(t, client)

	replayed := 0
	for _, c := range conversations {
		if slices.ContainsFunc(ofFollowers(), func(name string) bool { return Later{Name: name}.matches(c.Name) }) {
			replayed++
			t.Run(c.Name, func(t *testing.T) { Replay(t, client, c) })
		}
	}
	if replayed != 11 {
		t.Errorf("%d conversations were replayed, expected 11", replayed)
	}
	sent := 0
	for _, c := range conversations {
		if strings.HasPrefix(c.Name, "eth_sendRawTransaction/") {
			sent += len(c.Exchanges)
		}
	}
	if waiting := followed.Waiting(); len(waiting) != sent {
		t.Errorf("the followed node received %d transactions, expected %d", len(waiting), sent)
	}
}

// awaitFinal returns once the service knows the finalized block, which is known last.
func awaitFinal(t *testing.T, client *node.Client) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var final *header
		err := client.Call(t.Context(), &final, "eth_getBlockByNumber", "finalized", false)
		if err == nil && final != nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the chain was not followed to its end: the finalized block is %v, %v", final, err)
		}
	}
}

// startFollowed starts a node that serves a chain of the test data.
func startFollowed(t *testing.T, folder string) *fakenode.Node {
	t.Helper()
	g, _, err := genesis.Load(filepath.Join(folder, "genesis.json"))
	if err != nil {
		t.Fatal(err)
	}
	chain := append([]*types.Block{g.ToBlock()}, readBlocks(t, filepath.Join(folder, "chain.rlp"))...)
	n, err := fakenode.New(fakenode.Options{ChainID: g.Config.ChainID.Uint64(), Raw: true, Subscriptions: true, Pool: true}, chain[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	var update struct{ Params []json.RawMessage }
	text, err := os.ReadFile(filepath.Join(folder, "headfcu.json"))
	if err == nil {
		err = json.Unmarshal(text, &update)
	}
	var state struct{ HeadBlockHash, SafeBlockHash, FinalizedBlockHash common.Hash }
	if err == nil {
		err = json.Unmarshal(update.Params[0], &state)
	}
	if err != nil {
		t.Fatal(err)
	}
	number := func(hash common.Hash) uint64 {
		i := slices.IndexFunc(chain, func(b *types.Block) bool { return b.Hash() == hash })
		if i < 0 {
			t.Fatalf("%s: block %#x is not in the chain", folder, hash)
		}
		return uint64(i)
	}
	n.Set(chain[:number(state.HeadBlockHash)+1], number(state.SafeBlockHash), number(state.FinalizedBlockHash))
	return n
}

func readBlocks(t *testing.T, path string) (blocks []*types.Block) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	stream := rlp.NewStream(file, 0)
	for {
		block := new(types.Block)
		err := stream.Decode(block)
		if errors.Is(err, io.EOF) {
			return blocks
		}
		if err != nil {
			t.Fatal(err)
		}
		if block.NumberU64() > 0 {
			blocks = append(blocks, block)
		}
	}
}
