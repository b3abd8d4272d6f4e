package api

import (
	"context"
	"strconv"

	"ashlar/jsonrpc"
	"ashlar/starknet"
	"ashlar/starknet/archive"
	"ashlar/starknet/blockhash"
	"ashlar/starknet/query"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// feesInFri is the first version of transactions that pay their fee in fri.
const feesInFri = 3

// getTransactionReceipt answers starknet_getTransactionReceipt.
func (a *API) getTransactionReceipt(ctx context.Context, params, out []byte) ([]byte, error) {
	raw, err := argument(params, "transaction_hash")
	if err != nil {
		return out, err
	}
	hash, err := parseFelt(raw)
	if err != nil {
		return out, invalid("transaction_hash", err)
	}
	view, err := a.view()
	if err != nil {
		return out, err
	}
	receipt, err := view.FindReceipt(ctx, hash)
	if err != nil {
		return out, err
	}
	a.weaken(ctx, receipt.Block, blockhash.CoversReceipts)
	return appendReceipt(ctx, view, receipt, out)
}

func appendReceipt(ctx context.Context, view *query.View, receipt *query.Receipt, out []byte) ([]byte, error) {
	room := jsonrpc.RoomFor(ctx, out)
	out = append(out, `{"type":"`...)
	out = append(out, receipt.Kind.String()...)
	out = append(out, `","transaction_hash":`...)
	out = appendFelt(out, receipt.Hash)
	out = append(out, `,"actual_fee":`...)
	out = appendFee(out, &receipt.Transaction)
	out = appendOutcome(out, receipt, view.Status(receipt.Block))
	out = append(out, `,"block_hash":`...)
	out = appendFelt(out, receipt.Block.Hash)
	out = append(out, `,"block_number":`...)
	out = strconv.AppendUint(out, receipt.Block.Number, 10)
	out = jsonrpc.AppendArray(append(out, `,"messages_sent":`...), receipt.Receipt.Messages, appendMessage)
	out = append(out, `,"events":[`...)
	begin := len(out)
	err := view.EventsOf(ctx, receipt, func(event *archive.Event) (err error) {
		if len(out) > begin {
			out = append(out, ',')
		}
		if out, err = appendContent(append(out, '{'), event); err != nil {
			return err
		}
		out = append(out, '}')
		return room.Check(len(out))
	})
	out = append(out, `],"execution_resources":`...)
	out = appendGas(out, receipt.Receipt.Gas)
	return append(out, '}'), err
}

// appendOutcome appends how the transaction ended and what came of it.
func appendOutcome(out []byte, receipt *query.Receipt, status starknet.Status) []byte {
	if receipt.Receipt.Reverted {
		out = append(out, `,"execution_status":"REVERTED","revert_reason":`...)
		out = jsonrpc.AppendString(out, receipt.Receipt.RevertReason)
	} else {
		out = append(out, `,"execution_status":"SUCCEEDED"`...)
	}
	out = append(out, `,"finality_status":"`...)
	out = append(out, statusText(status)...)
	out = append(out, '"')
	switch receipt.Kind {
	case starknet.Deploy, starknet.DeployAccount:
		out = append(out, `,"contract_address":`...)
		out = appendFelt(out, receipt.ContractAddress)
	case starknet.L1Handler:
		out = append(out, `,"message_hash":"`...)
		out = append(append(out, hexutil.Encode(receipt.MessageHash[:])...), '"')
	}
	return out
}

func appendFee(out []byte, transaction *archive.Transaction) []byte {
	unit := "WEI"
	if transaction.Version >= feesInFri {
		unit = "FRI"
	}
	out = append(out, `{"amount":`...)
	out = appendFelt(out, transaction.Receipt.ActualFee)
	out = append(out, `,"unit":"`...)
	return append(append(out, unit...), '"', '}')
}

func appendMessage(out []byte, message starknet.Message) []byte {
	out = append(out, `{"from_address":`...)
	out = appendFelt(out, message.From)
	out = append(out, `,"to_address":`...)
	out = appendFelt(out, message.To)
	out = jsonrpc.AppendArray(append(out, `,"payload":`...), message.Payload, appendFelt)
	return append(out, '}')
}

func appendGas(out []byte, gas starknet.GasUsed) []byte {
	out = append(out, `{"l1_gas":`...)
	out = strconv.AppendUint(out, gas.L1, 10)
	out = append(out, `,"l1_data_gas":`...)
	out = strconv.AppendUint(out, gas.L1Data, 10)
	out = append(out, `,"l2_gas":`...)
	return append(strconv.AppendUint(out, gas.L2, 10), '}')
}
