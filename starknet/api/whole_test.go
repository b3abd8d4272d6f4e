package api

import (
	"fmt"
	"strings"
	"testing"

	"ashlar/starknet"

	"github.com/ethereum/go-ethereum/common"
)

// distinct returns a block in which every value differs from all others, with two transactions:
// one with messages, and one of each kind that has a member of its own.
func distinct() *starknet.Block {
	next := uint64(0x100)
	felt := func() starknet.Felt { next++; return starknet.FeltOf(next) }
	price := func() starknet.GasPrice { return starknet.GasPrice{Wei: felt(), Fri: felt()} }
	gas := func() starknet.GasUsed { next += 3; return starknet.GasUsed{L1: next - 2, L1Data: next - 1, L2: next} }
	return &starknet.Block{
		Header: starknet.Header{
			Number: 5, Hash: felt(), Parent: felt(), NewRoot: felt(), Timestamp: 1_700_000_001, Sequencer: felt(), Version: "99.1", Status: starknet.Rejected,
			L1GasPrice: price(), L1DataGasPrice: price(), L2GasPrice: price(), L1DataMode: starknet.Calldata,
			Commitments: starknet.Commitments{Transactions: felt(), Events: felt(), Receipts: felt(), StateDiff: felt(), StateDiffLength: 77},
		},
		Transactions: []starknet.Transaction{
			{Hash: felt(), Kind: starknet.L1Handler, MessageHash: common.Hash{7, 31: 8}, Receipt: starknet.Receipt{
				ActualFee: felt(), Gas: gas(), Messages: []starknet.Message{{From: felt(), To: felt(), Payload: []starknet.Felt{felt(), felt()}}, {From: felt(), To: felt()}},
			}},
			{Hash: felt(), Kind: starknet.Deploy, Version: 3, ContractAddress: felt(), Receipt: starknet.Receipt{
				Reverted: true, RevertReason: `out of "gas"`, ActualFee: felt(), Gas: gas(),
				Events: []starknet.Event{{From: felt(), Keys: []starknet.Felt{felt(), felt()}, Data: []starknet.Felt{felt()}}, {From: felt()}},
			}},
		},
	}
}

// TestWholeAnswers compares answers about a block of distinct values member by member.
func TestWholeAnswers(t *testing.T) {
	block := distinct()
	n := newNetwork(t, block).in(t, "v0_10")
	h, first, second := &block.Header, &block.Transactions[0], &block.Transactions[1]
	price := func(p starknet.GasPrice) string {
		return fmt.Sprintf(`{"price_in_fri":%q,"price_in_wei":%q}`, p.Fri, p.Wei)
	}
	gas := func(g starknet.GasUsed) string {
		return fmt.Sprintf(`{"l1_gas":%d,"l1_data_gas":%d,"l2_gas":%d}`, g.L1, g.L1Data, g.L2)
	}
	common := fmt.Sprintf(`"timestamp":1700000001,"sequencer_address":%q,"l1_gas_price":%s,"l1_data_gas_price":%s,"l2_gas_price":%s,"l1_da_mode":"CALLDATA","starknet_version":"99.1"`,
		h.Sequencer, price(h.L1GasPrice), price(h.L1DataGasPrice), price(h.L2GasPrice))
	place := fmt.Sprintf(`"finality_status":"REJECTED"%%s,"block_hash":%q,"block_number":5`, h.Hash)
	message := &first.Receipt.Messages[0]
	event := &second.Receipt.Events[0]
	content := fmt.Sprintf(`"data":[%q],"from_address":%q,"keys":[%q,%q]`, event.Data[0], event.From, event.Keys[0], event.Keys[1])
	bare := fmt.Sprintf(`"data":[],"from_address":%q,"keys":[]`, second.Receipt.Events[1].From)
	for _, c := range []struct{ method, params, want string }{
		{"starknet_getBlockWithTxHashes", `[{"block_number":5}]`, fmt.Sprintf(`{"status":"REJECTED","block_hash":%q,"parent_hash":%q,"block_number":5,"new_root":%q,%s,`+
			`"transaction_commitment":%q,"event_commitment":%q,"receipt_commitment":%q,"state_diff_commitment":%q,"transaction_count":2,"event_count":2,"state_diff_length":77,"transactions":[%q,%q]}`,
			h.Hash, h.Parent, h.NewRoot, common, h.Commitments.Transactions, h.Commitments.Events, h.Commitments.Receipts, h.Commitments.StateDiff, first.Hash, second.Hash)},
		{"starknet_getBlockWithTxHashes", `["pending"]`, fmt.Sprintf(`{"block_number":6,%s,"transactions":[]}`, common)},
		{"starknet_getTransactionReceipt", fmt.Sprintf(`[%q]`, first.Hash), fmt.Sprintf(`{"type":"L1_HANDLER","transaction_hash":%q,"actual_fee":{"amount":%q,"unit":"WEI"},"execution_status":"SUCCEEDED",%s,`+
			`"messages_sent":[{"from_address":%q,"to_address":%q,"payload":[%q,%q]},{"from_address":%q,"to_address":%q,"payload":[]}],"events":[],"execution_resources":%s}`,
			first.Hash, first.Receipt.ActualFee, fmt.Sprintf(place, `,"message_hash":"0x07`+strings.Repeat("00", 30)+`08"`),
			message.From, message.To, message.Payload[0], message.Payload[1], first.Receipt.Messages[1].From, first.Receipt.Messages[1].To, gas(first.Receipt.Gas))},
		{"starknet_getTransactionReceipt", fmt.Sprintf(`[%q]`, second.Hash), fmt.Sprintf(`{"type":"DEPLOY","transaction_hash":%q,"actual_fee":{"amount":%q,"unit":"FRI"},"execution_status":"REVERTED","revert_reason":"out of \"gas\"",%s,`+
			`"messages_sent":[],"events":[{%s},{%s}],"execution_resources":%s}`,
			second.Hash, second.Receipt.ActualFee, fmt.Sprintf(place, fmt.Sprintf(`,"contract_address":%q`, second.ContractAddress)), content, bare, gas(second.Receipt.Gas))},
		{"starknet_getEvents", `[{"chunk_size":1,"address":["` + event.From.String() + `"]}]`,
			fmt.Sprintf(`{"events":[{"block_hash":%q,"block_number":5,%s,"transaction_hash":%q,"transaction_index":1,"event_index":0}]}`, h.Hash, content, second.Hash)},
	} {
		if out, err := n.ask(t, c.method, c.params); err != nil || string(out) != c.want {
			t.Errorf("%s%s: %v,\n%s, want\n%s", c.method, c.params, err, out, c.want)
		}
	}
}
