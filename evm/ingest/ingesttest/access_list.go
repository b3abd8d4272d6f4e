package ingesttest

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// SpecifiedAccess is an account in the answer of eth_getBlockAccessList, as execution-apis
// specifies it.
type SpecifiedAccess struct {
	Address        common.Address
	StorageChanges []struct {
		Key     common.Hash
		Changes []struct {
			Index hexutil.Uint64
			Value common.Hash
		}
	}
	StorageReads   []common.Hash
	BalanceChanges []struct {
		Index hexutil.Uint64
		Value *hexutil.Big
	}
	NonceChanges []struct{ Index, Value hexutil.Uint64 }
	CodeChanges  []struct {
		Index hexutil.Uint64
		Code  hexutil.Bytes
	}
}
