package differential

import (
	"bytes"
	"fmt"
	"slices"

	"ashlar/evm/ingest/ingesttest"

	"github.com/ethereum/go-ethereum/beacon/engine"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types/bal"
	"github.com/ethereum/go-ethereum/rlp"
)

// addWrong gives both nodes a block of Amsterdam with wrong access lists.
func (c *consensus) addWrong(e envelope) {
	c.t.Helper()
	if e.payload.BlockAccessList == nil {
		if e.payload.Timestamp >= c.amsterdam {
			c.t.Fatalf("block %d has no access list", e.payload.Number)
		}
		return
	}
	var accounts []rlp.RawValue
	if err := rlp.DecodeBytes(e.payload.BlockAccessList, &accounts); err != nil {
		c.t.Fatal(err)
	}
	swapped := slices.Clone(accounts)
	swapped[0], swapped[1] = swapped[1], swapped[0]
	for what, list := range map[string][]rlp.RawValue{
		"an account missing": accounts[1:], "an account twice": append(accounts[:1:1], accounts...), "accounts swapped": swapped,
	} {
		encoded, err := rlp.EncodeToBytes(list)
		if err != nil {
			c.t.Fatal(err)
		}
		wrong := e
		wrong.payload.BlockAccessList = encoded
		c.expect(engine.INVALID+" null", what, "engine_newPayloadV5", wrong.args()...)
		wrong.rehash(c.t)
		c.expect(engine.INVALID+" "+e.payload.ParentHash.Hex(), what+", with its hash", "engine_newPayloadV5", wrong.args()...)
	}
}

// checkAccessList compares the access list of a block, as Ashlar serves it, with the list
// that geth built, and its last values with geth's state. geth serves no lists.
func (c *consensus) checkAccessList(block engine.ExecutableData) {
	c.t.Helper()
	at := quantity(block.Number)
	if block.Number < crossingBlock {
		for _, method := range []string{"eth_getBlockAccessList", "debug_getRawBlockAccessList"} {
			if got := c.said(c.ashlar, method, at); got != "error -32001" {
				c.t.Errorf("%s of block %d: %s, want error -32001", method, block.Number, got)
			}
		}
		return
	}
	if raw := result[hexutil.Bytes](c, c.ashlar, "debug_getRawBlockAccessList", at); !bytes.Equal(raw, block.BlockAccessList) {
		c.t.Errorf("block %d: the access list differs from geth's:\n%x\n%x", block.Number, raw, block.BlockAccessList)
	}
	var built bal.BlockAccessList
	if err := rlp.DecodeBytes(block.BlockAccessList, &built); err != nil {
		c.t.Fatal(err)
	}
	list := result[[]ingesttest.SpecifiedAccess](c, c.ashlar, "eth_getBlockAccessList", block.BlockHash)
	if len(list) != len(built) {
		c.t.Fatalf("block %d: %d accounts, want %d", block.Number, len(list), len(built))
	}
	for i, account := range list {
		if account.Address != built[i].Address || len(account.StorageReads) != len(built[i].StorageReads) || len(account.StorageChanges) != len(built[i].StorageChanges) {
			c.t.Errorf("block %d, account %d: %+v, want %+v", block.Number, i, account, built[i])
		}
		c.checkState(at, account)
	}
}

// checkState compares the last values of an account in an access list with geth's state.
func (c *consensus) checkState(at string, account ingesttest.SpecifiedAccess) {
	c.t.Helper()
	who := account.Address
	same := func(what string, got, want any) {
		c.t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			c.t.Errorf("block %s, %s of %s: the access list has %v, geth's state %v", at, what, who, got, want)
		}
	}
	if n := len(account.BalanceChanges); n > 0 {
		same("balance", account.BalanceChanges[n-1].Value, result[*hexutil.Big](c, c.geth, "eth_getBalance", who, at))
	}
	if n := len(account.NonceChanges); n > 0 {
		same("nonce", account.NonceChanges[n-1].Value, result[hexutil.Uint64](c, c.geth, "eth_getTransactionCount", who, at))
	}
	if n := len(account.CodeChanges); n > 0 {
		same("code", account.CodeChanges[n-1].Code, result[hexutil.Bytes](c, c.geth, "eth_getCode", who, at))
	}
	for _, slot := range account.StorageChanges {
		same("slot "+slot.Key.Hex(), slot.Changes[len(slot.Changes)-1].Value, result[common.Hash](c, c.geth, "eth_getStorageAt", who, slot.Key, at))
	}
}
