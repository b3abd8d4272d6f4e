package api

import (
	"context"
	"strconv"

	"ashlar/events"
	"ashlar/jsonrpc"
	"ashlar/starknet"
	"ashlar/starknet/archive"
	"ashlar/starknet/blockhash"
	"ashlar/starknet/query"
)

// blockNumber answers starknet_blockNumber.
func (a *API) blockNumber(ctx context.Context, params, out []byte) ([]byte, error) {
	if err := noArguments(params); err != nil {
		return out, err
	}
	view, err := a.view()
	if err != nil {
		return out, err
	}
	a.weakenHead(ctx, view)
	return strconv.AppendUint(out, view.Span().Last.Number, 10), nil
}

// blockHashAndNumber answers starknet_blockHashAndNumber.
func (a *API) blockHashAndNumber(ctx context.Context, params, out []byte) ([]byte, error) {
	if err := noArguments(params); err != nil {
		return out, err
	}
	view, err := a.view()
	if err != nil {
		return out, err
	}
	a.weakenHead(ctx, view)
	last := view.Span().Last
	out = append(out, `{"block_hash":`...)
	out = appendFelt(out, starknet.Felt(last.Hash))
	out = append(out, `,"block_number":`...)
	return append(strconv.AppendUint(out, last.Number, 10), '}'), nil
}

// getBlockWithTxHashes answers starknet_getBlockWithTxHashes.
func (a *API) getBlockWithTxHashes(ctx context.Context, params, out []byte) ([]byte, error) {
	raw, err := argument(params, "block_id")
	if err != nil {
		return out, err
	}
	id, err := events.ParseBlock(raw, parseWord, a.version.l1Tag)
	if err != nil {
		return out, invalid("block_id", err)
	}
	view, err := a.view()
	if err != nil {
		return out, err
	}
	number, err := id.Resolve(ctx, &eventView{api: a, view: view})
	if err != nil {
		return out, err
	}
	view.ReadAhead(ctx, number)
	header, err := view.Header(ctx, number)
	if err != nil {
		return out, err
	}
	a.weaken(ctx, header, blockhash.CoversTransactions)
	if id.Kind == events.Pending {
		return a.appendPendingBlock(out, header), nil
	}
	return a.appendBlock(ctx, view, header, out)
}

// appendBlock appends a block with the hashes of its transactions.
func (a *API) appendBlock(ctx context.Context, view *query.View, header *archive.Header, out []byte) ([]byte, error) {
	all, err := view.Transactions(ctx, header.Number)
	if err != nil {
		return out, err
	}
	room := jsonrpc.RoomFor(ctx, out)
	out = append(out, `{"status":"`...)
	out = append(out, statusText(view.Status(header))...)
	out = append(out, `","block_hash":`...)
	out = appendFelt(out, header.Hash)
	out = append(out, `,"parent_hash":`...)
	out = appendFelt(out, header.Parent)
	out = append(out, `,"block_number":`...)
	out = strconv.AppendUint(out, header.Number, 10)
	out = append(out, `,"new_root":`...)
	out = appendFelt(out, header.NewRoot)
	out = append(out, ',')
	out = appendCommon(out, header)
	if a.version.commitments {
		out = appendCommitments(out, header)
	}
	out, err = room.AppendArray(append(out, `,"transactions":`...), all.Len(), func(out []byte, i int) ([]byte, error) {
		return appendFelt(out, all.Hash(i)), nil
	})
	return append(out, '}'), err
}

// appendCommitments appends the commitments and counts that blocks have since 0.10.
func appendCommitments(out []byte, header *archive.Header) []byte {
	c := &header.Commitments
	out = appendFelt(append(out, `,"transaction_commitment":`...), c.Transactions)
	out = appendFelt(append(out, `,"event_commitment":`...), c.Events)
	out = appendFelt(append(out, `,"receipt_commitment":`...), c.Receipts)
	out = appendFelt(append(out, `,"state_diff_commitment":`...), c.StateDiff)
	out = strconv.AppendUint(append(out, `,"transaction_count":`...), header.TransactionCount, 10)
	out = strconv.AppendUint(append(out, `,"event_count":`...), header.EventCount, 10)
	return strconv.AppendUint(append(out, `,"state_diff_length":`...), c.StateDiffLength, 10)
}

// appendPendingBlock appends the block above the head, in which nothing is yet: with its
// parent up to 0.8, and with its number since 0.9.
func (a *API) appendPendingBlock(out []byte, head *archive.Header) []byte {
	out = append(out, '{')
	if a.version.pendingParent {
		out = appendFelt(append(out, `"parent_hash":`...), head.Hash)
		out = append(out, ',')
	}
	if a.version.pendingNumber {
		out = strconv.AppendUint(append(out, `"block_number":`...), head.Number+1, 10)
		out = append(out, ',')
	}
	out = appendCommon(out, head)
	return append(out, `,"transactions":[]}`...)
}

// appendCommon appends what a block and the pending block both have.
func appendCommon(out []byte, header *archive.Header) []byte {
	out = append(out, `"timestamp":`...)
	out = strconv.AppendUint(out, header.Timestamp, 10)
	out = append(out, `,"sequencer_address":`...)
	out = appendFelt(out, header.Sequencer)
	out = append(out, `,"l1_gas_price":`...)
	out = appendPrice(out, header.L1GasPrice)
	out = append(out, `,"l1_data_gas_price":`...)
	out = appendPrice(out, header.L1DataGasPrice)
	out = append(out, `,"l2_gas_price":`...)
	out = appendPrice(out, header.L2GasPrice)
	out = append(out, `,"l1_da_mode":"`...)
	if header.L1DataMode == starknet.Blob {
		out = append(out, "BLOB"...)
	} else {
		out = append(out, "CALLDATA"...)
	}
	out = append(out, `","starknet_version":`...)
	return jsonrpc.AppendString(out, header.Version)
}

func appendPrice(out []byte, price starknet.GasPrice) []byte {
	out = append(out, `{"price_in_fri":`...)
	out = appendFelt(out, price.Fri)
	out = append(out, `,"price_in_wei":`...)
	return append(appendFelt(out, price.Wei), '}')
}

func statusText(status starknet.Status) string {
	switch status {
	case starknet.AcceptedOnL1:
		return "ACCEPTED_ON_L1"
	case starknet.Rejected:
		return "REJECTED"
	}
	return "ACCEPTED_ON_L2"
}
