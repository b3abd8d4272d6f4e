package demo

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
)

func (d *draft) collection() int { return d.rng.IntN(len(d.network.collections)) }

func (d *draft) sendCollectible(from, collection int, gas uint64, fails bool, method string, args ...any) {
	d.send(call{
		from: d.network.senders[from], to: &d.network.collections[collection], gas: gas, fails: fails,
		input: d.input("Collectible", method, args...),
	})
}

// mintCollectible mints to a sender: only what senders own can be sent on.
func (d *draft) mintCollectible() {
	d.mintIn(d.collection())
}

func (d *draft) mintIn(collection int) {
	owner := d.sender()
	d.sendCollectible(d.sender(), collection, 110_000, false, "mint", d.network.senders[owner].address)
	d.owners[collection] = append(d.owners[collection], owner)
}

// owned chooses one of a collection's tokens; it mints one where there is none.
func (d *draft) owned(collection int) (id *big.Int, owner int) {
	if len(d.owners[collection]) == 0 {
		d.mintIn(collection)
	}
	i := d.rng.IntN(len(d.owners[collection]))
	return big.NewInt(int64(i) + 1), d.owners[collection][i]
}

func (d *draft) transferCollectible() {
	collection := d.collection()
	id, owner := d.owned(collection)
	to := d.sender()
	d.sendCollectible(owner, collection, 80_000, false, "transferFrom",
		d.network.senders[owner].address, d.network.senders[to].address, id)
	d.owners[collection][id.Int64()-1] = to
}

func (d *draft) approveCollectible() {
	collection := d.collection()
	if d.rng.IntN(2) == 0 {
		d.sendCollectible(d.sender(), collection, 60_000, false, "setApprovalForAll", d.holder(), d.rng.IntN(3) > 0)
		return
	}
	id, owner := d.owned(collection)
	approved := d.holder()
	if d.rng.IntN(3) == 0 {
		approved = common.Address{} // takes an approval back
	}
	d.sendCollectible(owner, collection, 65_000, false, "approve", approved, id)
}

func (d *draft) failCollectible() {
	collection := d.collection()
	id, owner := d.owned(collection)
	switch d.rng.IntN(3) {
	case 0: // NoSuchToken
		d.sendCollectible(owner, collection, 60_000, true, "approve", d.holder(), big.NewInt(1_000_000_000_000))
	case 1: // NotAuthorized
		stranger := d.friend(owner)
		d.sendCollectible(stranger, collection, 60_000, true, "approve", d.holder(), id)
	default: // a reason
		stranger := d.network.senders[d.friend(owner)].address
		d.sendCollectible(owner, collection, 60_000, true, "transferFrom", stranger, d.holder(), id)
	}
}
