package api

import (
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
)

// OfHash returns the handler of eth_getTransactionByHash with another function for a transaction that no block has.
func (a *API) OfHash(absent func(out []byte, hash common.Hash) (answer []byte, sure bool, err error)) jsonrpc.Handler {
	return a.ofHash(a.block, (*block).appendTransaction, absent)
}

// DropAll ends subscriptions and filters, as happens when changes cannot be read.
func (a *API) DropAll() { a.publisher.dropAll() }
