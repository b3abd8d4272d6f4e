package proven

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"ashlar/limit"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"
)

// This file fetches a guess of what will be read. A node that guesses wrong, or does not guess at
// all, costs further rounds; the answer stays the same.

// Call is a message call whose state is fetched ahead. nil fields are left out. It has no price,
// so the sender need not be able to pay for more gas.
type Call struct {
	From           common.Address
	To             *common.Address
	Gas            *uint64
	Value          *uint256.Int
	Data           []byte
	AccessList     types.AccessList
	Authorizations []types.SetCodeAuthorization
}

// MarshalJSON implements [json.Marshaler].
func (c Call) MarshalJSON() ([]byte, error) {
	fields := map[string]any{"from": c.From, "input": hexutil.Bytes(c.Data)}
	if c.To != nil {
		fields["to"] = c.To
	}
	if c.Gas != nil && *c.Gas <= math.MaxUint64-listGas {
		fields["gas"] = hexutil.Uint64(*c.Gas + listGas)
	}
	if c.Value != nil {
		fields["value"] = (*hexutil.Big)(c.Value.ToBig())
	}
	if c.AccessList != nil {
		fields["accessList"] = c.AccessList
	}
	if c.Authorizations != nil {
		fields["authorizationList"] = c.Authorizations
	}
	return json.Marshal(fields)
}

const (
	mostGuesses = 256  // calls that a node guesses for
	mostGuessed = 4096 // accounts and slots that are fetched because a node guessed them

	// guessTime is for how long a node may guess. One that takes longer costs more than the
	// rounds that it saves.
	guessTime = 2 * time.Second

	// listGas pays for the access list of a guess. geth runs a call again with the list of the run
	// before until the list stays the same. If the list leaves too little gas for what the call
	// accessed, it never does.
	listGas = 10_000_000
)

// PrefetchCalls fetches what calls are going to read, in two rounds: a node says what they
// would access, and then all of it is fetched with proofs.
func (s *State) PrefetchCalls(ctx context.Context, calls []Call) {
	header, err := s.at(ctx)
	if err != nil {
		return // recurs where the state is read
	}
	wants := newWants()
	for _, call := range calls {
		wants.add(call.From)
		if call.To != nil {
			wants.add(*call.To)
		}
	}
	wants.add(header.Coinbase)
	for _, list := range s.guess(ctx, header, calls) {
		for _, tuple := range list {
			wants.add(tuple.Address, tuple.StorageKeys...)
		}
	}
	_ = s.Prefetch(ctx, wants.list()) // what is missing is fetched when it is read
}

// guess asks a node which accounts and slots calls access.
func (s *State) guess(ctx context.Context, header *types.Header, calls []Call) (lists []types.AccessList) {
	ctx, cancel := context.WithTimeout(ctx, guessTime)
	defer cancel()
	type answer struct {
		List types.AccessList `json:"accessList"`
	}
	const method = "eth_createAccessList"
	asked := make([]upstream.Call, 0, len(calls))
	for _, call := range calls[:min(len(calls), mostGuesses)] {
		if q := newQuestion(upstream.States, header.Number.Uint64(), method, call, blockHash{header.Hash()}); q.failed == nil {
			q.Stored = false // an error is that of the call
			asked = append(asked, q.Call)
		}
	}
	for _, got := range s.remote.nodes.AskAll(ctx, asked) {
		if got.Err != nil {
			continue // the call fails, or the node does not have the method
		}
		if decoded, err := decode[answer](method, got.Result); err == nil {
			lists = append(lists, decoded.List)
		}
	}
	return lists
}

// wants collects accounts and slots, without duplicates.
type wants struct {
	byAddress map[common.Address]map[common.Hash]bool
	order     []common.Address
	count     int
}

func newWants() *wants { return &wants{byAddress: make(map[common.Address]map[common.Hash]bool)} }

func (w *wants) add(address common.Address, slots ...common.Hash) {
	if w.count >= mostGuessed {
		return
	}
	known, ok := w.byAddress[address]
	if !ok {
		known = make(map[common.Hash]bool)
		w.byAddress[address] = known
		w.order = append(w.order, address)
		w.count++
	}
	for _, slot := range slots {
		if !known[slot] && w.count < mostGuessed {
			known[slot] = true
			w.count++
		}
	}
}

