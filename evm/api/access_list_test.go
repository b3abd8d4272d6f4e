package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"ashlar/evm/ingest/ingesttest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/types/bal"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"
)

// crossing serves a chain that enters Amsterdam.
func crossing(t *testing.T) (*service, []*types.Block) {
	t.Helper()
	genesis, blocks := ingesttest.Crossing(t)
	return serve(t, genesis, ingesttest.SourceOf(blocks)), blocks
}

func TestGetBlockAccessList(t *testing.T) {
	s, blocks := crossing(t)
	for _, block := range blocks[ingesttest.CrossingFork-1:] {
		var got []ingesttest.SpecifiedAccess
		s.ask(t, &got, "eth_getBlockAccessList", block.Hash())
		want := *block.AccessList()
		if len(got) != len(want) {
			t.Fatalf("block %d: %d accounts, want %d", block.NumberU64(), len(got), len(want))
		}
		// Rebuilt from what was served, the list is the one that the header names.
		built := bal.NewConstructionBlockAccessList()
		for _, a := range got {
			rebuild(built, a)
		}
		if hash := built.ToEncodingObj().Hash(); hash != *block.Header().BlockAccessListHash {
			t.Errorf("block %d: a list with the hash %s, want %s", block.NumberU64(), hash, block.Header().BlockAccessListHash)
		}
		var raw hexutil.Bytes
		s.ask(t, &raw, "debug_getRawBlockAccessList", hexutil.EncodeUint64(block.NumberU64()))
		if encoded, err := rlp.EncodeToBytes(block.AccessList()); err != nil || string(encoded) != string(raw) {
			t.Errorf("block %d: raw list %x, want %x (%v)", block.NumberU64(), raw, encoded, err)
		}
	}
}

// rebuild puts a served account into a list.
func rebuild(list *bal.ConstructionBlockAccessList, a ingesttest.SpecifiedAccess) {
	list.AccountRead(a.Address)
	for _, slot := range a.StorageReads {
		list.StorageRead(a.Address, slot)
	}
	for _, slot := range a.StorageChanges {
		for _, change := range slot.Changes {
			list.StorageWrite(uint32(change.Index), a.Address, slot.Key, change.Value)
		}
	}
	for _, change := range a.BalanceChanges {
		list.BalanceChange(uint32(change.Index), a.Address, uint256.MustFromBig(change.Value.ToInt()))
	}
	for _, change := range a.NonceChanges {
		list.NonceChange(a.Address, uint32(change.Index), uint64(change.Value))
	}
	for _, change := range a.CodeChanges {
		list.CodeChange(a.Address, uint32(change.Index), change.Code)
	}
}

func TestAccessListOfOtherBlocks(t *testing.T) {
	s, blocks := crossing(t)
	for _, test := range []struct {
		method, block, want string
	}{
		{"eth_getBlockAccessList", `"0x1"`, `"error":{"code":-32001,"message":"Resource not found"`},
		{"eth_getBlockAccessList", `"earliest"`, `"code":-32001`},
		{"eth_getBlockAccessList", `"0x100"`, `"result":null`},
		{"eth_getBlockAccessList", `"` + common.Hash{1}.Hex() + `"`, `"result":null`},
		{"eth_getBlockAccessList", `{"blockHash":"` + blocks[0].Hash().Hex() + `"}`, `"code":-32001`},
		{"eth_getBlockAccessList", `5`, `"code":-32602`},
		{"debug_getRawBlockAccessList", `"0x1"`, `"code":-32001`},
		{"debug_getRawBlockAccessList", `"0x100"`, `"result":"0x"`},
	} {
		request := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":[%s]}`, test.method, test.block)
		if got := string(s.Answer(t.Context(), []byte(request), nil)); !strings.Contains(got, test.want) {
			t.Errorf("%s %s: got %s, want %s", test.method, test.block, got, test.want)
		}
	}
}

// TestBlocksOfAmsterdam reads what Amsterdam adds to blocks and logs.
func TestBlocksOfAmsterdam(t *testing.T) {
	s, blocks := crossing(t)
	for _, want := range blocks {
		var got map[string]json.RawMessage
		s.ask(t, &got, "eth_getBlockByHash", want.Hash(), false)
		if want.NumberU64() < ingesttest.CrossingFork {
			if got["slotNumber"] != nil || got["blockAccessListHash"] != nil {
				t.Errorf("block %d before Amsterdam has a slot number or a hash of an access list", want.NumberU64())
			}
			continue
		}
		header := want.Header()
		if string(got["slotNumber"]) != fmt.Sprintf("%q", hexutil.EncodeUint64(*header.SlotNumber)) ||
			string(got["blockAccessListHash"]) != fmt.Sprintf("%q", header.BlockAccessListHash) {
			t.Errorf("block %d: slot number %s, access list hash %s", want.NumberU64(), got["slotNumber"], got["blockAccessListHash"])
		}
		// A transfer of the native token writes a log, which is found as any other.
		var logs []types.Log
		s.ask(t, &logs, "eth_getLogs", map[string]any{
			"fromBlock": hexutil.EncodeUint64(want.NumberU64()), "toBlock": hexutil.EncodeUint64(want.NumberU64()),
			"address": params.SystemAddress, "topics": []common.Hash{params.EthTransferLogEvent},
		})
		if len(logs) < 8 {
			t.Errorf("block %d: %d transfers, want at least 8", want.NumberU64(), len(logs))
		}
		for _, log := range logs {
			if !types.BloomLookup(want.Bloom(), log.Address) || log.BlockHash != want.Hash() {
				t.Errorf("block %d: log %+v", want.NumberU64(), log)
			}
		}
	}
	var logs []types.Log
	s.ask(t, &logs, "eth_getLogs", map[string]any{"fromBlock": "0x0", "toBlock": hexutil.EncodeUint64(ingesttest.CrossingFork - 1), "address": params.SystemAddress})
	if len(logs) > 0 {
		t.Errorf("%d transfers before Amsterdam", len(logs))
	}
}
