package api

import (
	"context"

	"ashlar/eth"
	"ashlar/evm/execute"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// badBlockMethods describes the method that returns invalid blocks.
func (a *API) badBlockMethods() []jsonrpc.Method {
	bad := schema.Object(schema.Members{"hash": eth.Hash, "block": schema.Object(nil, nil), "rlp": eth.Data, "reason": schema.String}, nil).
		Named("BadBlock", "An invalid block, and why it is invalid.")
	return []jsonrpc.Method{{
		Name: "debug_getBadBlocks", Summary: "Returns the last invalid blocks that the server received from its consensus client or its upstream nodes.",
		Result: eth.Result("Blocks", schema.Array(bad)),
		Cost:   jsonrpc.Heavy(50), Concerns: jsonrpc.NoContract, Handler: a.getBadBlocks,
	}}
}

// getBadBlocks answers debug_getBadBlocks.
func (a *API) getBadBlocks(ctx context.Context, params, out []byte) ([]byte, error) {
	if args := parameter.Read(params, 0, 0); args.Err != nil {
		return out, args.Err
	}
	var bad []*execute.CheckError
	if a.config.BadBlocks != nil {
		bad = a.config.BadBlocks()
	}
	room := jsonrpc.RoomFor(ctx, out)
	return room.AppendArray(out, len(bad), func(out []byte, i int) ([]byte, error) { return a.appendBadBlock(out, bad[i], room) })
}

// appendBadBlock appends an invalid block in geth's form, with the reason in addition.
func (a *API) appendBadBlock(out []byte, bad *execute.CheckError, room jsonrpc.Room) ([]byte, error) {
	encoded, err := rlp.EncodeToBytes(bad.Block)
	if err != nil {
		return out, err
	}
	bare := withoutBlobs(bad.Block)
	b, err := a.newBlock(bare, a.claimedSenders(bare))
	if err != nil {
		return out, err
	}
	defer b.release()
	out = appendHash(append(out, `{"hash":`...), bad.Hash)
	if out, err = b.appendBlock(append(out, `,"block":`...), true, room); err != nil {
		return out, err
	}
	out = appendHex(append(out, `,"rlp":`...), encoded)
	return append(jsonrpc.AppendString(append(out, `,"reason":`...), bad.Error()), '}'), nil
}

// withoutBlobs returns a block without the blobs of its transactions. No valid block has any.
func withoutBlobs(block *types.Block) *types.Block {
	body := types.Body{Uncles: block.Uncles(), Withdrawals: block.Withdrawals()}
	for _, tx := range block.Transactions() {
		body.Transactions = append(body.Transactions, tx.WithoutBlobTxSidecar())
	}
	return block.WithBody(body)
}

// claimedSenders returns the senders of a block's transactions, zero for invalid signatures.
func (a *API) claimedSenders(block *types.Block) []common.Address {
	signer := types.MakeSigner(a.chain.Executor().Config(), block.Number(), block.Time())
	senders := make([]common.Address, len(block.Transactions()))
	for i, tx := range block.Transactions() {
		senders[i], _ = types.Sender(signer, tx)
	}
	return senders
}
