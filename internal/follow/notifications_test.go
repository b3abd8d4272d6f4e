package follow

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// notification is a notification that a client received: a head, or a log. Each log of a branch has a
// different topic.
type notification struct {
	Block   common.Hash
	Number  uint64
	Topic   common.Hash
	Removed bool
}

// stream is what a client received by one subscription or filter, in order.
type stream struct {
	name string

	mu       sync.Mutex
	received []notification // guarded by mu
}

func (s *stream) add(one notification) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.received = append(s.received, one)
}

func (s *stream) all() []notification {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.received)
}

// last returns the last notification and the number of all.
func (s *stream) last() (last notification, count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.received) == 0 {
		return notification{}, 0
	}
	return s.received[len(s.received)-1], len(s.received)
}

// awaitPolled mines a block after the other until clients that poll have the newest log. ethers polls when
// there is a new block, unless it still waits for the answer about the one before. So each block is left more
// time than the one before, a minute in the end.
func awaitPolled(t *testing.T, u *upstream, clients []*client) {
	t.Helper()
	for left := 2 * time.Second; left < 2*time.Minute; left *= 2 {
		u.mine(1)
		all := call[[]types.Log](t, u.client, "eth_getLogs", map[string]any{"fromBlock": "0x0", "address": counter})
		newest := all[len(all)-1]
		behind := func(c *client) bool {
			last, _ := c.streams[polled].last()
			return last.Topic != newest.Topics[0] || last.Removed
		}
		for end := time.Now().Add(left); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if !slices.ContainsFunc(clients, behind) {
				return
			}
		}
	}
}

// checkNotifications waits until clients have received all notifications, and checks them. Geth may make blocks
// meanwhile: what counts is what all clients had received at one moment.
func checkNotifications(t *testing.T, u *upstream, first *client, others []*client, missed map[string]int) {
	t.Helper()
	awaitPolled(t, u, others)
	var want []notification // of the logs of the chain
	var head place
	var got map[*stream][]notification
	await(t, "the end of all streams", func() bool {
		u.record()
		head, want = tagged(t, u.client, "latest"), u.logs()
		got = make(map[*stream][]notification)
		for _, c := range append(others, first) {
			for way, s := range c.streams {
				end := want[len(want)-1]
				if way == heads {
					end = notification{Number: head.number}
				}
				all := s.all()
				got[s] = all
				if (c != first || way != polled) && !endsWith(all, end) {
					return false
				}
			}
		}
		return true
	})
	all, allHeads := got[first.streams[logs]], got[first.streams[heads]]
	removed := checkLogNotifications(t, all, want)
	genesis := call[struct{ Hash common.Hash }](t, u.client, "eth_getBlockByNumber", "0x0", false)
	checkHeads(t, allHeads, u.blocks, genesis.Hash, head.hash)
	for _, c := range others {
		given := all
		if c.hidesRemoved {
			given = slices.DeleteFunc(slices.Clone(all), func(one notification) bool { return one.Removed })
		}
		checkSame(t, c.streams[heads].name, got[c.streams[heads]], allHeads, missed[heads])
		checkSame(t, c.streams[logs].name, got[c.streams[logs]], given, missed[logs])
		checkSame(t, c.streams[polled].name, got[c.streams[polled]], given, missed[logs])
	}
	t.Logf("%d logs, %d removals, %d heads", len(all)-removed, removed, len(allHeads))
}

// endsWith reports whether the last notification is of an end. Some clients leave out the hash of a head.
func endsWith(all []notification, end notification) bool {
	if len(all) == 0 {
		return false
	}
	last := all[len(all)-1]
	return last.Number == end.Number && last.Topic == end.Topic && !last.Removed
}

// logs returns what is to be received about the logs of the chain.
func (u *upstream) logs() (all []notification) {
	u.t.Helper()
	for _, log := range call[[]types.Log](u.t, u.client, "eth_getLogs", map[string]any{"fromBlock": "0x0", "toBlock": "latest", "address": counter}) {
		all = append(all, notification{log.BlockHash, log.BlockNumber, log.Topics[0], false})
	}
	return all
}

// checkLogNotifications applies the notifications of logs to an empty chain: each removal removes the
// newest log, no log is added twice, and the result equals the chain.
func checkLogNotifications(t *testing.T, all, want []notification) (removed int) {
	t.Helper()
	var chain []notification
	there := make(map[notification]bool)
	for i, one := range all {
		log := notification{one.Block, one.Number, one.Topic, false}
		switch {
		case one.Removed && (len(chain) == 0 || chain[len(chain)-1] != log):
			t.Fatalf("message %d removes log %x of block %d, which is not the newest", i, one.Topic, one.Number)
		case one.Removed:
			removed++
			chain = chain[:len(chain)-1]
			delete(there, log)
		case there[log]:
			t.Fatalf("message %d repeats log %x of block %d", i, one.Topic, one.Number)
		default:
			chain = append(chain, log)
			there[log] = true
		}
	}
	if !slices.Equal(chain, want) {
		t.Errorf("the notifications lead to %d logs, the chain has %d: %v\n%v", len(chain), len(want), chain, want)
	}
	return removed
}

// checkHeads follows the notifications of heads: the parent of each was the genesis or an earlier head,
// and the last is the chain's.
func checkHeads(t *testing.T, all []notification, blocks map[common.Hash]made, genesis, last common.Hash) {
	t.Helper()
	chain := []common.Hash{genesis}
	for i, head := range all {
		block, recorded := blocks[head.Block]
		if !recorded {
			t.Fatalf("head %d, block %d (%#x): geth was not asked about it while it had it", i, head.Number, head.Block)
		}
		at := slices.Index(chain, block.parent)
		if at < 0 {
			t.Fatalf("head %d, block %d (%#x): its parent is not on the branch received so far", i, head.Number, head.Block)
		}
		chain = append(chain[:at+1], head.Block)
	}
	if chain[len(chain)-1] != last {
		t.Errorf("the last head is %#x, expected %#x", chain[len(chain)-1], last)
	}
}

// checkSame checks that a client that started a little later received the same notifications from then
// on. Heads without hashes are compared by number.
func checkSame(t *testing.T, name string, got, want []notification, missed int) {
	t.Helper()
	if len(got) > len(want) || len(got) < len(want)-missed {
		t.Errorf("%s: %d notifications, expected between %d and %d", name, len(got), len(want)-missed, len(want))
		return
	}
	want = want[len(want)-len(got):]
	for i, one := range got {
		if one.Block == (common.Hash{}) {
			one.Block = want[i].Block
		}
		if one != want[i] {
			t.Errorf("%s: message %d is %v, other clients received %v", name, i, one, want[i])
			return
		}
	}
}
