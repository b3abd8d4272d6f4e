// Command events measures the cost of pages of Starknet events. It generates a chain of a
// million events, calls rollup_getEvents in this process for many kinds of filter, and finds
// the same events by scanning all of them.
//
//	go run ./bench/events [-events N] [-data DIR]
//
// Each filter is used many times, with other values that are as rare if there are any. The
// median time is printed next to the time of the scan. A chain that DIR already has is
// reused.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"ashlar/history/tip"
	"ashlar/jsonrpc"
	"ashlar/kv"
	"ashlar/kv/pebble"
	"ashlar/starknet"
	"ashlar/starknet/api"
	"ashlar/starknet/archive"
	"ashlar/starknet/query"
	"ashlar/starknet/source/synthetic"
)

// each is how many events name each of the rare accounts.
const each = 100

func main() {
	events := flag.Int("events", 1_000_000, "minimum number of events in the chain")
	data := flag.String("data", "", "folder to keep the chain in (default a temporary one)")
	flag.Parse()
	if flag.NArg() > 0 || *events < each {
		log.Fatalf("events: invalid flags (want no arguments, and at least %d events)", each)
	}
	if err := run(context.Background(), *data, *events); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, data string, events int) (err error) {
	if data == "" {
		if data, err = os.MkdirTemp("", "ashlar-events-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
	}
	path := filepath.Join(data, "events")
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if err := create(ctx, path, events); err != nil {
			return err
		}
	}
	store, err := pebble.Open(pebble.Options{Path: path})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	a, err := archive.Open(ctx, store)
	if err != nil {
		return err
	}
	methods, err := api.New(query.NewChain(a, func() *tip.Tip { return nil }), api.Usual()).Methods()
	if err != nil {
		return err
	}
	b := &bench{blocks: a.Settled(a.Span()), methods: methods.Handlers()}
	if err := b.count(ctx); err != nil {
		return err
	}
	fmt.Printf("%d events in %d blocks, %d MiB on disk\n\n", b.events, len(b.sizes), store.Stats().DiskBytes>>20)
	return b.measure(ctx, accounts(events))
}

// accounts returns how many accounts the chain's events name.
func accounts(events int) int { return events / each }

// create creates a store with the chain.
func create(ctx context.Context, path string, events int) (err error) {
	store, err := pebble.Open(pebble.Options{Path: path, Options: kv.Options{BulkLoad: true}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	a, err := archive.Create(ctx, store, "SN_BENCH")
	if err != nil {
		return err
	}
	if err := fill(ctx, a, events); err != nil {
		return err
	}
	return store.Compact(ctx)
}

// fill generates the chain.
func fill(ctx context.Context, a *archive.Archive, events int) error {
	options := synthetic.Default()
	options.Transactions, options.Accounts, options.Contracts = 20, accounts(events), 200
	made, begin, count := synthetic.New(options), time.Now(), 0
	for count < events {
		var group []*starknet.Block
		for size := 0; size < 20_000 && count < events; {
			block := made.Next()
			group, size, count = append(group, block), size+block.EventCount(), count+block.EventCount()
		}
		if err := a.Append(ctx, group...); err != nil {
			return err
		}
	}
	fmt.Printf("generated in %v, %.0f events/s\n", time.Since(begin).Round(time.Millisecond), float64(count)/time.Since(begin).Seconds())
	return a.Sync(ctx)
}

// bench is the chain to query.
type bench struct {
	blocks  *archive.Reader
	methods jsonrpc.Handlers
	sizes   []uint64 // events in each block
	events  uint64
}

func (b *bench) count(ctx context.Context) error {
	span := b.blocks.Span()
	for number := span.First; number <= span.Last.Number; number++ {
		header, err := b.blocks.Header(ctx, number)
		if err != nil {
			return err
		}
		b.sizes, b.events = append(b.sizes, header.EventCount), b.events+header.EventCount
	}
	return nil
}
