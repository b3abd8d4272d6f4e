package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"ashlar/evm/api"
	"ashlar/evm/ingest"
	"ashlar/history/tip"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// notification is what a client receives about a block, or about a log, which has data of its own.
type notification struct {
	Block   common.Hash
	Number  uint64
	Data    common.Hash
	Removed bool
}

// notificationOf reads a result of a subscription or a filter: the hash of a block, its header, or a log.
func notificationOf(result json.RawMessage) (one notification, err error) {
	if json.Unmarshal(result, &one.Block) == nil {
		return one, nil
	}
	var both struct {
		Hash, BlockHash     common.Hash
		Number, BlockNumber hexutil.Uint64
		Data                common.Hash
		Removed             bool
	}
	err = json.Unmarshal(result, &both)
	if both.Hash != (common.Hash{}) {
		return notification{Block: both.Hash, Number: uint64(both.Number)}, err
	}
	return notification{both.BlockHash, uint64(both.BlockNumber), both.Data, both.Removed}, err
}

// listener is a client who is notified of logs, from some block on, or of blocks.
type listener struct {
	name   string
	blocks bool   // else logs
	from   uint64 // the first block of which logs are asked for
	polled string // the ID of its filter; empty for a subscription
	key    string // that polls
	missed int    // of what the first has been notified, when this one came
	leaves func() // not nil for one who has left before the end

	mu  sync.Mutex
	got []notification // guarded by mu
}

func (l *listener) add(one notification) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.got = append(l.got, one)
}

func (l *listener) all() []notification {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.got)
}

// arguments are those with which it subscribes or makes a filter for logs.
func (l *listener) arguments() string {
	return fmt.Sprintf(`{"address":%q,"topics":[%q],"fromBlock":"%#x"}`, hexOf(logger), common.Hash{31: 1}.Hex(), l.from)
}

// moves is a chain whose head moves at random over a tree of blocks.
type moves struct {
	*rand.Rand
	t      *testing.T
	live   *live
	made   *branches
	blocks map[common.Hash]*types.Block
	recent []*types.Block // that may be the head
	head   *types.Block
	first  [2]*listener // who are notified of everything, logs and blocks
}

func newMoves(t *testing.T, seed uint64) *moves {
	m := &moves{Rand: rand.New(rand.NewPCG(seed, 7)), t: t, made: newBranches(t), blocks: make(map[common.Hash]*types.Block)}
	m.live = serveLive(t, ingest.Depths{Unfinalized: 12, Most: 12}, api.Config{})
	m.head = m.made.genesis
	m.blocks[m.head.Hash()] = m.head
	m.first = [2]*listener{{name: "first, logs"}, {name: "first, blocks", blocks: true}}
	for _, l := range m.first {
		m.subscribe(l)
	}
	return m
}

// grow makes a block, unless its parent has been left for good.
func (m *moves) grow(parent *types.Block, logs int) {
	block := m.made.block(parent, logs)
	err := m.live.follower.Add(m.t.Context(), block)
	if errors.Is(err, tip.ErrUnknownParent) {
		return
	}
	if err != nil {
		m.t.Fatal(err)
	}
	m.blocks[block.Hash()] = block
	m.recent = append(m.recent, block)
	m.recent = m.recent[max(0, len(m.recent)-20):]
}

// move makes some blocks and moves the head a few times, without waiting for anybody.
func (m *moves) move() {
	for range 1 + m.IntN(4) {
		parent := m.head
		if len(m.recent) > 0 && m.IntN(2) == 0 {
			parent = m.recent[m.IntN(len(m.recent))]
		}
		m.grow(parent, m.IntN(4))
	}
	for range 1 + m.IntN(3) {
		if to := m.recent[m.IntN(len(m.recent))]; m.live.setHead(to) {
			m.head = to
		}
	}
}

// settle lets one more block come, and waits until the first has been notified of it.
func (m *moves) settle() {
	m.t.Helper()
	m.grow(m.head, 1)
	m.head = m.recent[len(m.recent)-1]
	if !m.live.setHead(m.head) {
		m.t.Fatal("the newest block cannot be the head")
	}
	for _, l := range m.first {
		m.awaitHead(l)
	}
}