func (w *wants) list() []Want {
	all := make([]Want, len(w.order))
	for i, address := range w.order {
		all[i] = Want{Address: address, Code: true}
		for slot := range w.byAddress[address] {
			all[i].Slots = append(all[i].Slots, slot)
		}
	}
	return all
}

// PrefetchBlock fetches what the execution of the next block reads: all trie nodes and codes
// in one round if a node makes witnesses, else the accounts and slots that a node names. The account for
// which ctx is holds the witness until ctx ends.
//
// PrefetchBlock only waits for nodes. take decodes and hashes a witness, which may have many megabytes: the caller
// calls take once it may keep a processor busy, and before it reads the state. take returns false if the witness was
// invalid. PrefetchBlock may then be called again: it asks another node for a witness. After two invalid ones it only
// asks what the block accesses, and take returns true.
func (s *State) PrefetchBlock(ctx context.Context, block *types.Block) (take func() bool) {
	if witness, ok := s.fetchWitness(ctx, block); ok {
		return func() bool { return s.takeWitness(witness) }
	}
	wants := newWants()
	for address, slots := range s.guessBlock(ctx, block) {
		wants.add(address, slots...)
	}
	_ = s.Prefetch(ctx, wants.list()) // what is missing is fetched when it is read
	return func() bool { return true }
}

// mostInvalid is how many invalid witnesses are fetched for a block. Each node that sent one is set aside, but with
// many such nodes a request would spend its time on them.
const mostInvalid = 2

const witnessMethod = "debug_executionWitness"

// fetchWitness fetches the witness of a block, and reports whether there is one, and memory for it.
func (s *State) fetchWitness(ctx context.Context, block *types.Block) (witness upstream.Answer, ok bool) {
	s.mu.Lock()
	invalid := s.invalid
	s.mu.Unlock()
	q := aboutBlock(block, witnessMethod)
	if q.failed != nil || invalid >= mostInvalid {
		return witness, false
	}
	q.Check = func(answer json.RawMessage) error {
		if string(answer) == "null" {
			return fault(fmt.Errorf("%s: %w", witnessMethod, ErrNotFound))
		}
		return nil // takeWitness decodes it
	}
	witness, err := s.remote.nodes.Ask(ctx, q.Call)
	if err != nil {
		return witness, false
	}
	lease := limit.Borrow(ctx)
	if !lease.Hold(len(witness.Result)) {
		return witness, false
	}
	context.AfterFunc(ctx, lease.Release)
	return witness, true
}

// takeWitness decodes a witness, and reports whether it was valid. The node that sent one that cannot be decoded is set aside, as it
// is for other such answers.
func (s *State) takeWitness(witness upstream.Answer) bool {
	type answer struct {
		State []hexutil.Bytes `json:"state"`
		Codes []hexutil.Bytes `json:"codes"`
	}
	decoded, err := decode[answer](witnessMethod, witness.Result)
	if err != nil {
		if nodes, ok := s.remote.nodes.(interface{ SetAside(string, error) }); ok {
			nodes.SetAside(witness.Node, err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.invalid++
		return false
	}
	given := make(map[common.Hash][]byte)
	for _, blobs := range [][]hexutil.Bytes{decoded.State, decoded.Codes} {
		for _, blob := range blobs {
			given[crypto.Keccak256Hash(blob)] = blob
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given = given
	return true
}

// aboutBlock returns a question about the execution of a block. A client may have made up the block (debug_traceBlock), so a node
// that does not have it lacks no history.
func aboutBlock(block *types.Block, method string, more ...any) question {
	return newQuestion(upstream.NoHistory, block.NumberU64(), method, append([]any{block.Hash()}, more...)...)
}

// guessBlock asks a node which accounts and slots a block accesses.
func (s *State) guessBlock(ctx context.Context, block *types.Block) map[common.Address][]common.Hash {
	type account struct {
		Storage map[common.Hash]json.RawMessage `json:"storage"`
	}
	type answer struct {
		Result map[common.Address]account `json:"result"`
	}
	const method = "debug_traceBlockByHash"
	q := aboutBlock(block, method, map[string]any{"tracer": "prestateTracer"})
	answers, _ := ask(ctx, s.remote, q, func(raw json.RawMessage) ([]answer, error) { return decode[[]answer](method, raw) })
	all := make(map[common.Address][]common.Hash)
	for _, one := range answers {
		for address, account := range one.Result {
			if _, ok := all[address]; !ok {
				all[address] = nil
			}
			for slot := range account.Storage {
				all[address] = append(all[address], slot)
			}
		}
	}
	return all
}
