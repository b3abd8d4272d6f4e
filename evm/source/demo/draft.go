package demo

import (
	"math/big"
	"math/rand/v2"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

// actionGas is more gas than the transactions of any single action ask for.
// A block that has less left gets no further action: an action half sent would
// leave the books of Traffic wrong.
const actionGas = 2_000_000

// draft is a block's contents while they are put together. Its methods note the
// first error in err and do nothing useful after it.
type draft struct {
	*Traffic
	rng      *rand.Rand
	zipf     popularity
	baseFee  *big.Int
	storm    bool // blobs fill the block
	contents Contents
	action   string // the one under way
	gas      uint64 // that the transactions so far may use, state aside
	state    uint64 // gas that they may use for state, from Amsterdam on
	blobs    int
	exits    bool // the block has a withdrawal request
	merges   bool // the block has a consolidation request
	err      error
}

// call is a transaction before it has a form, a price and a signature.
type call struct {
	from   account
	to     *common.Address // nil creates a contract
	value  *big.Int        // nil is 0
	gas    uint64          // limit, without what an access list, authorizations or state cost
	state  uint64          // bytes of state that it may create beyond usualState
	tight  bool            // it gets no gas for state
	input  []byte
	access types.AccessList // for the forms that can carry one; chosen when nil
	fails  bool
}

// popularity chooses few often and many seldom.
type popularity struct {
	senders, holders, tokens *rand.Zipf
}

func newPopularity(rng *rand.Rand, n *Network) popularity {
	return popularity{
		senders: rand.NewZipf(rng, 1.1, 4, uint64(len(n.senders)-1)),
		holders: rand.NewZipf(rng, 1.1, 4, uint64(len(n.holders)-1)),
		tokens:  rand.NewZipf(rng, 1.6, 1, uint64(len(n.tokens)-1)),
	}
}

func (d *draft) room() bool {
	return max(d.gas, d.state)+actionGas+actionState*d.statePrice() <= d.network.config.GasLimit
}

// actionState is more state than the transactions of any single action create, and
// usualState than nearly any transaction does: an account, or two slots and a little.
const (
	actionState = 2_000
	usualState  = 140
)

// statePrice is the gas for a byte of state in the block (EIP-8037).
func (d *draft) statePrice() uint64 {
	if !d.network.isAmsterdam(d.contents.Number) {
		return 0
	}
	return params.CostPerStateByte
}

// isAmsterdam reports whether a block is of Amsterdam.
func (n *Network) isAmsterdam(number uint64) bool {
	return n.config.AmsterdamBlock > 0 && number >= n.config.AmsterdamBlock
}

// sender is the index of a sending account.
func (d *draft) sender() int { return int(d.zipf.senders.Uint64()) }

func (d *draft) someone() account { return d.network.senders[d.sender()] }

// recipient is any address without code: mostly a holder, sometimes a sender,
// now and then one never seen before.
func (d *draft) recipient() common.Address {
	switch r := d.rng.IntN(100); {
	case r < 22:
		return d.someone().address
	case r < 97:
		return d.holder()
	default:
		return common.BytesToAddress(d.bytes(20))
	}
}

func (d *draft) holder() common.Address { return d.network.holders[d.zipf.holders.Uint64()] }

func (d *draft) bytes(n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(d.rng.Uint32())
	}
	return out
}

func (d *draft) word() common.Hash { return common.Hash(d.bytes(common.HashLength)) }

// between is a number from low to high.
func (d *draft) between(low, high int64) *big.Int {
	return big.NewInt(low + d.rng.Int64N(high-low+1))
}

// input is the input of a call of a contract's method.
func (d *draft) input(contract, method string, args ...any) []byte {
	input, err := d.network.contracts.call(contract, method, args...)
	d.note(err)
	return input
}

func (d *draft) creation(contract string, args ...any) []byte {
	input, err := d.network.contracts.create(contract, args...)
	d.note(err)
	return input
}

func (d *draft) note(err error) {
	if d.err == nil {
		d.err = err
	}
}

// send signs a call in one of the forms that carry no more than the call: legacy
// with and without a chain id, with an access list, with a dynamic fee.
func (d *draft) send(c call) {
	to, value := c.to, valueOf(c).ToBig()
	nonce := d.nonces[c.from.address]
	tip, price := d.fees()
	switch r := d.rng.IntN(100); {
	case r < 18:
		d.sign(c, d.signer, &types.LegacyTx{Nonce: nonce, GasPrice: price, Gas: c.gas, To: to, Value: value, Data: c.input})
	case r < 24:
		d.sign(c, types.HomesteadSigner{}, &types.LegacyTx{Nonce: nonce, GasPrice: price, Gas: c.gas, To: to, Value: value, Data: c.input})
	case r < 38:
		list := d.accessList(c)
		d.sign(c, d.signer, &types.AccessListTx{
			ChainID: d.signer.ChainID(), Nonce: nonce, GasPrice: price, Gas: c.gas + accessGas(list),
			To: to, Value: value, Data: c.input, AccessList: list,
		})
	default:
		d.sign(c, d.signer, &types.DynamicFeeTx{
			ChainID: d.signer.ChainID(), Nonce: nonce, GasTipCap: tip, GasFeeCap: price, Gas: c.gas + accessGas(c.access),
			To: to, Value: value, Data: c.input, AccessList: c.access,
		})
	}
}

