package execute

import (
	"context"
	"errors"
	"math/big"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"
)

// world is a small state to call in, with what goes wrong in reading it.
type world struct {
	nothing
	accounts map[common.Hash]*types.StateAccount
	codes    map[common.Hash][]byte
	slots    map[common.Hash]map[common.Hash]common.Hash
	broken   string // what cannot be read: account, slot, code, hash
}

var errDisk = errors.New("the disk is gone")

func newWorld() *world {
	return &world{
		accounts: make(map[common.Hash]*types.StateAccount),
		codes:    make(map[common.Hash][]byte),
		slots:    make(map[common.Hash]map[common.Hash]common.Hash),
	}
}

func (w *world) put(address common.Address, balance uint64, code []byte, slots ...common.Hash) {
	key := evm.HashAddress(address)
	account := types.NewEmptyStateAccount()
	account.Balance = uint256.NewInt(balance)
	if len(code) > 0 {
		account.CodeHash = crypto.Keccak256(code)
		w.codes[common.Hash(account.CodeHash)] = code
	}
	w.slots[key] = make(map[common.Hash]common.Hash)
	for i, value := range slots {
		w.slots[key][evm.HashSlot(word(uint64(i)))] = value
		account.Root = someRoot
	}
	w.accounts[key] = account
}

func (w *world) Account(_ context.Context, address common.Hash) (*types.StateAccount, error) {
	if w.broken == "account" {
		return nil, errDisk
	}
	account := w.accounts[address]
	if account == nil {
		return nil, nil
	}
	return account.Copy(), nil
}

func (w *world) Slot(_ context.Context, address, slot common.Hash) (common.Hash, error) {
	if w.broken == "slot" {
		return common.Hash{}, errDisk
	}
	return w.slots[address][slot], nil
}

func (w *world) Code(_ context.Context, hash common.Hash) ([]byte, error) {
	if w.broken == "code" {
		return nil, errDisk
	}
	return w.codes[hash], nil
}

func (w *world) BlockHash(_ context.Context, number uint64) (common.Hash, error) {
	if w.broken == "hash" {
		return common.Hash{}, errDisk
	}
	return word(0xb10c0000 + number), nil
}

// at is block 1000 of the world, of the rules of Osaka.
func (w *world) at() At {
	return At{State: w, Hashes: w, Header: &types.Header{
		ParentHash: word(0xb10c0000 + 999), Number: big.NewInt(1000), Time: 12000, GasLimit: 36_000_000,
		Difficulty: new(big.Int), BaseFee: big.NewInt(7), Coinbase: common.HexToAddress("0xfee"),
		MixDigest: word(0x4a4d), ExcessBlobGas: new(uint64), BlobGasUsed: new(uint64),
	}}
}
