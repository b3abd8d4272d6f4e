package demo

import (
	"math/big"

	"github.com/ethereum/go-ethereum/params"
)

const publicKeyLength = 48 // of a validator

// request sends what a block hands to the consensus layer: a deposit (EIP-6110),
// a withdrawal (EIP-7002) or a consolidation (EIP-7251). The latter two take a
// fee that rises when a block has more of them than one or two; it has not.
func (d *draft) request() {
	switch c := (call{from: d.someone(), gas: 230_000, state: 6 * slotState, value: requestFee()}); d.rng.IntN(3) {
	case 0:
		d.deposit()
	case 1:
		if d.exits {
			d.deposit()
			return
		}
		d.exits = true
		c.to = &params.WithdrawalQueueAddress
		amount := d.between(0, 1).FillBytes(make([]byte, 8)) // gwei; 0 is a full exit
		c.input = append(d.bytes(publicKeyLength), amount...)
		d.send(c)
	default:
		if d.merges {
			d.deposit()
			return
		}
		d.merges = true
		c.to = &params.ConsolidationQueueAddress
		c.input = d.bytes(2 * publicKeyLength)
		d.send(c)
	}
}

// requestFee is more than the least fee of a request, 1 wei.
func requestFee() *big.Int { return big.NewInt(10) }

func (d *draft) deposit() {
	to := depositContract
	value := ether(1)
	if d.rng.IntN(2) == 0 {
		value = ether(32)
	}
	d.send(call{
		from: d.someone(), to: &to, gas: 150_000, value: value,
		input: d.input("Deposits", "deposit", d.bytes(publicKeyLength), d.bytes(32), d.bytes(96)),
	})
}
