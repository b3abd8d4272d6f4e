package demo

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
)

// tokenBook knows what senders can certainly spend: what they were minted less
// what they sent. What they received comes on top.
type tokenBook struct {
	spendable [][]uint64 // by sender and token, in thousandths of a token
	allowed   map[allowance]bool
}

// allowance without a limit.
type allowance struct {
	owner   int // a sender
	token   int
	spender common.Address
}

func newTokenBook(senders, tokens int) tokenBook {
	b := tokenBook{spendable: make([][]uint64, senders), allowed: make(map[allowance]bool)}
	for i := range b.spendable {
		b.spendable[i] = make([]uint64, tokens)
	}
	return b
}

// mintAmount is what a sender is minted who runs short, in thousandths.
const mintAmount = 1_000_000_000

// thousandths of a token in its smallest unit.
func thousandths(n uint64) *big.Int {
	return new(big.Int).Mul(new(big.Int).SetUint64(n), big.NewInt(1_000_000_000_000_000))
}

// unlimited is the greatest number that a contract knows.
func unlimited() *big.Int {
	return new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))
}

func (d *draft) token() int { return int(d.zipf.tokens.Uint64()) }

// amount is a sum to send, in thousandths.
func (d *draft) amount() uint64 { return 1 + d.rng.Uint64N(100_000) }

// slotState is the state that a new slot takes.
const slotState = 64

// sendToken sends a call of a token's method.
func (d *draft) sendToken(from, token int, gas uint64, fails bool, method string, args ...any) {
	d.send(call{
		from: d.network.senders[from], to: &d.network.tokens[token], gas: gas, fails: fails,
		input: d.input("Token", method, args...),
	})
}

// spend takes an amount from a sender's spendable tokens, after minting some if
// they are too few.
func (d *draft) spend(sender, token int, amount uint64) {
	have := &d.tokens.spendable[sender][token]
	if *have < amount {
		d.sendToken(sender, token, 80_000, false, "mint", d.network.senders[sender].address, thousandths(mintAmount))
		*have += mintAmount
	}
	*have -= amount
}

// allow makes sure that the spender may spend all of the owner's tokens.
func (d *draft) allow(owner, token int, spender common.Address) {
	a := allowance{owner, token, spender}
	if d.tokens.allowed[a] {
		return
	}
	d.sendToken(owner, token, 55_000, false, "approve", spender, unlimited())
	d.tokens.allowed[a] = true
}

func (d *draft) transferToken() {
	from, token, amount := d.sender(), d.token(), d.amount()
	d.spend(from, token, amount)
	d.sendToken(from, token, 65_000, false, "transfer", d.recipient(), thousandths(amount))
}

func (d *draft) approveToken() {
	d.sendToken(d.sender(), d.token(), 55_000, false, "approve", d.holder(), thousandths(d.amount()))
}

// friend is the one sender who may spend another's tokens, so that all the
// others may not.
func (d *draft) friend(owner int) int { return (owner + 1) % len(d.network.senders) }

func (d *draft) transferTokenFrom() {
	owner, token, amount := d.sender(), d.token(), d.amount()
	friend := d.friend(owner)
	d.spend(owner, token, amount)
	d.allow(owner, token, d.network.senders[friend].address)
	d.sendToken(friend, token, 70_000, false, "transferFrom", d.network.senders[owner].address, d.recipient(), thousandths(amount))
}

func (d *draft) burnToken() {
	from, token, amount := d.sender(), d.token(), d.amount()
	d.spend(from, token, amount)
	d.sendToken(from, token, 50_000, false, "burn", thousandths(amount))
}

func (d *draft) airdropToken() {
	to := make([]common.Address, 5+d.rng.IntN(20))
	for i := range to {
		to[i] = d.recipient()
	}
	d.send(call{
		from: d.someone(), to: &d.network.tokens[d.token()], gas: uint64(60_000 + 35_000*len(to)), state: slotState * uint64(len(to)),
		input: d.input("Token", "airdrop", to, thousandths(d.amount())),
	})
}

// failToken sends tokens in a way that fails.
func (d *draft) failToken() {
	from, token := d.sender(), d.token()
	switch d.rng.IntN(4) {
	case 0: // InsufficientBalance
		d.sendToken(from, token, 60_000, true, "transfer", d.holder(), unlimited())
	case 1: // a reason
		d.sendToken(from, token, 60_000, true, "transfer", common.Address{}, big.NewInt(1))
	case 2: // InsufficientAllowance: nobody allows anything to the sender two further on
		stranger := d.friend(d.friend(from))
		d.sendToken(stranger, token, 60_000, true, "transferFrom", d.network.senders[from].address, d.holder(), big.NewInt(1))
	default: // not enough gas
		d.send(call{
			from: d.network.senders[from], to: &d.network.tokens[token], gas: 26_000, tight: true, fails: true,
			input: d.input("Token", "transfer", d.holder(), big.NewInt(1)),
		})
	}
}
