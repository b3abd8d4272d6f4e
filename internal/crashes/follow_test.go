package crashes

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"ashlar/evm/genesis"
	"ashlar/internal/await"
	"ashlar/internal/fakenode"
	"ashlar/internal/node"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

const (
	followKills      = 6 // in a usual run
	wholeFollowKills = 300
	followTime       = 400 * time.Millisecond // maximum life of a service
	blockTime        = 3 * time.Millisecond   // between blocks of the followed node
	finalDepth       = 20                     // below the head of the followed node
)

// followed is a node whose chain grows, one block at a time, along that of an export.
type followed struct {
	*fakenode.Node
	chain []*types.Block // the genesis first
	head  int
}

func newFollowed(t *testing.T, e export) *followed {
	t.Helper()
	first, _, err := genesis.Load(e.genesis)
	if err != nil {
		t.Fatal(err)
	}
	f := &followed{chain: []*types.Block{first.ToBlock()}}
	for _, file := range e.files {
		left, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for len(left) > 0 {
			_, _, rest, err := rlp.Split(left)
			if err != nil {
				t.Fatal(err)
			}
			block := new(types.Block)
			if err := rlp.DecodeBytes(left[:len(left)-len(rest)], block); err != nil {
				t.Fatal(err)
			}
			f.chain, left = append(f.chain, block), rest
		}
	}
	f.Node, err = fakenode.New(fakenode.Options{ChainID: first.Config.ChainID.Uint64(), Raw: true, Subscriptions: true}, f.chain[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// advance makes the next block the head; beside replaces it temporarily by another block with the same
// number.
func (f *followed) advance(beside bool) {
	f.head = min(f.head+1, len(f.chain)-1)
	chain := f.chain[:f.head+1]
	if beside {
		block := f.chain[f.head]
		header := block.Header()
		header.Extra = []byte("beside") // any value is valid
		chain = append(slices.Clone(chain[:f.head]), types.NewBlockWithHeader(header).WithBody(*block.Body()))
		f.head--
	}
	f.Set(chain, uint64(max(0, len(chain)-1-finalDepth/2)), uint64(max(0, len(chain)-1-finalDepth)))
}

// network returns a new network that follows the node.
func (f *followed) network(t *testing.T, bin string, e export) network {
	t.Helper()
	n := newNetwork(t, bin)
	n.Config = filepath.Join(t.TempDir(), "ashlar.yaml")
	text := fmt.Sprintf("networks:\n  %s:\n    genesis: %s\n    source: %s\n", n.Network, e.genesis, f.SocketURL())
	if err := os.WriteFile(n.Config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return n
}

// newest is the head as the service showed it.
type newest struct {
	Number hexutil.Uint64
	Hash   common.Hash
}

func askBlock(t *testing.T, client *node.Client, block any) (answer newest, err error) {
	err = client.Call(t.Context(), &answer, "eth_getBlockByNumber", block, false)
	return answer, err
}

// TestKillFollower kills services that follow a node, at random moments. After a restart, without
// manual repair, everything shown before is there. At the end of the chain the store is compared with
// that of an undisturbed import.
func TestKillFollower(t *testing.T) {
	t.Parallel()
	export := generateExport(t)
	bin := build(t)
	undisturbed := newNetwork(t, bin)
	undisturbed.mustImport(t, export)
	want := undisturbed.contents(t)

	wanted := killsOf(followKills, wholeFollowKills)
	random := rand.New(rand.NewPCG(killSeed, 1))
	upstream := newFollowed(t, export)
	disturbed := upstream.network(t, bin, export)
	var shown newest
	completed, shownBlocks := 0, 0
	for range wanted {
		before := shown
		shown = followUntilKilled(t, disturbed, upstream, shown, random)
		shownBlocks += int(shown.Number - min(shown.Number, before.Number))
		if upstream.head == len(upstream.chain)-1 {
			finishFollowing(t, disturbed, upstream, want)
			completed++
			upstream.head, shown = 0, newest{}
			upstream.Set(upstream.chain[:1], 0, 0)
			disturbed = upstream.network(t, bin, export)
		}
	}
	finishFollowing(t, disturbed, upstream, want)
	t.Logf("%d kills, %d blocks shown, chain followed to its end %d times", wanted, shownBlocks, completed+1)
}

// followUntilKilled starts the service, compares its chain with what was shown before, lets the node
// advance for a while, and kills the service meanwhile. It returns the last block shown.
func followUntilKilled(t *testing.T, n network, upstream *followed, shown newest, random *rand.Rand) newest {
	t.Helper()
	p, client, err := n.Serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkShown(t, client, upstream, shown)
	life := time.Duration(random.Int64N(int64(followTime)))
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		time.Sleep(life)
		p.Kill()
	}()
	for {
		upstream.advance(upstream.head%7 == 3 && shown.Hash == upstream.chain[upstream.head].Hash())
		now, err := askBlock(t, client, "latest")
		if err == nil {
			shown = now
		}
		select {
		case <-killed:
			return shown
		case <-time.After(blockTime):
		}
	}
}

// checkShown checks that the block shown before is still there.
func checkShown(t *testing.T, client *node.Client, upstream *followed, shown newest) {
	t.Helper()
	if shown.Number == 0 {
		return
	}
	head, err := askBlock(t, client, "latest")
	if err != nil || head.Number < shown.Number {
		t.Errorf("the head is %d, %v; block %d had been shown", head.Number, err, shown.Number)
	}
	if upstream.chain[shown.Number].Hash() != shown.Hash {
		return // the temporary block, which may have been replaced since
	}
	if again, err := askBlock(t, client, shown.Number); err != nil || again.Hash != shown.Hash {
		t.Errorf("block %d is %#x, %v; it had been shown as %#x", shown.Number, again.Hash, err, shown.Hash)
	}
}

// finishFollowing follows the chain to its end, until all of it is settled, and compares the contents
// of the store.
func finishFollowing(t *testing.T, n network, upstream *followed, want contents) {
	t.Helper()
	p, _, err := n.Serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	last := uint64(len(upstream.chain) - 1)
	upstream.head = int(last)
	upstream.Set(upstream.chain, last, last)
	await.Until(t, fmt.Sprintf("block %d to settle", last), func() bool {
		text, err := n.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var status struct{ Networks []struct{ Settled uint64 } }
		if err := json.Unmarshal([]byte(text), &status); err != nil {
			t.Fatal(err)
		}
		settled := status.Networks[0].Settled
		if settled < last && hasEnded(p) {
			_, err := p.Wait()
			t.Fatalf("the service has ended at block %d of %d: %v", settled, last, err)
		}
		return settled >= last
	})
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if err := want.differ(n.contents(t)); err != nil {
		t.Error(err)
	}
}
