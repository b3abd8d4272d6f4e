package differential

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"ashlar/internal/sample"
)

// object is a JSON object in parameters.
type object = map[string]any

// question is one request. Params is normally a []any.
type question struct {
	Method string
	Params any
}

// recased changes the names of members in params, except those that are data: addresses
// and names of tracers.
func recased(params any, change func(string) string) any {
	switch params := params.(type) {
	case []any:
		changed := make([]any, len(params))
		for i, one := range params {
			changed[i] = recased(one, change)
		}
		return changed
	case object:
		changed := make(object)
		for name, value := range params {
			if !strings.HasPrefix(name, "0x") && !strings.HasSuffix(name, "Tracer") {
				name = change(name)
			}
			changed[name] = recased(value, change)
		}
		return changed
	}
	return params
}

// generator generates parameters from a sample of a chain.
type generator struct {
	r *rand.Rand
	c *sample.Chain
	// first is the first block in questions; 0 if any can be asked about.
	first uint64
}

func pick[T any](g *generator, from []T) T { return from[g.r.IntN(len(from))] }

// chance returns true with a probability in percent.
func (g *generator) chance(percent int) bool { return g.r.IntN(100) < percent }

func quantity(n uint64) string { return hexutil.EncodeUint64(n) }

// number returns a block number of any age, more often from the ends of the chain.
func (g *generator) number() uint64 {
	head := g.c.Head()
	switch g.r.IntN(12) {
	case 0:
		return g.first
	case 1:
		return g.first + 1
	case 2:
		return head
	case 3:
		return head - 1
	default:
		return g.first + g.r.Uint64N(head-g.first+1)
	}
}

// blockNumber returns a block parameter that is a number or a tag.
func (g *generator) blockNumber() any {
	switch g.r.IntN(30) {
	case 0, 1, 2:
		return "latest"
	case 3, 4:
		return g.earliest()
	case 5:
		return "safe"
	case 6:
		return "finalized"
	case 7, 8:
		return "0x" + strings.ToUpper(quantity(g.number())[2:])
	case 9:
		return quantity(g.c.Head() + 1 + g.r.Uint64N(1000))
	default:
		return quantity(g.number())
	}
}

// earliest returns the first block in questions.
func (g *generator) earliest() string {
	if g.first > 0 {
		return quantity(g.first)
	}
	return "earliest"
}

// block returns a block parameter in any form.
func (g *generator) block() any {
	switch g.r.IntN(20) {
	case 0:
		return object{"blockNumber": quantity(g.number())}
	case 1:
		return object{"blockNumber": "latest"}
	case 2, 3:
		return object{"blockHash": g.blockHash()}
	case 4:
		return object{"blockHash": g.blockHash(), "requireCanonical": g.chance(50)}
	case 5:
		return g.blockHash().Hex()
	default:
		return g.blockNumber()
	}
}

func (g *generator) hash() (h common.Hash) {
	for i := range h {
		h[i] = byte(g.r.Uint32())
	}
	return h
}

// blockHash returns the hash of a block, sometimes of one that does not exist.
func (g *generator) blockHash() common.Hash {
	if g.chance(4) {
		return g.hash()
	}
	return g.c.Blocks[g.number()].Hash
}

func (g *generator) tx() sample.Tx {
	for {
		if tx := pick(g, g.c.Txs); tx.Block >= g.first {
			return tx
		}
	}
}

// txHash returns the hash of a transaction, sometimes of one that does not exist.
func (g *generator) txHash() common.Hash {
	if g.chance(4) {
		return g.hash()
	}
	return g.tx().Hash()
}

// index returns an index in a block, sometimes one beyond the last.
func (g *generator) index(n uint64) string {
	return quantity(g.r.Uint64N(uint64(g.c.Blocks[n].Txs) + 2))
}

// address returns an account, a contract, or an address that does not exist.
func (g *generator) address() common.Address {
	switch g.r.IntN(12) {
	case 0, 1, 2, 3:
		return pick(g, g.c.Emitters)
	case 4:
		return common.BytesToAddress(g.hash().Bytes())
	case 5: // precompiles and system contracts
		return pick(g, []common.Address{{}, {19: 1}, {19: 10}, common.HexToAddress("0x000F3df6D732807Ef1319fB7B8bB8522d0Beac02")})
	default:
		return pick(g, g.c.Accounts)
	}
}

// slot returns a slot that is used, or a neighbour that is not, with the key in any accepted
// notation.
func (g *generator) slot() (common.Address, string) {
	s := pick(g, g.c.Slots)
	switch g.r.IntN(8) {
	case 0:
		return g.address(), g.key()
	case 1:
		return s.Address, g.key()
	case 2:
		return s.Address, quantity(g.r.Uint64N(6))
	case 3:
		return s.Address, fmt.Sprintf("0x%02x", g.r.IntN(6))
	default:
		return s.Address, s.Key.Hex()
	}
}

func (g *generator) key() string {
	if g.chance(50) {
		return g.hash().Hex()
	}
	return pick(g, g.c.Slots).Key.Hex()
}

// mappingKey returns the slot of an account in a mapping at a low slot.
func (g *generator) mappingKey() string {
	who := pick(g, g.c.Accounts)
	at := common.BigToHash(big.NewInt(int64(g.r.IntN(5))))
	return crypto.Keccak256Hash(common.LeftPadBytes(who[:], 32), at[:]).Hex()
}
