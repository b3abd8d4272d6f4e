package follow

import (
	"slices"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// told is one thing that a client was told of: a head, or a log, which each have
// another topic on one branch.
type told struct {
	Block   common.Hash
	Number  uint64
	Topic   common.Hash
	Removed bool
}

// stream is all that a client was told in one way, in order.
type stream struct {
	name string

	mu   sync.Mutex
	told []told // guarded by mu
}

func (s *stream) add(one told) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, one)
}

func (s *stream) all() []told {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.told)
}

// last is what was told last, and how much before it.
func (s *stream) last() (last told, count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.told) == 0 {
		return told{}, 0
	}
	return s.told[len(s.told)-1], len(s.told)
}

// checkTold checks what clients were told of, once all of it has come.
func checkTold(t *testing.T, u *upstream, first *client, others []*client, missed map[string]int) {
	t.Helper()
	head := tagged(t, u.client, "latest")
	var want []told
	for _, log := range call[[]types.Log](t, u.client, "eth_getLogs", map[string]any{"fromBlock": "0x0", "toBlock": "latest", "address": counter}) {
		want = append(want, told{log.BlockHash, log.BlockNumber, log.Topics[0], false})
	}
	ends := map[string]told{heads: {Block: head.hash, Number: head.number}, logs: want[len(want)-1], polled: want[len(want)-1]}
	for _, c := range append(others, first) {
		for way, s := range c.streams {
			if c == first && way == polled {
				continue
			}
			await(t, s.name+": the end", func() bool {
				last, _ := s.last()
				return last.Number == ends[way].Number && last.Topic == ends[way].Topic && !last.Removed
			})
		}
	}
	all := first.streams[logs].all()
	removed := checkLogsTold(t, all, want)
	genesis := call[struct{ Hash common.Hash }](t, u.client, "eth_getBlockByNumber", "0x0", false)
	checkHeadsTold(t, first.streams[heads].all(), u.blocks, genesis.Hash, head.hash)
	for _, c := range others {
		given := all
		if c.hidesRemoved {
			given = slices.DeleteFunc(slices.Clone(all), func(one told) bool { return one.Removed })
		}
		checkSame(t, c.streams[heads], first.streams[heads].all(), missed[heads])
		checkSame(t, c.streams[logs], given, missed[logs])
		checkSame(t, c.streams[polled], given, missed[logs])
	}
	t.Logf("%d logs were told, and %d taken back; %d heads", len(all)-removed, removed, len(first.streams[heads].all()))
}

// checkLogsTold applies what was told of logs to an empty chain: each removal takes
// the log that is the newest, no log comes twice, and what is left is on the chain.
func checkLogsTold(t *testing.T, all, want []told) (removed int) {
	t.Helper()
	var chain []told
	there := make(map[told]bool)
	for i, one := range all {
		log := told{one.Block, one.Number, one.Topic, false}
		switch {
		case one.Removed && (len(chain) == 0 || chain[len(chain)-1] != log):
			t.Fatalf("message %d removes log %x of block %d, which is not the newest", i, one.Topic, one.Number)
		case one.Removed:
			removed++
			chain = chain[:len(chain)-1]
			delete(there, log)
		case there[log]:
			t.Fatalf("message %d is log %x of block %d once more", i, one.Topic, one.Number)
		default:
			chain = append(chain, log)
			there[log] = true
		}
	}
	if !slices.Equal(chain, want) {
		t.Errorf("what was told leads to %d logs, the chain has %d: %v\n%v", len(chain), len(want), chain, want)
	}
	return removed
}

// checkHeadsTold follows the heads that were told: each stands on one that was told
// before, and the last is the chain's.
func checkHeadsTold(t *testing.T, all []told, blocks map[common.Hash]made, genesis, last common.Hash) {
	t.Helper()
	chain := []common.Hash{genesis}
	for i, head := range all {
		at := slices.Index(chain, blocks[head.Block].parent)
		if at < 0 {
			t.Fatalf("head %d, block %d (%#x), does not stand on any told before that was not left", i, head.Number, head.Block)
		}
		chain = append(chain[:at+1], head.Block)
	}
	if chain[len(chain)-1] != last {
		t.Errorf("the last head told is %#x, expected %#x", chain[len(chain)-1], last)
	}
}

// checkSame checks that a client which came a little later was told the same from
// then on. Heads that are told by number alone are compared by that.
func checkSame(t *testing.T, s *stream, want []told, missed int) {
	t.Helper()
	got := s.all()
	if len(got) > len(want) || len(got) < len(want)-missed {
		t.Errorf("%s: told of %d things, expected between %d and %d", s.name, len(got), len(want)-missed, len(want))
		return
	}
	want = want[len(want)-len(got):]
	for i, one := range got {
		if one.Block == (common.Hash{}) {
			one.Block = want[i].Block
		}
		if one != want[i] {
			t.Errorf("%s: message %d is %v, others were told %v", s.name, i, one, want[i])
			return
		}
	}
}
