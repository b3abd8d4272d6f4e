package differential

import (
	"crypto/ecdsa"
	"encoding/json"
	"fmt"
	"math/big"
	"testing"

	"ashlar/internal/node"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

// Contracts in the genesis block of the crossing chain, by what they do when called.
var (
	counter   = common.HexToAddress("0xc0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0") // increments slot 0 and logs it
	forwarder = common.HexToAddress("0xf0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0") // sends the value on to the caller
	destroyed = common.HexToAddress("0xd0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0") // self-destructs in favor of its caller
	failing   = common.HexToAddress("0xfafafafafafafafafafafafafafafafafafafafa") // writes slot 0 and reverts
)

const (
	counterCode   = "0x600160005401600055600054" + "60006000a100"
	forwarderCode = "0x6000600060006000" + "34335af100"
	destroyedCode = "0x33ff"
	failingCode   = "0x600160005560006000fd"

	// createCounter writes slot 1 and returns code that is a single STOP.
	createCounter = "0x600160015560015ff3"
	// createDestroyed self-destructs in its constructor, in favor of its sender.
	createDestroyed = "0x33ff"
	// createSelfDestroyed self-destructs in its constructor, in favor of itself.
	createSelfDestroyed = "0x30ff"
)

const (
	// nativeLogs is the number of native transfers in a round.
	nativeLogs = 10
	// selfDestroyed is the index of the kind with createSelfDestroyed.
	selfDestroyed      = 7
	selfDestroyedValue = 13
)

// trafficGas is the gas limit of each transaction. It covers state that Amsterdam prices.
const trafficGas = 1_200_000

// traffic sends one transaction of each kind a round. Each kind has a sender of its own, so
// that none waits for another.
type traffic struct {
	t       *testing.T
	signer  types.Signer
	senders []*ecdsa.PrivateKey
	rounds  uint64
}

func newTraffic(t *testing.T, chain *params.ChainConfig, alloc types.GenesisAlloc) *traffic {
	t.Helper()
	tr := &traffic{t: t, signer: types.LatestSigner(chain)}
	for i := range len(tr.kinds()) + 1 { // and the authority
		key, err := crypto.ToECDSA(crypto.Keccak256(fmt.Append(nil, "crossing ", *seed, " ", i)))
		if err != nil {
			t.Fatal(err)
		}
		tr.senders = append(tr.senders, key)
		alloc[crypto.PubkeyToAddress(key.PublicKey)] = types.Account{Balance: big.NewInt(params.Ether)}
	}
	for address, code := range map[common.Address]string{counter: counterCode, forwarder: forwarderCode, destroyed: destroyedCode, failing: failingCode} {
		alloc[address] = types.Account{Code: common.FromHex(code), Balance: big.NewInt(1000)}
	}
	return tr
}

// kinds returns a transaction of each kind: receiver, nil for a creation, value and input.
func (tr *traffic) kinds() []types.DynamicFeeTx {
	fresh := common.BigToAddress(new(big.Int).SetUint64(0xf7e5_0000 + tr.rounds))
	withdrawal := append(make([]byte, 48), 0, 0, 0, 0, 0, 0, 0, 1)
	return []types.DynamicFeeTx{
		{To: &fresh, Value: big.NewInt(1234)},
		{To: &forwarder, Value: big.NewInt(77)},
		{To: &counter},
		{To: &destroyed, Value: big.NewInt(5)},
		{To: &failing, Value: big.NewInt(3)},
		{Value: big.NewInt(9), Data: common.FromHex(createCounter)},
		{Value: big.NewInt(11), Data: common.FromHex(createDestroyed)},
		{Value: big.NewInt(selfDestroyedValue), Data: common.FromHex(createSelfDestroyed)},
		{To: &params.WithdrawalQueueAddress, Value: big.NewInt(1000), Data: withdrawal},
	}
}

// round returns the transactions of the next round.
func (tr *traffic) round() []*types.Transaction {
	tr.t.Helper()
	tip, price := big.NewInt(params.GWei), big.NewInt(20*params.GWei)
	var all []*types.Transaction
	for i, kind := range tr.kinds() {
		kind.ChainID, kind.Nonce, kind.Gas, kind.GasTipCap, kind.GasFeeCap = tr.signer.ChainID(), tr.rounds, trafficGas, tip, price
		if i == 0 { // delegates the authority to the counter and calls it
			all = append(all, tr.delegation(tip, price))
			continue
		}
		all = append(all, types.MustSignNewTx(tr.senders[i], tr.signer, &kind))
	}
	// A second transaction of the delegating sender, a plain transfer.
	transfer := tr.kinds()[0]
	transfer.ChainID, transfer.Nonce, transfer.Gas, transfer.GasTipCap, transfer.GasFeeCap = tr.signer.ChainID(), 2*tr.rounds+1, trafficGas, tip, price
	all = append(all, types.MustSignNewTx(tr.senders[0], tr.signer, &transfer))
	tr.rounds++
	return all
}

func (tr *traffic) delegation(tip, price *big.Int) *types.Transaction {
	tr.t.Helper()
	authority := tr.senders[len(tr.senders)-1]
	chain := uint256.MustFromBig(tr.signer.ChainID())
	signed, err := types.SignSetCode(authority, types.SetCodeAuthorization{ChainID: *chain, Address: counter, Nonce: tr.rounds})
	if err != nil {
		tr.t.Fatal(err)
	}
	return types.MustSignNewTx(tr.senders[0], tr.signer, &types.SetCodeTx{
		ChainID: chain, Nonce: 2 * tr.rounds, Gas: trafficGas, GasTipCap: uint256.MustFromBig(tip), GasFeeCap: uint256.MustFromBig(price),
		To: crypto.PubkeyToAddress(authority.PublicKey), AuthList: []types.SetCodeAuthorization{signed},
	})
}

// send sends a round to a node, and returns the number of transactions.
func (tr *traffic) send(to *node.Client) int {
	tr.t.Helper()
	var calls [][]any
	for _, tx := range tr.round() {
		raw, err := tx.MarshalBinary()
		if err != nil {
			tr.t.Fatal(err)
		}
		calls = append(calls, []any{hexutil.Bytes(raw)})
	}
	if err := to.Batch(tr.t.Context(), "eth_sendRawTransaction", calls, func(int, json.RawMessage) error { return nil }); err != nil {
		tr.t.Fatal(err)
	}
	return len(calls)
}
