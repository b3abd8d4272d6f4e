package demo

import "math/big"

// pool is the index of a pool, most often the first.
func (d *draft) pool() int { return min(d.token(), len(d.network.pools)-1) }

// pay makes sure that the pool can take an amount of a token from the sender.
func (d *draft) pay(sender, token, pool int, amount uint64) {
	d.spend(sender, token, amount)
	d.allow(sender, token, d.network.pools[pool])
}

func (d *draft) sendPool(from, pool int, gas uint64, fails bool, method string, args ...any) {
	d.send(call{
		from: d.network.senders[from], to: &d.network.pools[pool], gas: gas, fails: fails,
		input: d.input("Pool", method, args...),
	})
}

// swap trades one of a pool's tokens for the other: three contracts, four logs.
// Amounts are small beside the pool's reserves, which therefore last.
func (d *draft) swap() {
	from, pool, amount := d.sender(), d.pool(), d.amount()
	zeroForOne := d.rng.IntN(2) == 0
	token := pool
	if !zeroForOne {
		token = pool + 1
	}
	d.pay(from, token, pool, amount)
	to := d.network.senders[from].address
	if d.rng.IntN(8) == 0 {
		to = d.recipient()
	}
	d.sendPool(from, pool, 190_000, false, "swap", zeroForOne, thousandths(amount), new(big.Int), to)
}

func (d *draft) addLiquidity() {
	from, pool, amount := d.sender(), d.pool(), d.amount()
	d.pay(from, pool, pool, amount)
	d.pay(from, pool+1, pool, amount)
	d.sendPool(from, pool, 190_000, false, "addLiquidity", thousandths(amount), thousandths(amount))
}

// failSwap asks for more than the pool would give.
func (d *draft) failSwap() {
	from := d.sender()
	d.sendPool(from, d.pool(), 60_000, true, "swap", true, thousandths(d.amount()), unlimited(), d.network.senders[from].address)
}
