package demo

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// Examples names things of the network that are worth asking for. They exist
// from block 3 on at the latest and stay.
type Examples struct {
	Token       common.Address // the ERC-20 with the most traffic
	Collectible common.Address // an ERC-721
	Pool        common.Address // trades Token for the second token
	Ledger      common.Address // sum() reads a hundred slots
	Holder      common.Address // has a balance of Token and receives more
	Sender      common.Address // the most active sender of transactions

	// Visitor has ether from the genesis on, and sends nothing unless a user of the demo
	// does. Everybody can make its key: it is worth nothing anywhere else.
	Visitor      common.Address
	VisitorKey   hexutil.Bytes
	FirstPayment hexutil.Bytes // signed transaction with Visitor's first nonce: 1 ether to Sender
	ChainID      uint64

	HolderSlot    common.Hash // slot of Token that holds Holder's balance
	TransferTopic common.Hash // first topic of every transfer, ERC-20 and ERC-721
	SwapTopic     common.Hash // first topic of a pool's swaps

	BalanceOfHolder hexutil.Bytes // input of Token.balanceOf(Holder)
	LedgerSum       hexutil.Bytes // input of Ledger.sum()
}

// Examples returns what the network has to show.
func (n *Network) Examples() (Examples, error) {
	holder := n.holders[0]
	balance, err := n.contracts.call("Token", "balanceOf", holder)
	if err != nil {
		return Examples{}, err
	}
	sum, err := n.contracts.call("Ledger", "sum")
	if err != nil {
		return Examples{}, err
	}
	payment, err := n.firstPayment()
	if err != nil {
		return Examples{}, err
	}
	return Examples{
		Token:       n.tokens[0],
		Collectible: n.collections[0],
		Pool:        n.pools[0],
		Ledger:      n.ledger,
		Holder:      holder,
		Sender:      n.senders[0].address,
		// balanceOf is the token's slot 0: keccak256(holder . 0).
		HolderSlot:      crypto.Keccak256Hash(common.LeftPadBytes(holder[:], 32), make([]byte, 32)),
		TransferTopic:   crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)")),
		SwapTopic:       crypto.Keccak256Hash([]byte("Swap(address,uint256,uint256,uint256,uint256,address)")),
		BalanceOfHolder: balance,
		LedgerSum:       sum,
		Visitor:         n.visitor.address,
		VisitorKey:      crypto.FromECDSA(n.visitor.key),
		FirstPayment:    payment,
		ChainID:         n.config.ChainID,
	}, nil
}

// firstPayment signs the visitor's first transaction. Its fee is far above any base fee
// of the network.
func (n *Network) firstPayment() ([]byte, error) {
	tx, err := types.SignNewTx(n.visitor.key, types.LatestSignerForChainID(new(big.Int).SetUint64(n.config.ChainID)), &types.DynamicFeeTx{
		ChainID: new(big.Int).SetUint64(n.config.ChainID), GasTipCap: gwei(1), GasFeeCap: gwei(1000), Gas: 50_000,
		To: &n.senders[0].address, Value: ether(1),
	})
	if err != nil {
		return nil, err
	}
	return tx.MarshalBinary()
}
