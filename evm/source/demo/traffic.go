package demo

import (
	"fmt"
	"math/big"
	"math/rand/v2"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Contents is what a block builder needs for one block besides its parent.
type Contents struct {
	Number           uint64
	Timestamp        uint64 // in the network's past; see [Timestamp]
	FeeRecipient     common.Address
	PrevRandao       common.Hash
	ParentBeaconRoot common.Hash
	SlotNumber       uint64 // counted from the first block of Amsterdam; 0 before
	Transactions     []*types.Transaction
	Intents          []Intent // what each transaction is for, in the same order
	Withdrawals      []*types.Withdrawal
}

// Intent says what a transaction is for.
type Intent struct {
	Action string // names the kind of action that the transaction belongs to
	Fails  bool   // it is included with status 0
}

// Traffic gives a network's blocks their contents, one after the other. It
// belongs to one goroutine.
type Traffic struct {
	network *Network
	signer  types.Signer
	actions []action
	weight  int // sum of the actions' weights

	number      uint64 // of the last block given
	setup       []call // what is left of the network's first transactions
	nonces      map[common.Address]uint64
	withdrawals uint64
	salt        uint64

	tokens tokenBook
	owners [][]int          // by collection and id-1: the sender who owns it
	boxes  []common.Address // some of the Box contracts, for later calls
}

// Traffic begins the network's traffic anew, at block 1.
func (n *Network) Traffic() (*Traffic, error) {
	setup, err := n.deployments()
	if err != nil {
		return nil, err
	}
	t := &Traffic{
		network: n,
		signer:  types.NewPragueSigner(new(big.Int).SetUint64(n.config.ChainID)),
		actions: actions(),
		setup:   setup,
		nonces:  make(map[common.Address]uint64),
		tokens:  newTokenBook(len(n.senders), len(n.tokens)),
		owners:  make([][]int, collectionCount),
	}
	for _, a := range t.actions {
		t.weight += a.weight
	}
	return t, nil
}

// Next gives the contents of the next block, which must be the one after the
// last, the first being 1. baseFee is that block's.
//
// The contents depend on the configuration, the number and the base fees so
// far. So a network that was built earlier is continued by calling Next with
// the base fee of every block that exists already.
func (t *Traffic) Next(number uint64, baseFee *big.Int) (Contents, error) {
	if number != t.number+1 {
		return Contents{}, fmt.Errorf("demo: contents asked for block %d, expected %d", number, t.number+1)
	}
	if baseFee == nil || baseFee.Sign() < 0 {
		return Contents{}, fmt.Errorf("demo: base fee of block %d is %v, expected a number of wei", number, baseFee)
	}
	n := t.network
	rng := rand.New(rand.NewPCG(n.config.Seed, number))
	d := &draft{
		Traffic: t,
		rng:     rng,
		zipf:    newPopularity(rng, n),
		baseFee: baseFee,
		storm:   number/blobStormBlocks%blobStormPeriod == blobStormPeriod-1,
		contents: Contents{
			Number:           number,
			Timestamp:        Timestamp(number),
			FeeRecipient:     n.builders[number%builderCount],
			PrevRandao:       n.hash("randao", number),
			ParentBeaconRoot: n.hash("beacon root", number),
		},
	}
	if n.isAmsterdam(number) {
		d.contents.SlotNumber = number - n.config.AmsterdamBlock
	}
	d.withdraw()
	if len(t.setup) > 0 {
		d.sendSetup()
	} else {
		d.sendTraffic()
	}
	if d.err != nil {
		return Contents{}, fmt.Errorf("demo: block %d: %w", number, d.err)
	}
	t.number = number
	return d.contents, nil
}

// Resume takes the nonces of all accounts from the chain. They differ from those that the traffic counts when a builder has left
// out a transaction: a limit may be too high for the gas that is left in its block.
func (t *Traffic) Resume(nonce func(common.Address) (uint64, error)) error {
	for address := range t.nonces {
		next, err := nonce(address)
		if err != nil {
			return err
		}
		t.nonces[address] = next
	}
	return nil
}

// sendSetup sends as many of the network's first transactions as fit.
func (d *draft) sendSetup() {
	for len(d.setup) > 0 && d.room() {
		d.action = "setup"
		d.send(d.setup[0])
		d.setup = d.setup[1:]
	}
}

// sendTraffic fills the block with actions, as many as chance has it.
func (d *draft) sendTraffic() {
	wanted := d.blockSize()
	if wanted == 0 {
		return
	}
	d.sendRegulars()
	for len(d.contents.Transactions) < wanted && d.room() && d.err == nil {
		d.act()
	}
	if d.network.config.SteadyFee && d.baseFee.Cmp(gwei(1)) < 0 {
		d.fill()
	}
}

// blockSize is how many transactions the block is to have. Actions may add a
// transaction or two of preparation.
func (d *draft) blockSize() int {
	mean := d.network.config.MeanTransactions
	between := func(low, high int) int { return low + d.rng.IntN(max(high-low, 0)+1) }
	switch r := d.rng.IntN(100); {
	case r < 8:
		return 0
	case r < 38:
		return between(1, mean/3)
	case r < 86:
		return between(mean*3/5, mean*9/5)
	default:
		return between(mean*5/2, mean*16/5)
	}
}

// act does one action, chosen by weight.
func (d *draft) act() {
	r := d.rng.IntN(d.weight)
	for _, a := range d.actions {
		if r < a.weight {
			d.action = a.name
			a.do(d)
			return
		}
		r -= a.weight
	}
}

// withdraw adds the block's withdrawals (EIP-4895): often none, at most 16.
func (d *draft) withdraw() {
	count := 0
	switch r := d.rng.IntN(10); {
	case r < 4:
	case r < 9:
		count = 1 + d.rng.IntN(4)
	default:
		count = 16
	}
	d.contents.Withdrawals = make([]*types.Withdrawal, count)
	for i := range count {
		d.contents.Withdrawals[i] = &types.Withdrawal{
			Index:     d.withdrawals,
			Validator: d.withdrawals * 7 % 1000,
			Address:   d.recipient(),
			Amount:    1 + d.rng.Uint64N(50_000_000), // gwei
		}
		d.withdrawals++
	}
}
