package api_test

import (
	"fmt"
	"reflect"
	"testing"

	"ashlar/history/paging"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// event is an event record.
type event struct {
	BlockHash   common.Hash     `json:"block_hash"`
	BlockNumber uint64          `json:"block_number"`
	Data        []hexutil.Bytes `json:"data"`
	From        common.Address  `json:"from_address"`
	Keys        []common.Hash   `json:"keys"`
	Transaction common.Hash     `json:"transaction_hash"`
}

// eventOf is the event that a log is read as.
func eventOf(log types.Log) event {
	e := event{BlockHash: log.BlockHash, BlockNumber: log.BlockNumber, From: log.Address, Transaction: log.TxHash, Data: []hexutil.Bytes{}, Keys: log.Topics}
	for data := log.Data; len(data) > 0; {
		n := min(len(data), 32)
		e.Data, data = append(e.Data, data[:n]), data[n:]
	}
	return e
}

// pages reads all pages of a filter.
func (s *service) pages(t *testing.T, filter map[string]any) (events []event) {
	t.Helper()
	for {
		var page struct {
			Events []event `json:"events"`
			Token  *string `json:"continuation_token"`
		}
		s.ask(t, &page, "rollup_getEvents", filter)
		events = append(events, page.Events...)
		if page.Token == nil {
			return events
		}
		if len(page.Events) != filter["chunk_size"] {
			t.Fatalf("%v: a page of %d events with a token", filter, len(page.Events))
		}
		filter["continuation_token"] = *page.Token
	}
}

// TestEventsAreTheLogs: events of any filter, in pages of any size, are the logs
// that eth_getLogs answers with.
func TestEventsAreTheLogs(t *testing.T) {
	s := serveVectors(t)
	var logs []types.Log
	s.ask(t, &logs, "eth_getLogs", map[string]any{"fromBlock": "earliest"})
	if len(logs) == 0 {
		t.Fatal("no logs")
	}
	for i := 0; i < len(logs); i += 1 + len(logs)/6 {
		log := logs[i]
		filters := []map[string]any{{"address": log.Address}, {"from_block": map[string]any{"block_number": log.BlockNumber}, "to_block": map[string]any{"block_hash": log.BlockHash}}}
		wanted := []map[string]any{{"address": log.Address, "fromBlock": "earliest"}, {"fromBlock": hexutil.Uint64(log.BlockNumber), "toBlock": hexutil.Uint64(log.BlockNumber)}}
		for position, topic := range log.Topics {
			keys, topics := make([][]common.Hash, position+1), make([][]common.Hash, position+1)
			keys[position] = []common.Hash{topic, {1}}
			topics[position] = keys[position]
			filters = append(filters, map[string]any{"keys": append(keys, []common.Hash{})})
			wanted = append(wanted, map[string]any{"topics": topics, "fromBlock": "earliest"})
		}
		for j, filter := range filters {
			var matching []types.Log
			s.ask(t, &matching, "eth_getLogs", wanted[j])
			want := make([]event, len(matching))
			for k, log := range matching {
				want[k] = eventOf(log)
			}
			filter["chunk_size"] = 1 + len(want)/(1+i%5)%1024 // some whole, some in a few pages
			if got := s.pages(t, filter); !reflect.DeepEqual(got, want) {
				t.Fatalf("%v: %d events, want %d\ngot  %v\nwant %v", filter, len(got), len(want), got, want)
			}
		}
	}
}

// TestTokenBehindTheLogsOfABlock: it is refused, where the one beside it goes on.
func TestTokenBehindTheLogsOfABlock(t *testing.T) {
	s := serveMade(t)
	var page struct {
		Token string `json:"continuation_token"`
	}
	filter := map[string]any{"chunk_size": 10}
	s.ask(t, &page, "rollup_getEvents", filter)
	filter["continuation_token"] = page.Token
	s.ask(t, &page, "rollup_getEvents", filter)

	token, err := paging.ParseToken([]byte(page.Token))
	if err != nil {
		t.Fatal(err)
	}
	token.Next.Position = 10_000
	filter["continuation_token"] = token.String()
	if got := s.failure(t, "rollup_getEvents", filter); got.Code != 33 {
		t.Errorf("%+v: code %d, want 33", token, got.Code)
	}
}

func TestEventErrors(t *testing.T) {
	s := serveMade(t)
	for _, test := range []struct {
		filter string
		want   int
	}{
		{`{"chunk_size":2000}`, 31},
		{`{"chunk_size":99999999999999999999}`, 31},
		{`{"chunk_size":1,"from_block":{"block_hash":"0x5"}}`, 24},
		{`{"chunk_size":1,"address":"0x` + fmt.Sprintf("%041x", 1) + `"}`, -32602},
		{`{"chunk_size":1,"address":"12"}`, -32602},
		{`{"chunk_size":1,"address":"0x1"}`, -32602},
		{`{"chunk_size":1,"keys":[["0xz"]]}`, -32602},
		{`{"chunk_size":1,"keys":[["0x"]]}`, -32602},
		{`{"chunk_size":1,"continuation_token":"1-1"}`, 33},
	} {
		request := `{"jsonrpc":"2.0","id":1,"method":"rollup_getEvents","params":{"filter":` + test.filter + `}}`
		want := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"error":{"code":%d,`, test.want)
		if got := string(s.Answer(t.Context(), []byte(request), nil)); len(got) < len(want) || got[:len(want)] != want {
			t.Errorf("%s: %s, want code %d", test.filter, got, test.want)
		}
	}
	// Five keys: no log has so many.
	if got := s.pages(t, map[string]any{"chunk_size": 1, "keys": [][]string{{}, {}, {}, {}, {"0x1"}}}); len(got) > 0 {
		t.Errorf("events with a fifth key: %v", got)
	}
}
