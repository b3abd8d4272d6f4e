package demo

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
)

// action is a kind of thing that people do on the network. do sends one
// transaction, and before it those that it depends on.
type action struct {
	name   string
	weight int
	do     func(*draft)
}

// actions are what the traffic is mixed from. A new one goes wherever it
// belongs; the chain's pinned hash changes with any change here.
func actions() []action {
	return []action{
		{"ether transfer", 110, (*draft).transferEther},
		{"precompile", 5, (*draft).callPrecompile},

		{"token transfer", 380, (*draft).transferToken},
		{"token approve", 30, (*draft).approveToken},
		{"token transferFrom", 50, (*draft).transferTokenFrom},
		{"token burn", 6, (*draft).burnToken},
		{"token airdrop", 3, (*draft).airdropToken},
		{"token failure", 20, (*draft).failToken},

		{"swap", 130, (*draft).swap},
		{"swap failure", 6, (*draft).failSwap},
		{"liquidity", 8, (*draft).addLiquidity},

		{"collectible mint", 45, (*draft).mintCollectible},
		{"collectible transfer", 40, (*draft).transferCollectible},
		{"collectible approve", 12, (*draft).approveCollectible},
		{"collectible failure", 6, (*draft).failCollectible},

		{"ledger credit", 40, (*draft).creditLedger},
		{"ledger sweep", 8, (*draft).sweepLedger},
		{"logs", 36, (*draft).emit},
		{"transient storage", 8, (*draft).descend},

		{"create", 14, (*draft).create},
		{"create failure", 3, (*draft).failCreate},
		{"factory", 18, (*draft).useFactory},
		{"mayfly", 5, (*draft).mayfly},
		{"box", 6, (*draft).useBox},
		{"fault", 30, (*draft).fail},
		{"fault caught", 6, (*draft).failInside},

		{"blobs", 14, (*draft).postBlobs},
		{"delegate", 16, (*draft).delegateCode},
		{"to a delegate", 4, (*draft).payAuthority},
		{"validator request", 7, (*draft).request},
	}
}

// rareEvery is how many blocks apart the rarest topic occurs.
const rareEvery = 97

// sendRegulars sends what is to occur in certain blocks rather than by chance.
func (d *draft) sendRegulars() {
	if d.storm {
		d.action = "blobs"
		d.postBlobs()
	}
	if d.contents.Number%rareEvery == 0 {
		d.action = "logs"
		d.emitRare(d.network.hash("rarest topic", 0))
	}
}

func (d *draft) transferEther() {
	to := d.recipient()
	c := call{from: d.someone(), to: &to, gas: 21_000, value: d.between(1, 100_000_000_000_000_000)}
	switch d.rng.IntN(12) {
	case 0: // to oneself
		c.to = &c.from.address
	case 1:
		c.value = nil
	case 2: // with a message
		c.input = []byte("thanks for the fish")
		c.gas = 23_000
	}
	d.send(c)
}

// callPrecompile calls one of those that take any input.
func (d *draft) callPrecompile() {
	to := common.BytesToAddress([]byte{byte(1 + d.rng.IntN(4))})
	d.send(call{from: d.someone(), to: &to, gas: 60_000, input: d.bytes(128)})
}

// fillMargin is left over for what a fill costs besides memory.
const fillMargin = 100_000

// maxFill stays below the most gas that a transaction may ask for (EIP-7825).
const maxFill = 12_000_000

// fill uses up much of the block's gas for memory, which costs no work: memory
// of w words costs 3w + w²/512.
func (d *draft) fill() {
	left := int64(d.network.config.GasLimit-d.gas) - fillMargin - int64(usualState*d.statePrice())
	if left < fillMargin {
		return
	}
	gas := d.between(left/2, min(left, maxFill)).Int64()
	gas = min(gas, maxFill)
	// 512·gas = w² + 1536w, solved for w.
	words := new(big.Int).Sqrt(big.NewInt(512*gas+768*768)).Int64() - 768
	d.action = "fill"
	d.send(call{
		from: d.someone(), to: &d.network.ledger, gas: uint64(gas) + 40_000,
		input: d.input("Ledger", "fill", big.NewInt(32*words-1)),
	})
}
