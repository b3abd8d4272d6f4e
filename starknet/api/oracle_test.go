package api

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"testing"

	"ashlar/internal/vectors"
	"ashlar/starknet"
	"ashlar/starknet/source/synthetic"
)

// recorded reads a file of events of mainnet, one a line, and makes the chain that
// holds them. Blocks' hashes are not recorded, so they are made up.
func recorded(t *testing.T, name string) (events []record, blocks []*starknet.Block) {
	t.Helper()
	file, err := os.Open(vectors.Path(t, "starknet", "event-query", name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	var block *starknet.Block
	for lines.Scan() {
		var event record
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatal(err)
		}
		for block == nil || block.Number < event.BlockNumber {
			next := &starknet.Block{Header: starknet.Header{Number: event.BlockNumber, Status: starknet.AcceptedOnL1}}
			if block != nil { // with the empty ones in between
				next.Number, next.Parent = block.Number+1, block.Hash
			}
			next.Hash = synthetic.Hash(fmt.Append(nil, next.Number))
			blocks, block = append(blocks, next), next
		}
		hash := felt(t, event.Transaction)
		if n := len(block.Transactions); n == 0 || block.Transactions[n-1].Hash != hash {
			block.Transactions = append(block.Transactions, starknet.Transaction{Hash: hash, Kind: starknet.Invoke})
		}
		receipt := &block.Transactions[len(block.Transactions)-1].Receipt
		receipt.Events = append(receipt.Events, starknet.Event{From: felt(t, event.From), Keys: felts(t, event.Keys), Data: felts(t, event.Data)})
		event.BlockHash = block.Hash.String()
		events = append(events, event)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return events, blocks
}

func felt(t *testing.T, text string) starknet.Felt {
	t.Helper()
	f, err := starknet.ParseFelt(text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func felts(t *testing.T, all []string) (list []starknet.Felt) {
	for _, text := range all {
		list = append(list, felt(t, text))
	}
	return list
}

// TestRecordedFilters: every filter gives exactly the lines that were recorded for
// it, whole and in pages of any size.
func TestRecordedFilters(t *testing.T) {
	events, blocks := recorded(t, "0+1000.jsonl")
	n := newNetwork(t, blocks...)
	expected, err := os.ReadFile(vectors.Path(t, "starknet", "event-query", "0+1000.filters_expected.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	filters := 0
	for decoder := json.NewDecoder(bytes.NewReader(expected)); decoder.More(); filters++ {
		var filter struct {
			ID       int        `json:"id"`
			From     *uint64    `json:"from_block"`
			To       *uint64    `json:"to_block"`
			Address  *string    `json:"address"`
			Keys     [][]string `json:"keys"`
			Expected []int      `json:"expected_lines"`
		}
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&filter); err != nil {
			t.Fatal(err)
		}
		want := []record{}
		for _, line := range filter.Expected {
			want = append(want, events[line])
		}
		asked := map[string]any{"keys": filter.Keys, "address": filter.Address}
		if filter.From != nil {
			asked["from_block"] = map[string]any{"block_number": filter.From}
		}
		if filter.To != nil {
			asked["to_block"] = map[string]any{"block_number": filter.To}
		}
		text, err := json.Marshal(asked)
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{1, 7, 100, 1024} {
			if got := n.pages(t, string(text[1:len(text)-1]), size, nil); !reflect.DeepEqual(got, want) {
				t.Errorf("filter %d in pages of %d: %d events, want the %d lines %v:\n%v", filter.ID, size, len(got), len(want), filter.Expected, got)
			}
		}
	}
	if filters != 31 {
		t.Errorf("%d filters, want 31", filters)
	}
}

// TestBusiestBlock: a block of more events than ten pages hold.
func TestBusiestBlock(t *testing.T) {
	want, blocks := recorded(t, "316843.jsonl")
	n := newNetwork(t, blocks...)
	if len(want) != 10_686 {
		t.Fatalf("%d events are recorded", len(want))
	}
	for _, size := range []int{7, 100, 1024} {
		got := n.pages(t, `"from_block":{"block_number":316843},"to_block":{"block_number":316843}`, size, nil)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("pages of %d: %d events, want %d, or others", size, len(got), len(want))
		}
	}
}
