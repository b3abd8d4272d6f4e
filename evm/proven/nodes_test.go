package proven

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"

	"ashlar/chain"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethdb"
	"github.com/ethereum/go-ethereum/ethdb/memorydb"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/ethereum/go-ethereum/triedb"
)

var (
	senderKey, _ = crypto.HexToECDSA("b71c71a67e1177ad4e901695e1b4b9ee17ae16c6668d313eac2f96dbcda3f291")
	sender       = crypto.PubkeyToAddress(senderKey.PublicKey)
	// counter is a contract that adds one to its slot 0 and logs.
	counter     = common.HexToAddress("0xc0")
	counterCode = common.FromHex("600054600101600055600080a000") // SSTORE(0, SLOAD(0)+1), LOG0
)

// testRules are those of Cancun. Later forks need system contracts.
func testRules() *params.ChainConfig {
	rules := *params.MergedTestChainConfig
	rules.PragueTime, rules.OsakaTime, rules.BPO1Time, rules.BPO2Time, rules.AmsterdamTime, rules.UBTTime = nil, nil, nil, nil, nil, nil
	return &rules
}

// testChain is a chain with its state.
type testChain struct {
	genesis  *core.Genesis
	blocks   []*types.Block // the genesis first
	receipts map[common.Hash]types.Receipts
	state    *triedb.Database
	db       ethdb.Database
}

// newTestChain makes a chain whose blocks each call the counter. more changes the first accounts.
func newTestChain(t *testing.T, blocks int, more ...func(types.GenesisAlloc)) *testChain {
	t.Helper()
	genesis := &core.Genesis{
		Config: testRules(), Difficulty: new(big.Int), BaseFee: big.NewInt(params.InitialBaseFee), GasLimit: 30_000_000,
		Alloc: types.GenesisAlloc{sender: {Balance: big.NewInt(params.Ether)}, counter: {Code: counterCode, Balance: new(big.Int)}},
	}
	for _, change := range more {
		change(genesis.Alloc)
	}
	c := &testChain{genesis: genesis, receipts: make(map[common.Hash]types.Receipts)}
	db, made, receipts := core.GenerateChainWithGenesis(genesis, beacon.New(ethash.NewFaker()), blocks, c.block(0))
	c.db, c.state = db, triedb.NewDatabase(db, triedb.HashDefaults)
	c.blocks = append([]*types.Block{genesis.ToBlock()}, made...)
	for i, block := range made {
		c.receipts[block.Hash()] = receipts[i]
	}
	return c
}

// block returns what fills blocks; other makes it fill them with something else.
func (c *testChain) block(other byte) func(int, *core.BlockGen) {
	return func(_ int, b *core.BlockGen) {
		b.SetExtra([]byte{other})
		tx := types.MustSignNewTx(senderKey, b.Signer(), &types.DynamicFeeTx{
			ChainID: c.genesis.Config.ChainID, Nonce: b.TxNonce(sender), To: &counter, Gas: 100_000, GasFeeCap: b.BaseFee(),
		})
		b.AddTx(tx)
	}
}

// fork returns the chain up to a block, with others above it.
func (c *testChain) fork(after, blocks int) []*types.Block {
	made, receipts := core.GenerateChain(c.genesis.Config, c.blocks[after], beacon.New(ethash.NewFaker()), c.db, blocks, c.block(1))
	for i, block := range made {
		c.receipts[block.Hash()] = receipts[i]
	}
	return append(append([]*types.Block{}, c.blocks[:after+1]...), made...)
}

func refOf(block *types.Block) chain.Ref {
	return chain.Ref{Number: block.NumberU64(), Hash: block.Hash()}
}

// testNode is a node that has a chain. It may lie.
type testNode struct {
	name      string
	chain     *testChain
	blocks    []*types.Block
	finalized chain.Ref
	objects   bool // it has no debug methods
	witness   any  // of every block; nil: it makes none
	// alter, if not nil, returns what the node answers instead of a result.
	alter func(method string, result any) any
	// held, if not nil, is closed before the node answers [testNodes.AskEach]. It is guarded by the nodes' mu.
	held chan struct{}
}

