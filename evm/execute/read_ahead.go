package execute

import (
	"context"
	"slices"
	"strings"
	"sync"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

const (
	// aheadReads bounds the reads that are under way.
	aheadReads = 64
	// aheadMost bounds the nodes of a level of the tries that are under way, or wait for the walk. It does so for
	// each level, so that nodes far ahead, which wait for long, never keep the next ones from being read.
	aheadMost = 64
	// aheadFirst is the same for a level of which the walk has taken no node yet. It grows with each node that the
	// walk takes. So a walk that ends early has read of each level at most twice what it needed, and these.
	aheadFirst = 4

	// The levels: by the length of a path in the trie of accounts, the same in storage tries, and codes.
	storageLevel = evm.KeyNibbles + 1
	codeLevel    = 2 * storageLevel
)

// Contents says what is read of accounts besides the accounts themselves.
type Contents struct{ Storage, Code bool }

// ReadAhead returns the state for one walk over the trie of accounts by [EachLeaf], during which the storage of each
// account is walked, and its code read, before the next account, if of says so. If reads of the state take round trips,
// what the walk is going to need is read side by side. Otherwise the state is returned as it is. end must be called; it
// waits until no read is under way. A read that fails fails the walk only where the walk needs it.
// EachLeaf calls ReadAhead for a state that does not come from it.
func ReadAhead(ctx context.Context, state evm.State, of Contents) (ahead evm.State, end func()) {
	if distant, ok := state.(evm.Distant); !ok || !distant.Distant() { // or it is a readAhead
		return state, func() {}
	}
	a := &readAhead{State: state, of: of, nodes: make(map[aheadPlace]*aheadNode)}
	a.ctx, a.cancel = context.WithCancel(ctx)
	return a, a.end
}

// readAhead is a state that reads trie nodes before they are asked for: the children of each node that was read, those
// first that the walk needs first.
type readAhead struct {
	evm.State
	of     Contents
	ctx    context.Context // of all reads that no caller waits for yet
	cancel context.CancelFunc
	reads  sync.WaitGroup // their goroutines

	mu      sync.Mutex
	stopped bool                      // guarded by mu, as all below: nothing more is begun
	nodes   map[aheadPlace]*aheadNode // known, and not taken by the walk
	codes   []*aheadNode              // those of nodes that are codes, in the order of the walk
	levels  [codeLevel + 1]aheadLevel
	running int

	last *aheadNode // the one that was taken last: go-ethereum's iterator reads the one that it seeks twice
}

// aheadPlace says where the walk needs something. In the order of the walk, place ascends: it is the nibbles of a path
// in the trie of accounts, or those of an account's key and of a path in its storage trie.
type aheadPlace struct {
	level int
	place string
}

// aheadNode is a trie node or a code that the walk is going to need.
type aheadNode struct {
	aheadPlace
	hash  common.Hash
	owner common.Hash
	from  string        // nibbles of the first key of the walk, if it is below the node; else empty
	begun bool          // guarded by mu
	done  chan struct{} // closed when a read that was begun has ended
	blob  []byte
	err   error
}

// path is the path of a trie node.
func (n *aheadNode) path() string {
	if n.level < storageLevel {
		return n.place
	}
	return n.place[evm.KeyNibbles:]
}

type aheadLevel struct {
	queue   []*aheadNode // not begun, in the order of the walk
	reading []*aheadNode // under way, also if the walk reads them itself; in the order of the walk
	ahead   int          // begun, and not taken
	most    int          // bound of ahead, less aheadFirst
}

func nibbles(key common.Hash) string {
	var path [evm.KeyNibbles]byte
	return string(evm.AppendNibbles(path[:0], key[:]))
}

// placeOf returns the place of a trie node.
func placeOf(owner common.Hash, path string) aheadPlace {
	if owner == (common.Hash{}) {
		return aheadPlace{len(path), path}
	}
	return aheadPlace{storageLevel + len(path), nibbles(owner) + path}
}

// begin begins to read a trie that is walked from a key on.
func (a *readAhead) begin(id TrieID, from common.Hash) {
	a.mu.Lock()
	defer a.mu.Unlock()
	place := placeOf(id.Owner, "")
	if _, known := a.nodes[place]; !known {
		a.add(&aheadNode{aheadPlace: place, hash: id.Root, owner: id.Owner, from: nibbles(from)})
	}
	a.start()
}

// end stops the reads, and waits for them.
func (a *readAhead) end() {
	a.mu.Lock()
	a.stopped = true
	a.mu.Unlock()
	a.cancel()
	a.reads.Wait()
}

// Node implements [evm.State].
func (a *readAhead) Node(ctx context.Context, owner common.Hash, path []byte, hash common.Hash) ([]byte, error) {
	place := placeOf(owner, string(path))
	if n := a.last; n != nil && n.aheadPlace == place && n.hash == hash {
		return n.blob, n.err
	}
	a.mu.Lock()
	n := a.nodes[place]
	if n == nil || n.hash != hash { // not a node of the walk
		a.mu.Unlock()
		return a.State.Node(ctx, owner, path, hash)
	}
	a.last = n
	if n.level < storageLevel {
		a.pass(n.place)
	}
	begun := n.begun
	if !begun {
		a.reading(n)
	}
	a.take(n)
	a.mu.Unlock()
	if begun {
		<-n.done
		return n.blob, n.err
	}
	n.blob, n.err = a.State.Node(ctx, owner, path, hash)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.wasRead(n); n.err == nil {
		a.expand(n)
		a.start()
	}
	return n.blob, n.err
}

// Code implements [evm.State].
func (a *readAhead) Code(ctx context.Context, hash common.Hash) ([]byte, error) {
	a.mu.Lock()
	at := slices.IndexFunc(a.codes, func(n *aheadNode) bool { return n.hash == hash })
	if at < 0 || !a.codes[at].begun {
		a.mu.Unlock()
		return a.State.Code(ctx, hash)
	}
	n := a.codes[at]
	a.codes = slices.Delete(a.codes, at, at+1)
	a.take(n)
	a.mu.Unlock()
	<-n.done
	return n.blob, n.err
}

// pass drops the codes of accounts before a place, which the walk has not asked for. a.mu is held.
func (a *readAhead) pass(place string) {
	for len(a.codes) > 0 && a.codes[0].place < place {
		n := a.codes[0]
		a.codes = slices.Delete(a.codes, 0, 1)
		a.remove(n)
	}
}

// take removes a node that the walk needs now, and begins what may be read in its place. a.mu is held.
func (a *readAhead) take(n *aheadNode) {
	a.remove(n)
	if level := &a.levels[n.level]; level.most < aheadMost-aheadFirst {
		level.most++
	}
	a.start()
}

// remove forgets a node. a.mu is held.
func (a *readAhead) remove(n *aheadNode) {
	delete(a.nodes, n.aheadPlace)
	level := &a.levels[n.level]
	if n.begun {
		level.ahead--
		return
	}
	if at := slices.Index(level.queue, n); at >= 0 {
		level.queue = slices.Delete(level.queue, at, at+1)
	}
}

// add adds a node to the queue of its level. a.mu is held.
func (a *readAhead) add(n *aheadNode) {
	a.nodes[n.aheadPlace] = n
	queue := &a.levels[n.level].queue
	*queue = insert(*queue, n)
	if n.level == codeLevel {
		a.codes = insert(a.codes, n)
	}
}

// insert inserts a node into nodes that are in the order of the walk.
func insert(nodes []*aheadNode, n *aheadNode) []*aheadNode {
	at, _ := slices.BinarySearchFunc(nodes, n.place, func(other *aheadNode, place string) int { return strings.Compare(other.place, place) })
	return slices.Insert(nodes, at, n)
}

// reading says that a node's read is under way. a.mu is held.
func (a *readAhead) reading(n *aheadNode) {
	reading := &a.levels[n.level].reading
	*reading = insert(*reading, n)
}

// wasRead says that it is not any more. a.mu is held.
func (a *readAhead) wasRead(n *aheadNode) {
	reading := &a.levels[n.level].reading
	at := slices.Index(*reading, n)
	*reading = slices.Delete(*reading, at, at+1)
}

// start begins reads as far as the bounds allow. a.mu is held.
func (a *readAhead) start() {
	for !a.stopped && a.running < aheadReads {
		next := a.next()
		if next == nil {
			return
		}
		level := &a.levels[next.level]
		level.queue = slices.Delete(level.queue, 0, 1)
		level.ahead++
		a.running++
		next.begun, next.done = true, make(chan struct{})
		a.reading(next)
		a.reads.Go(func() { a.read(next) })
	}
}

// next returns the node that the walk needs first, of the levels that have room. A level keeps half of its room for nodes
// that may be found below those that have not been read. Otherwise nodes that are needed later, but are found earlier,
// would fill it: the walk would have to read all the ones before these itself. a.mu is held.
func (a *readAhead) next() (next *aheadNode) {
	var unread *aheadNode // the first of the levels above
	for i := range a.levels {
		level := &a.levels[i]
		if len(level.queue) > 0 {
			first, room := level.queue[0], aheadFirst+level.most
			if unread != nil && unread.place < first.place {
				room /= 2
			}
			if level.ahead < room && (next == nil || first.place < next.place) {
				next = first
			}
		}
		for _, nodes := range [][]*aheadNode{level.queue, level.reading} {
			if len(nodes) > 0 && (unread == nil || nodes[0].place < unread.place) {
				unread = nodes[0]
			}
		}
	}
	return next
}

// read reads a node that was begun. After an error nothing more is begun, as the walk will end there, but for the error of a
// code: the walk may have it from an account before.
func (a *readAhead) read(n *aheadNode) {
	if n.level == codeLevel {
		n.blob, n.err = a.State.Code(a.ctx, n.hash)
	} else {
		n.blob, n.err = a.State.Node(a.ctx, n.owner, []byte(n.path()), n.hash)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running--
	a.wasRead(n)
	switch {
	case n.level == codeLevel:
	case n.err != nil:
		a.stopped = true
	default:
		a.expand(n) // before the walk takes it, which may begin a storage trie
	}
	close(n.done)
	a.start()
}

// expand adds what the walk needs after a node that was read: its children, or what belongs to an account. A malformed
// node has none: the walk fails where it takes it. a.mu is held.
func (a *readAhead) expand(n *aheadNode) {
	items, _, err := rlp.SplitList(n.blob)
	if err != nil {
		return
	}
	count, err := rlp.CountValues(items)
	switch {
	case err != nil:
	case count == 17:
		a.expandBranch(n, items)
	case count == 2:
		a.expandShort(n, items)
	}
}

func (a *readAhead) expandBranch(n *aheadNode, items []byte) {
	for i := range byte(16) {
		_, child, rest, err := rlp.Split(items)
		if err != nil {
			return
		}
		items = rest
		a.addChild(n, string(i), child)
	}
}

func (a *readAhead) expandShort(n *aheadNode, items []byte) {
	compact, rest, err := rlp.SplitString(items)
	if err != nil {
		return
	}
	key, isLeaf, ok := evm.AppendHexPrefix(nil, compact)
	_, value, _, err := rlp.Split(rest)
	switch {
	case !ok || err != nil:
	case !isLeaf:
		a.addChild(n, string(key), value)
	case n.level < storageLevel && len(n.place)+len(key) == evm.KeyNibbles:
		if place := n.place + string(key); place >= n.from {
			a.addContents(place, value)
		}
	}
}

// addChild adds a child of a node, unless it is part of the node or before the first key. below is its path from the
// node.
func (a *readAhead) addChild(n *aheadNode, below string, hash []byte) {
	path := n.path() + below
	if len(hash) != common.HashLength || len(path) > evm.KeyNibbles {
		return
	}
	child := &aheadNode{aheadPlace: placeOf(n.owner, path), hash: common.BytesToHash(hash), owner: n.owner}
	if n.from != "" {
		switch strings.Compare(path, n.from[:len(path)]) {
		case -1:
			return
		case 0:
			child.from = n.from
		}
	}
	a.add(child)
}

// addContents adds what belongs to an account.
func (a *readAhead) addContents(place string, value []byte) {
	if a.of == (Contents{}) {
		return
	}
	account := new(types.StateAccount)
	if rlp.DecodeBytes(value, account) != nil {
		return
	}
	if a.of.Storage && account.Root != types.EmptyRootHash {
		a.add(&aheadNode{aheadPlace: aheadPlace{storageLevel, place}, hash: account.Root, owner: evm.NibblesKey([]byte(place))})
	}
	hash := common.BytesToHash(account.CodeHash)
	if a.of.Code && hash != types.EmptyCodeHash && !slices.ContainsFunc(a.codes, func(n *aheadNode) bool { return n.hash == hash }) {
		a.add(&aheadNode{aheadPlace: aheadPlace{codeLevel, place}, hash: hash})
	}
}