// awaitHead returns when a listener has been notified of the head.
func (m *moves) awaitHead(l *listener) {
	m.t.Helper()
	for attempt := 0; ; attempt++ {
		if got := l.all(); len(got) > 0 && got[len(got)-1].Block == m.head.Hash() {
			return
		}
		if attempt == 10_000 {
			m.t.Fatalf("%s waits in vain for block %d", l.name, m.head.NumberU64())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// subscribe begins a subscription on a connection of its own.
func (m *moves) subscribe(l *listener) {
	m.t.Helper()
	socket := m.live.dial(firstKey)
	kind := `"newHeads"`
	if !l.blocks {
		kind = `"logs",` + l.arguments()
	}
	socket.send(`{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":[` + kind + `]}`)
	socket.receive()
	l.leaves = nil
	go func() {
		for {
			_, message, err := socket.conn.Read(m.t.Context())
			if err != nil {
				return // it was closed
			}
			var parsed struct {
				Params struct{ Result json.RawMessage }
			}
			err = json.Unmarshal(message, &parsed)
			if err == nil {
				var one notification
				if one, err = notificationOf(parsed.Params.Result); err == nil {
					l.add(one)
					continue
				}
			}
			m.t.Errorf("%s: %v in %s", l.name, err, message)
			return
		}
	}()
	if m.IntN(4) == 0 {
		l.leaves = func() { socket.conn.CloseNow() }
	}
}

// install makes a filter.
func (m *moves) install(l *listener) {
	m.t.Helper()
	request := `{"jsonrpc":"2.0","id":1,"method":"eth_newBlockFilter","params":[]}`
	if !l.blocks {
		request = `{"jsonrpc":"2.0","id":1,"method":"eth_newFilter","params":[` + l.arguments() + `]}`
	}
	var answer struct{ Result string }
	if err := json.Unmarshal([]byte(m.live.post(l.key, request)), &answer); err != nil || answer.Result == "" {
		m.t.Fatal("no filter", err)
	}
	l.polled = answer.Result
}

// poll asks for what is new.
func (m *moves) poll(l *listener) {
	m.t.Helper()
	var answer struct{ Result []json.RawMessage }
	text := m.live.post(l.key, `{"jsonrpc":"2.0","id":1,"method":"eth_getFilterChanges","params":["`+l.polled+`"]}`)
	if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Result == nil {
		m.t.Fatalf("%s: %v in %s", l.name, err, text)
	}
	for _, result := range answer.Result {
		one, err := notificationOf(result)
		if err != nil {
			m.t.Fatal(err)
		}
		l.add(one)
	}
}

// listen lets somebody come.
func (m *moves) listen(n int) *listener {
	l := &listener{name: fmt.Sprint("listener ", n), blocks: m.IntN(3) == 0, from: m.Uint64N(6), key: []string{firstKey, secondKey}[m.IntN(2)]}
	l.missed = len(m.wanted(l))
	if m.IntN(2) == 0 {
		m.subscribe(l)
	} else {
		m.install(l)
	}
	return l
}

// wanted is what the first were notified of all that a listener asks for.
func (m *moves) wanted(l *listener) []notification {
	if l.blocks {
		all := m.first[1].all()
		if l.polled != "" { // by hash alone
			for i := range all {
				all[i].Number = 0
			}
		}
		return all
	}
	return slices.DeleteFunc(m.first[0].all(), func(one notification) bool { return one.Number < l.from })
}

// check checks that a listener was notified what the first were, from when it came.
func (m *moves) check(l *listener) {
	m.t.Helper()
	want, got := m.wanted(l), l.all()
	for begin := l.missed; begin+len(got) <= len(want); begin++ {
		if (l.leaves != nil || begin+len(got) == len(want)) && slices.Equal(got, want[begin:begin+len(got)]) {
			return
		}
	}
	m.t.Errorf("%s, which came after %d of %d messages, was notified %d that are not the others':\n%v\n%v", l.name, l.missed, len(want), len(got), got, want)
}

// checkFirst follows what the first were notified, from the genesis to the head.
func (m *moves) checkFirst() {
	m.t.Helper()
	var logs []notification
	for i, one := range m.first[0].all() {
		log := notification{one.Block, one.Number, one.Data, false}
		switch {
		case one.Removed && (len(logs) == 0 || logs[len(logs)-1] != log):
			m.t.Fatalf("message %d removes %v, which is not the newest log", i, log)
		case one.Removed:
			logs = logs[:len(logs)-1]
		case slices.Contains(logs, log):
			m.t.Fatalf("message %d tells of %v once more", i, log)
		default:
			logs = append(logs, log)
		}
	}
	chain := []common.Hash{m.made.genesis.Hash()}
	for i, one := range m.first[1].all() {
		at := slices.Index(chain, m.blocks[one.Block].ParentHash())
		if at < 0 {
			m.t.Fatalf("head %d (%#x) does not stand on one notification before", i, one.Block)
		}
		chain = append(chain[:at+1], one.Block)
	}
	var wantLogs []notification
	var wantChain []common.Hash
	for block := m.head; block != nil; block = m.blocks[block.ParentHash()] {
		wantChain = append(wantChain, block.Hash())
		for _, tx := range slices.Backward(block.Transactions()) {
			wantLogs = append(wantLogs, notification{block.Hash(), block.NumberU64(), common.BytesToHash(tx.Data()), false})
		}
	}
	slices.Reverse(wantLogs)
	slices.Reverse(wantChain)
	if !slices.Equal(logs, wantLogs) || !slices.Equal(chain, wantChain) {
		m.t.Errorf("the notifications lead to %d blocks with %d logs, expected %d with %d", len(chain), len(logs), len(wantChain), len(wantLogs))
	}
}

// TestToldOfAnyMoves moves the head over random trees, while clients come, poll, and go.
// What each is notified, applied in order, leads from the chain that it knew to the one
// that is, each block and log once.
func TestToldOfAnyMoves(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			m := newMoves(t, seed)
			var listeners []*listener
			for round := range 30 {
				m.move()
				if m.IntN(2) == 0 {
					listeners = append(listeners, m.listen(round))
				}
				for _, l := range listeners {
					switch {
					case l.polled != "" && m.IntN(3) == 0:
						m.poll(l)
					case l.leaves != nil && m.IntN(6) == 0:
						l.leaves()
					}
				}
				if m.IntN(3) > 0 {
					m.settle()
				}
			}
			m.settle()
			m.checkFirst()
			for _, l := range listeners {
				switch {
				case l.polled != "":
					m.poll(l)
				case l.leaves == nil:
					m.awaitHead(l)
				}
				m.check(l)
			}
			t.Logf("%d blocks, %d on the chain; %d messages of logs and %d of blocks; %d others listened",
				len(m.blocks), m.head.NumberU64(), len(m.first[0].all()), len(m.first[1].all()), len(listeners))
		})
	}
}
