package demo

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// delegateCall is Delegate.Call.
type delegateCall struct {
	To    common.Address
	Value *big.Int
	Data  []byte
}

// delegateCode sends authorizations: to point an account to the Delegate contract
// and call it there, to several at once, to take one back, or ones that are
// skipped because something in them is wrong.
func (d *draft) delegateCode() {
	authority := d.authority()
	ping := call{from: d.someone(), to: &authority.address, gas: 90_000, input: d.input("Delegate", "ping")}
	holder := d.holder()
	away := call{from: d.someone(), to: &holder, gas: 40_000, value: big.NewInt(1)}
	switch d.rng.IntN(8) {
	case 0, 1, 2:
		d.sendSetCode(ping, d.authorize(d.network.delegate, authority))
	case 3:
		other := d.network.authorities[d.rng.IntN(authorityCount)]
		d.sendSetCode(ping, append(d.authorize(d.network.delegate, authority), d.authorize(d.network.delegate, other)...))
	case 4: // back to an account without code
		d.sendSetCode(away, d.authorize(common.Address{}, authority))
	case 5: // one transaction with several calls, sent by the account to itself
		d.sendBatch(authority)
	case 6: // skipped: the nonce is not the account's
		d.sendSetCode(away, d.authorizeAt(authority, d.network.delegate, d.signer.ChainID().Uint64(), d.nonces[authority.address]+7))
	default: // skipped: for another chain
		d.sendSetCode(away, d.authorizeAt(authority, d.network.delegate, 1, d.nonces[authority.address]))
	}
}

func (d *draft) sendBatch(authority account) {
	calls := []delegateCall{
		{To: d.network.tokens[0], Value: new(big.Int), Data: d.input("Token", "mint", authority.address, wholeTokens(5))},
		{To: d.network.tokens[0], Value: new(big.Int), Data: d.input("Token", "transfer", d.holder(), wholeTokens(3))},
		{To: d.holder(), Value: big.NewInt(1)},
	}
	// The sender's nonce has gone up by the time the authorization is looked at.
	list := d.authorizeAt(authority, d.network.delegate, d.signer.ChainID().Uint64(), d.nonces[authority.address]+1)
	d.sendSetCode(call{from: authority, to: &authority.address, gas: 260_000, input: d.input("Delegate", "batch", calls)}, list)
	d.nonces[authority.address]++
}

// authorize is an authorization that takes effect.
func (d *draft) authorize(delegate common.Address, authority account) []types.SetCodeAuthorization {
	chain := d.signer.ChainID().Uint64()
	if d.rng.IntN(4) == 0 {
		chain = 0 // any
	}
	list := d.authorizeAt(authority, delegate, chain, d.nonces[authority.address])
	d.nonces[authority.address]++
	return list
}

func (d *draft) authorizeAt(authority account, delegate common.Address, chain, nonce uint64) []types.SetCodeAuthorization {
	signed, err := types.SignSetCode(authority.key, types.SetCodeAuthorization{
		ChainID: *uint256.NewInt(chain), Address: delegate, Nonce: nonce,
	})
	d.note(err)
	return []types.SetCodeAuthorization{signed}
}

func (d *draft) authority() account {
	return d.network.authorities[d.rng.IntN(authorityCount)]
}

// payAuthority sends ether to an account that may have code, which then logs it.
func (d *draft) payAuthority() {
	to := d.authority().address
	d.send(call{from: d.someone(), to: &to, gas: 40_000, value: d.between(1, 1_000_000)})
}