// sendBlobs sends a call with blobs; their contents are nobody's business here,
// as in any block.
func (d *draft) sendBlobs(c call, hashes []common.Hash) {
	tip, price := d.fees()
	d.blobs += len(hashes)
	d.sign(c, d.signer, &types.BlobTx{
		ChainID: uint256.MustFromBig(d.signer.ChainID()), Nonce: d.nonces[c.from.address],
		GasTipCap: uint256.MustFromBig(tip), GasFeeCap: uint256.MustFromBig(price), Gas: c.gas + accessGas(c.access),
		To: *c.to, Value: valueOf(c), Data: c.input, AccessList: c.access,
		// Far above any price of blobs here, which EIP-7918 ties to the base fee.
		BlobFeeCap: new(uint256.Int).Add(uint256.MustFromBig(d.baseFee), uint256.NewInt(10_000_000_000)),
		BlobHashes: hashes,
	})
}

// sendSetCode sends a call with authorizations (EIP-7702).
func (d *draft) sendSetCode(c call, list []types.SetCodeAuthorization) {
	tip, price := d.fees()
	d.sign(c, d.signer, &types.SetCodeTx{
		ChainID: uint256.MustFromBig(d.signer.ChainID()), Nonce: d.nonces[c.from.address],
		GasTipCap: uint256.MustFromBig(tip), GasFeeCap: uint256.MustFromBig(price),
		Gas: c.gas + authorizationGas*uint64(len(list)),
		To:  *c.to, Value: valueOf(c), Data: c.input, AuthList: list,
	})
}

// sign adds the transaction to the block.
func (d *draft) sign(c call, signer types.Signer, data types.TxData) {
	if d.err != nil {
		return
	}
	state := (usualState + c.state) * d.statePrice()
	if c.tight {
		state = 0
	}
	addGas(data, state)
	tx, err := types.SignNewTx(c.from.key, signer, data)
	if err != nil {
		d.note(err)
		return
	}
	d.contents.Transactions = append(d.contents.Transactions, tx)
	d.contents.Intents = append(d.contents.Intents, Intent{Action: d.action, Fails: c.fails})
	d.gas += tx.Gas() - state
	d.state += state
	d.nonces[c.from.address]++
}

// addGas raises the gas limit of a transaction.
func addGas(data types.TxData, gas uint64) {
	switch data := data.(type) {
	case *types.LegacyTx:
		data.Gas += gas
	case *types.AccessListTx:
		data.Gas += gas
	case *types.DynamicFeeTx:
		data.Gas += gas
	case *types.BlobTx:
		data.Gas += gas
	case *types.SetCodeTx:
		data.Gas += gas
	}
}

// fees are a tip and the most that is paid for gas in all. Some prices leave less
// than the tip, some tips are nothing.
func (d *draft) fees() (tip, price *big.Int) {
	tip = d.between(0, 20)
	tip.Mul(tip, big.NewInt(100_000_000))
	price = new(big.Int).Set(d.baseFee)
	switch d.rng.IntN(4) {
	case 0:
		price.Add(price, d.between(0, 500_000_000))
	case 1:
		price.Add(price, tip)
	default:
		price.Lsh(price, 1)
		price.Add(price, tip)
	}
	if price.Cmp(tip) < 0 {
		price.Set(tip)
	}
	return tip, price
}

const (
	accessAddressGas = 4500 // 2400 before Amsterdam
	accessKeyGas     = 5000 // 1900 before Amsterdam
	authorizationGas = 25000
)

func accessGas(list types.AccessList) uint64 {
	return accessAddressGas*uint64(len(list)) + accessKeyGas*uint64(list.StorageKeys())
}

// accessList is the call's own list, or one with the called contract's first
// slots: a guess, as lists in the wild are.
func (d *draft) accessList(c call) types.AccessList {
	if c.access != nil || c.to == nil {
		return c.access
	}
	list := types.AccessList{{Address: *c.to, StorageKeys: []common.Hash{}}}
	for slot := range d.rng.IntN(4) {
		list[0].StorageKeys = append(list[0].StorageKeys, common.BigToHash(big.NewInt(int64(slot))))
	}
	return list
}

func valueOf(c call) *uint256.Int {
	if c.value == nil {
		return new(uint256.Int)
	}
	return uint256.MustFromBig(c.value)
}
