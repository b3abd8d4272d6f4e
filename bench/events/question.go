package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"ashlar/starknet"
	"ashlar/starknet/archive"
	"ashlar/starknet/source/synthetic"
)

const (
	pageSize = 100
	askings  = 300 // requests for each filter
)

// question is a filter, in a form that suits both requests and scans.
type question struct {
	from uint64
	by   *starknet.Felt
	keys [][]starknet.Felt
}

func (q *question) params() ([]byte, error) {
	filter := map[string]any{"from_block": map[string]uint64{"block_number": q.from}, "to_block": "latest", "chunk_size": pageSize}
	if q.by != nil {
		filter["address"] = q.by.String()
	}
	keys := make([][]string, len(q.keys))
	for i, allowed := range q.keys {
		keys[i] = []string{}
		for _, key := range allowed {
			keys[i] = append(keys[i], key.String())
		}
	}
	filter["keys"] = keys
	return json.Marshal(map[string]any{"filter": filter})
}

// measure measures all filters and prints a line for each.
func (b *bench) measure(ctx context.Context, accounts int) error {
	deep := uint64(len(b.sizes)) * 9 / 10
	const one = 3 // always the same account, as filters with many matches always get the same page
	account := func(i int) []starknet.Felt { return []starknet.Felt{synthetic.Account(i * 7919 % accounts)} }
	contract := func(i int) *starknet.Felt { address := synthetic.Contract(i); return &address }
	kind := func(i int) []starknet.Felt { return []starknet.Felt{synthetic.Selector(i)} }
	fmt.Printf("%-58s %8s %12s %12s\n", "a page of 100", "events", "median", "scan")
	for _, line := range []struct {
		name string
		ask  func(i int) question
	}{
		{"all events, first page", func(int) question { return question{} }},
		{"all events, from 9/10 of the chain on", func(int) question { return question{from: deep} }},
		{"a kind of event that is half of all, first page", func(int) question { return question{keys: [][]starknet.Felt{kind(0)}} }},
		{"the same, from 9/10 of the chain on", func(int) question { return question{from: deep, keys: [][]starknet.Felt{kind(0)}} }},
		{"a contract that emits half of all", func(int) question { return question{by: contract(0)} }},
		{"a contract that emits one in a thousand", func(int) question { return question{by: contract(9)} }},
		{"that contract, a kind that is one in 16", func(int) question { return question{by: contract(9), keys: [][]starknet.Felt{kind(4)}} }},
		{"a rare account as second key, whole chain", func(int) question { return question{keys: [][]starknet.Felt{nil, account(one)}} }},
		{"the same, another account each time", func(i int) question { return question{keys: [][]starknet.Felt{nil, account(i)}} }},
		{"a rare account, of a kind that is half of all", func(int) question { return question{keys: [][]starknet.Felt{kind(0), account(one)}} }},
		{"a rare account as third key, after two wildcards", func(int) question { return question{keys: [][]starknet.Felt{nil, nil, account(one)}} }},
		{"a kind, a wildcard, a rare account", func(int) question { return question{keys: [][]starknet.Felt{kind(0), nil, account(one)}} }},
		{"ten rare accounts as second key", func(i int) question {
			var any []starknet.Felt
			for j := range 10 {
				any = append(any, account(i+j)...)
			}
			return question{keys: [][]starknet.Felt{nil, any}}
		}},
		{"an account that no event names", func(int) question { return question{keys: [][]starknet.Felt{nil, {starknet.FeltOf(7)}}} }},
		{"two accounts that no event names together", func(i int) question { return question{keys: [][]starknet.Felt{nil, account(i), account(i + 1)}} }},
		{"a rare contract, a kind that is one in 16", func(int) question { return question{by: contract(13), keys: [][]starknet.Felt{kind(4)}} }},
	} {
		if err := b.line(ctx, line.name, line.ask); err != nil {
			return fmt.Errorf("%s: %w", line.name, err)
		}
	}
	return nil
}

// line measures requests with a filter, then scans for the answer once, and compares both.
func (b *bench) line(ctx context.Context, name string, ask func(i int) question) error {
	var times []time.Duration
	for i := range askings {
		q := ask(i)
		params, err := q.params()
		if err != nil {
			return err
		}
		begin := time.Now()
		if _, err := b.methods["rollup_getEvents"](ctx, params, nil); err != nil {
			return err
		}
		times = append(times, time.Since(begin))
	}
	q := ask(askings / 2)
	params, err := q.params()
	if err != nil {
		return err
	}
	answer, err := b.methods["rollup_getEvents"](ctx, params, nil)
	if err != nil {
		return err
	}
	var page struct{ Events []found }
	if err := json.Unmarshal(answer, &page); err != nil {
		return err
	}
	begin := time.Now()
	wanted, err := b.scan(ctx, &q)
	if err != nil {
		return err
	}
	scanned := time.Since(begin)
	if !slices.Equal(page.Events, wanted) {
		return fmt.Errorf("the page has %d events, the scan found %d, or others", len(page.Events), len(wanted))
	}
	slices.Sort(times)
	fmt.Printf("%-58s %8d %12v %12v\n", name, len(wanted), times[len(times)/2].Round(time.Microsecond), scanned.Round(time.Microsecond))
	return nil
}

// found is an event of a page: where it is in the chain, and the contract that emitted it.
type found struct {
	Block       uint64 `json:"block_number"`
	Transaction string `json:"transaction_hash"`
	From        string `json:"from_address"`
}

// scan reads the events of the range one by one, until a page is full and one more match is
// found. It returns the events of the page.
func (b *bench) scan(ctx context.Context, q *question) (page []found, err error) {
	events := b.blocks.Events(ctx)
	for number := q.from; number < uint64(len(b.sizes)); number++ {
		for position := range b.sizes[number] {
			event, err := events.Event(number, position)
			if err != nil {
				return page, err
			}
			matches, err := q.match(&event)
			if err != nil {
				return page, err
			}
			if matches && len(page) == pageSize {
				return page, nil
			}
			if matches {
				page = append(page, found{number, event.TransactionHash.String(), event.From.String()})
			}
		}
	}
	return page, nil
}

func (q *question) match(event *archive.Event) (bool, error) {
	if q.by != nil && event.From != *q.by || event.Keys.Left() < len(q.keys) {
		return false, nil
	}
	var key starknet.Felt
	for _, allowed := range q.keys {
		if _, err := event.Keys.Next(&key); err != nil {
			return false, err
		}
		if len(allowed) > 0 && !slices.Contains(allowed, key) {
			return false, nil
		}
	}
	return true, nil
}