// testNodes are nodes that are asked in their order. They implement [Asker] and [Watcher], as
// an [upstream.Pool] does, without a network.
type testNodes struct {
	mu      sync.Mutex
	nodes   []*testNode
	aside   map[string]error
	asked   map[string]int // calls by method
	changed chan struct{}
}

func newTestNodes(nodes ...*testNode) *testNodes {
	return &testNodes{nodes: nodes, aside: make(map[string]error), asked: make(map[string]int), changed: make(chan struct{})}
}

func (n *testNodes) Ask(_ context.Context, c upstream.Call) (upstream.Answer, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	worst := upstream.ErrUnavailable
	for _, one := range n.nodes {
		if n.aside[one.name] != nil {
			continue
		}
		answer, err := n.ask(one, c)
		if err == nil {
			return answer, nil
		}
		worst = err
	}
	return upstream.Answer{}, worst
}

// ask asks a node. mu is held, but not while an answer is checked, which may ask again.
func (n *testNodes) ask(one *testNode, c upstream.Call) (upstream.Answer, error) {
	n.asked[c.Method]++
	result, err := one.answer(c)
	if err != nil {
		return upstream.Answer{}, err
	}
	n.mu.Unlock()
	if c.Check != nil {
		err = c.Check(result)
	}
	n.mu.Lock()
	if errors.Is(err, upstream.ErrLie) {
		n.aside[one.name] = err
	}
	return upstream.Answer{Result: result, Node: one.name}, err
}

func (n *testNodes) AskAll(ctx context.Context, calls []upstream.Call) (all []upstream.Answer) {
	for _, c := range calls {
		answer, err := n.Ask(ctx, c)
		answer.Err = err
		all = append(all, answer)
	}
	return all
}

func (n *testNodes) AskEach(ctx context.Context, c upstream.Call, names []string) <-chan upstream.Answer {
	n.mu.Lock()
	defer n.mu.Unlock()
	answers := make(chan upstream.Answer, len(n.nodes))
	var asking sync.WaitGroup
	for _, one := range n.nodes {
		if n.aside[one.name] != nil || !slices.Contains(names, one.name) {
			continue
		}
		held := one.held
		asking.Go(func() {
			if held != nil {
				select {
				case <-held:
				case <-ctx.Done():
					return
				}
			}
			n.mu.Lock()
			defer n.mu.Unlock()
			answer, err := n.ask(one, c)
			answer.Node, answer.Err = one.name, err
			answers <- answer
		})
	}
	go func() {
		asking.Wait()
		close(answers)
	}()
	return answers
}

func (n *testNodes) Status() (all []upstream.Status) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, one := range n.nodes {
		head := upstream.Head{Finalized: one.finalized}
		head.Ref = refOf(one.blocks[len(one.blocks)-1])
		all = append(all, upstream.Status{Name: one.name, Usable: n.aside[one.name] == nil, Head: head})
	}
	return all
}

func (n *testNodes) Changed() <-chan struct{} { return n.changed }

func (n *testNodes) SetAside(name string, why error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.aside[name] = why
}

// count returns how often a method was called since count was called last.
func (n *testNodes) count(method string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	count := n.asked[method]
	delete(n.asked, method)
	return count
}

func (n *testNode) answer(c upstream.Call) (json.RawMessage, error) {
	var params []json.RawMessage
	if err := json.Unmarshal(c.Params, &params); err != nil {
		return nil, err
	}
	result, err := n.result(c.Method, params)
	if err != nil {
		return nil, err
	}
	if n.alter != nil {
		result = n.alter(c.Method, result)
	}
	return json.Marshal(result)
}

