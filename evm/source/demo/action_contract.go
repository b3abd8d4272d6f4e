package demo

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// invoke sends a call of a method of one of the network's single contracts.
func (d *draft) invoke(to *common.Address, gas uint64, contract, method string, args ...any) {
	d.send(call{from: d.someone(), to: to, gas: gas, input: d.input(contract, method, args...)})
}

const ledgerSize = 100 // Ledger.SIZE

func (d *draft) creditLedger() {
	index := d.between(0, ledgerSize-1)
	c := call{
		from: d.someone(), to: &d.network.ledger, gas: 110_000,
		input: d.input("Ledger", "credit", index, d.between(1, 1_000_000)),
	}
	switch d.rng.IntN(4) {
	case 0:
		c.value = d.between(1, 1_000_000_000)
	case 1: // a list that hits what the call touches: its balance, count and lastCaller
		c.access = types.AccessList{{Address: d.network.ledger, StorageKeys: []common.Hash{
			common.BigToHash(index), common.BigToHash(big.NewInt(ledgerSize)), common.BigToHash(big.NewInt(ledgerSize + 1)),
		}}}
	}
	d.send(c)
}

func (d *draft) sweepLedger() {
	from := d.between(0, ledgerSize-1)
	to := d.between(0, ledgerSize-1)
	d.invoke(&d.network.ledger, 70_000, "Ledger", "sweep", from, to)
}

// emit sends logs of an unusual shape.
func (d *draft) emit() {
	at := &d.network.emitter
	number := new(big.Int).SetUint64(d.contents.Number)
	switch d.rng.IntN(10) {
	case 0, 1:
		d.invoke(at, 60_000, "Emitter", "all", d.between(0, 999))
	case 2:
		d.invoke(at, 120_000, "Emitter", "bare", d.bytes(d.rng.IntN(200)))
	case 3:
		d.invoke(at, 60_000, "Emitter", "anonymous4", number, d.between(0, 3), d.between(0, 99), d.word().Big(), d.bytes(d.rng.IntN(64)))
	case 4: // looks like a transfer by its first topic, and is none
		d.invoke(at, 40_000, "Emitter", "anonymous1", crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)")))
	case 5, 6:
		subjects := []string{"weather", "harvest", "ships", "prices", ""}
		d.invoke(at, 90_000, "Emitter", "note", subjects[d.rng.IntN(len(subjects))], "block "+number.String()+": nothing to report, and that in more than one word of storage")
	case 7:
		d.invoke(at, 200_000, "Emitter", "blob", d.bytes(1+d.rng.IntN(1500)))
	case 8:
		d.invoke(at, 150_000, "Emitter", "burst", d.between(1, 40))
	default:
		d.emitRare(d.network.hash("rare topic", d.rng.Uint64N(1000)))
	}
}

func (d *draft) emitRare(tag common.Hash) {
	d.invoke(&d.network.emitter, 40_000, "Emitter", "rare", tag)
}

func (d *draft) descend() {
	d.invoke(&d.network.scratch, 200_000, "Scratch", "descend", d.between(0, 12))
}

// fail calls Faults so that it fails.
func (d *draft) fail() {
	faults := []struct {
		method string
		args   []any
	}{
		{"reason", []any{"not on a weekday"}},
		{"reason", []any{""}},
		{"reason", []any{"a reason long enough to need more than one word of memory: überlang"}},
		{"custom", []any{d.between(0, 9)}},
		{"customBare", nil},
		{"empty", nil},
		{"raw", []any{d.bytes(1 + d.rng.IntN(40))}},
		{"panicAssert", nil},
		{"panicOverflow", []any{d.between(1, 9)}},
		{"panicDivision", []any{new(big.Int)}},
		{"panicIndex", nil},
		{"invalid", nil},
		{"endless", nil},
		{"late", []any{d.between(0, 9)}},
	}
	f := faults[d.rng.IntN(len(faults))]
	d.send(call{from: d.someone(), to: &d.network.faults, gas: 90_000, fails: true, input: d.input("Faults", f.method, f.args...)})
}

func (d *draft) failInside() {
	d.invoke(&d.network.faults, 120_000, "Faults", "caught", d.between(0, 9))
}
