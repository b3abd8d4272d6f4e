package demo

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// boxLimit is how many Box contracts are remembered for later calls.
const boxLimit = 32

// boxState is more state than a Box, or a Mayfly, takes: an account, its code, its slot.
const boxState = 600

// create sends creations: of a small contract with ether, a larger one, and one
// without code.
func (d *draft) create() {
	c := call{from: d.someone()}
	switch d.rng.IntN(4) {
	case 0:
		c.gas, c.state, c.input = 400_000, 1_300, d.creation("Ledger")
	case 1:
		c.gas, c.value = 60_000, d.between(0, 1_000)
	default:
		c.gas, c.state, c.input, c.value = 180_000, boxState, d.creation("Box", d.between(0, 1_000_000)), d.between(0, 1_000)
		d.keepBox(crypto.CreateAddress(c.from.address, d.nonces[c.from.address]))
	}
	d.send(c)
}

func (d *draft) failCreate() {
	d.send(call{from: d.someone(), gas: 120_000, fails: true, input: d.creation("Stillborn")})
}

func (d *draft) keepBox(at common.Address) {
	if len(d.boxes) == boxLimit {
		d.boxes = d.boxes[1:]
	}
	d.boxes = append(d.boxes, at)
}

// useBox writes to a Box, or closes it. Closed boxes stay, so this always works.
func (d *draft) useBox() {
	if len(d.boxes) == 0 {
		d.create()
		return
	}
	at := d.boxes[d.rng.IntN(len(d.boxes))]
	if d.rng.IntN(3) == 0 {
		d.invoke(&at, 70_000, "Box", "close", d.holder())
		return
	}
	d.invoke(&at, 60_000, "Box", "put", d.between(0, 5))
}

func (d *draft) useFactory() {
	at := &d.network.factory
	d.salt++
	salt := d.network.hash("salt", d.salt)
	content := d.between(0, 1_000)
	switch d.rng.IntN(5) {
	case 0, 1:
		d.make(at, 220_000, "create", content)
	case 2, 3:
		d.make(at, 220_000, "create2", salt, content)
	default:
		d.make(at, 340_000, "create2Twice", salt)
	}
}

// make sends a call of a method of the factory that creates a Box.
func (d *draft) make(at *common.Address, gas uint64, method string, args ...any) {
	d.send(call{from: d.someone(), to: at, gas: gas, state: boxState, input: d.input("Factory", method, args...)})
}

// mayfly creates a contract, lets it write and destroys it, again and again at
// the same few addresses.
func (d *draft) mayfly() {
	salt := common.BigToHash(d.between(0, 2))
	d.send(call{
		from: d.someone(), to: &d.network.factory, gas: 220_000, state: boxState, value: d.between(1, 1_000),
		input: d.input("Factory", "mayfly", salt, d.holder()),
	})
}