func (n *testNode) result(method string, params []json.RawMessage) (any, error) {
	if n.objects && strings.HasPrefix(method, "debug_") {
		method = "" // that no node has
	}
	switch method {
	case witnessMethod:
		if n.witness != nil {
			return n.witness, nil
		}
	case "eth_getBlockByNumber":
		var number hexutil.Uint64
		if err := json.Unmarshal(params[0], &number); err != nil || int(number) >= len(n.blocks) {
			return nil, err
		}
		return n.blocks[number].Header(), nil
	case "debug_getRawBlock":
		block, err := n.block(params[0])
		if err != nil {
			return nil, err
		}
		raw, err := rlp.EncodeToBytes(block)
		return hexutil.Bytes(raw), err
	case "debug_getRawReceipts":
		block, err := n.block(params[0])
		if err != nil {
			return nil, err
		}
		raws := []hexutil.Bytes{}
		for _, receipt := range n.chain.receipts[block.Hash()] {
			raw, err := receipt.MarshalBinary()
			if err != nil {
				return nil, err
			}
			raws = append(raws, raw)
		}
		return raws, nil
	case "eth_getBlockReceipts":
		block, err := n.block(params[0])
		if err != nil {
			return nil, err
		}
		return n.chain.receipts[block.Hash()], nil
	case "eth_getProof":
		return n.proof(params)
	case "eth_getCode":
		var address common.Address
		if err := json.Unmarshal(params[0], &address); err != nil {
			return nil, err
		}
		return hexutil.Bytes(n.chain.genesis.Alloc[address].Code), nil
	}
	return nil, &upstream.NodeError{Code: -32601, Message: "the method " + method + " does not exist/is not available"}
}

// block returns the block that a parameter names by hash, on any branch.
func (n *testNode) block(param json.RawMessage) (*types.Block, error) {
	var hash common.Hash
	if err := json.Unmarshal(param, &hash); err != nil {
		return nil, err
	}
	for _, block := range n.blocks {
		if block.Hash() == hash {
			return block, nil
		}
	}
	return nil, &upstream.NodeError{Code: -32000, Message: "block not found"}
}

func (n *testNode) proof(params []json.RawMessage) (any, error) {
	var address common.Address
	var slots []common.Hash
	var at blockHash
	if err := errors.Join(json.Unmarshal(params[0], &address), json.Unmarshal(params[1], &slots), json.Unmarshal(params[2], &at)); err != nil {
		return nil, err
	}
	var root common.Hash
	for _, block := range n.blocks {
		if block.Hash() == at.Hash {
			root = block.Root()
		}
	}
	if root == (common.Hash{}) {
		return nil, &upstream.NodeError{Code: -32000, Message: "header not found"}
	}
	prove := func(id *trie.ID, key []byte) ([]hexutil.Bytes, []byte, error) {
		t, err := trie.New(id, n.chain.state)
		if err != nil {
			return nil, nil, err
		}
		nodes := memorydb.New()
		if err := t.Prove(key, nodes); err != nil {
			return nil, nil, err
		}
		var all []hexutil.Bytes
		for it := nodes.NewIterator(nil, nil); it.Next(); {
			all = append(all, common.CopyBytes(it.Value()))
		}
		value, err := t.Get(key)
		return all, value, err
	}
	key := crypto.Keccak256Hash(address[:])
	account, value, err := prove(trie.StateTrieID(root), key[:])
	if err != nil {
		return nil, err
	}
	answer := map[string]any{"accountProof": account}
	var found types.StateAccount
	if value == nil {
		return answer, nil
	}
	if err := rlp.DecodeBytes(value, &found); err != nil {
		return nil, err
	}
	var storage []any
	for _, slot := range slots {
		if found.Root == types.EmptyRootHash {
			continue
		}
		proof, _, err := prove(trie.StorageTrieID(root, key, found.Root), crypto.Keccak256(slot[:]))
		if err != nil {
			return nil, fmt.Errorf("slot %x: %w", slot, err)
		}
		storage = append(storage, map[string]any{"proof": proof})
	}
	answer["storageProof"] = storage
	return answer, nil
}
