package blocktests

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// bad is a block that must be refused.
type bad struct {
	encodedBlock
	block *types.Block // nil when it cannot be decoded
}

// plan says in which order a test's blocks are imported. An archive takes one
// chain, so the tree of the test's valid blocks is taken apart into its chains,
// and each goes into an archive of its own, from the genesis on.
type plan struct {
	// chains begin after the genesis. The first ends in the test's last valid
	// block; the others, in their order, in those that nothing else builds on.
	chains [][]*types.Block
	// bad are the blocks to be refused, by the hash of their parent if that is
	// the genesis or valid.
	bad map[common.Hash][]bad
	// unlinked are the blocks to be refused that are children of none of these,
	// or cannot be decoded.
	unlinked []bad
}

func newPlan(v *vector, genesis common.Hash) (*plan, error) {
	valid := make(map[common.Hash]*types.Block)
	parents := make(map[common.Hash]bool)
	var order []*types.Block
	var refused []bad
	for i, encoded := range v.Blocks {
		block := new(types.Block)
		err := rlp.DecodeBytes(encoded.RLP, block)
		switch {
		case encoded.ExpectException != "" && err != nil:
			refused = append(refused, bad{encoded, nil})
			continue
		case encoded.ExpectException != "":
			refused = append(refused, bad{encoded, block})
			continue
		case err != nil:
			return nil, fmt.Errorf("decode valid block %d of the test: %w", i, err)
		case encoded.BlockHeader == nil || encoded.BlockHeader.Hash != block.Hash():
			return nil, fmt.Errorf("valid block %d of the test has the hash %x, which is not the one that the test says", i, block.Hash())
		}
		block = block.WithAccessListUnsafe(encoded.BlockAccessList)
		if valid[block.Hash()] == nil {
			order = append(order, block)
		}
		valid[block.Hash()] = block
		parents[block.ParentHash()] = true
	}
	p := &plan{bad: make(map[common.Hash][]bad)}
	for _, b := range refused {
		if b.block != nil && (b.block.ParentHash() == genesis || valid[b.block.ParentHash()] != nil) {
			p.bad[b.block.ParentHash()] = append(p.bad[b.block.ParentHash()], b)
		} else {
			p.unlinked = append(p.unlinked, b)
		}
	}
	return p, p.addChains(v.LastBlockHash, genesis, order, valid, parents)
}

// addChains adds the chain to the last valid block and those to all others that
// are nobody's parent.
func (p *plan) addChains(last, genesis common.Hash, order []*types.Block, valid map[common.Hash]*types.Block, parents map[common.Hash]bool) error {
	add := func(head common.Hash) error {
		var chain []*types.Block
		for hash := head; hash != genesis; hash = chain[0].ParentHash() {
			block := valid[hash]
			if block == nil {
				return fmt.Errorf("the chain to the valid block %x has no block %x", head, hash)
			}
			chain = append([]*types.Block{block}, chain...)
		}
		p.chains = append(p.chains, chain)
		return nil
	}
	errs := []error{add(last)}
	for _, block := range order {
		if hash := block.Hash(); !parents[hash] && hash != last {
			errs = append(errs, add(hash))
		}
	}
	return errors.Join(errs...)
}

// A test with a fork, a block that is refused on each side of it, and others that
// fit nowhere.
func TestPlan(t *testing.T) {
	genesis := common.Hash{9}
	made := make(map[string]*types.Block)
	var v vector
	add := func(name, parent, exception string) {
		header := &types.Header{Number: new(big.Int), Extra: []byte(name), ParentHash: genesis, Difficulty: new(big.Int)}
		if parent != "" {
			header.ParentHash = made[parent].Hash()
		}
		made[name] = types.NewBlockWithHeader(header)
		encoded, err := rlp.EncodeToBytes(made[name])
		if err != nil {
			t.Fatal(err)
		}
		b := encodedBlock{RLP: encoded, ExpectException: exception}
		if exception == "" {
			b.BlockHeader = &struct{ Hash common.Hash }{made[name].Hash()}
		}
		v.Blocks = append(v.Blocks, b)
	}
	add("1", "", "")
	add("2", "1", "")
	add("2 bad", "1", "refused")
	add("2 aside", "1", "")
	add("3 aside bad", "2 aside", "refused")
	add("3", "2", "")
	add("orphan", "3 aside bad", "refused")
	add("2", "1", "") // again
	v.Blocks = append(v.Blocks, encodedBlock{RLP: []byte{1, 2, 3}, ExpectException: "refused"})
	v.LastBlockHash = made["3"].Hash()

	p, err := newPlan(&v, genesis)
	if err != nil {
		t.Fatal(err)
	}
	var chains []string
	for _, chain := range p.chains {
		for _, block := range chain {
			chains = append(chains, string(block.Extra()))
		}
		chains = append(chains, "|")
	}
	if got, want := strings.Join(chains, " "), "1 2 3 | 1 2 aside |"; got != want {
		t.Errorf("the chains are %q, expected %q", got, want)
	}
	for name, parent := range map[string]string{"2 bad": "1", "3 aside bad": "2 aside"} {
		if hung := p.bad[made[parent].Hash()]; len(hung) != 1 || string(hung[0].block.Extra()) != name {
			t.Errorf("%d blocks are to be refused after %s, expected %q", len(hung), parent, name)
		}
	}
	if len(p.bad) != 2 || len(p.unlinked) != 2 {
		t.Errorf("blocks are to be refused in %d places and %d anywhere, expected 2 and 2", len(p.bad), len(p.unlinked))
	}

	v.LastBlockHash = made["2 bad"].Hash()
	if _, err := newPlan(&v, genesis); err == nil {
		t.Error("a plan is made where the last valid block is none")
	}
}
