package proven

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
)

// madeUpLength is how long the chains are that liars make up.
const madeUpLength = 300

// liar returns a node that makes up the header of a block, and so those above it.
func (c *testChain) liar(number int, change func(*types.Header)) *testNode {
	n := c.node("liar")
	n.blocks = slices.Clone(c.blocks)
	for i := number; i < len(n.blocks); i++ {
		header := n.blocks[i].Header()
		if i == number {
			change(header)
		} else {
			header.ParentHash = n.blocks[i-1].Hash()
		}
		n.blocks[i] = n.blocks[i].WithSeal(header)
		c.receipts[n.blocks[i].Hash()] = c.receipts[c.blocks[i].Hash()]
	}
	return n
}

// A head of which some header cannot be that of a block is not followed, and does no harm: a node that is
// asked alone can make up any head.
func TestMadeUpHeaders(t *testing.T) {
	c := newTestChain(t, madeUpLength)
	for _, e := range []struct {
		name   string
		number int
		change func(*types.Header)
	}{
		{"a lower number", 250, func(h *types.Header) { h.Number = big.NewInt(3) }},
		{"a low number at the end", madeUpLength - unsettledUnfinalized + 1, func(h *types.Header) { h.Number = big.NewInt(5) }},
		{"a higher number", 250, func(h *types.Header) { h.Number = big.NewInt(1 << 40) }},
		{"a number of 65 bits", madeUpLength, func(h *types.Header) { h.Number.Lsh(big.NewInt(1), 64).Add(h.Number, big.NewInt(madeUpLength)) }},
		{"no gas limit", madeUpLength, func(h *types.Header) { h.GasLimit, h.GasUsed = 0, 0 }},
		{"more gas than its limit", madeUpLength, func(h *types.Header) { h.GasUsed = h.GasLimit + 1 }},
		{"much blob gas", madeUpLength, func(h *types.Header) { *h.BlobGasUsed = math.MaxUint64 }},
		{"much excess blob gas", madeUpLength, func(h *types.Header) { *h.ExcessBlobGas = math.MaxUint64 }},
	} {
		t.Run(e.name, func(t *testing.T) {
			f := follow(t, newTestNodes(c.liar(e.number, e.change)), 1)
			if err := f.step(t.Context()); err == nil {
				t.Errorf("the head is %s", f.tip.Forkchoice().Head.Ref())
			}
		})
	}
}

// A field that is zero can be left out of a header's JSON without another hash. It is never missing in what
// is taken from such an answer.
func TestHeaderFields(t *testing.T) {
	c := newTestChain(t, madeUpLength)
	for name, omit := range map[string]func(*types.Header){
		"base fee":        func(h *types.Header) { h.BaseFee = nil },
		"excess blob gas": func(h *types.Header) { h.ExcessBlobGas = nil },
		"blob gas":        func(h *types.Header) { h.BlobGasUsed = nil },
	} {
		t.Run(name, func(t *testing.T) {
			liar, honest := c.node("liar"), c.node("honest")
			nodes := newTestNodes(liar, honest)
			liar.alter = func(method string, result any) any {
				if header, ok := result.(*types.Header); ok && method == "eth_getBlockByNumber" && header.Number.Sign() > 0 {
					omit(header)
				}
				return result
			}
			f := follow(t, nodes, 1)
			f.stepTo(t, c.blocks[madeUpLength])
			header, err := f.remote.Header(t.Context(), 100)
			if err != nil || header.BaseFee == nil || header.ExcessBlobGas == nil || header.BlobGasUsed == nil {
				t.Errorf("header %+v, %v", header, err)
			}
		})
	}
}
