// Command events measures what pages of events cost, whatever is asked for: it makes
// up a rollup chain of a million events, asks rollup_getEvents as a client does, in
// this process, and goes through all events for the same answer.
//
//	go run ./bench/events [-events N] [-data DIR]
//
// Each question is asked many times, with other values where there are some as rare,
// and its median time is printed beside that of the scan. A chain that is in DIR is
// used again.
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
	"ashlar/starknet/source/madeup"
)

// each is how many events name an account of those that are asked for as rare.
const each = 100

func main() {
	events := flag.Int("events", 1_000_000, "events of the chain, at least")
	data := flag.String("data", "", "folder to keep the chain in; a temporary one unless given")
	flag.Parse()
	if flag.NArg() > 0 || *events < each {
		log.Fatalf("events: expected -events %d or more and -data DIR, and nothing else", each)
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
	methods, err := api.New(query.NewChain(a, func() *tip.Tip { return nil })).Methods()
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

// accounts is how many the chain's events name.
func accounts(events int) int { return events / each }

// create makes a store with the chain.
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

// fill makes up the chain.
func fill(ctx context.Context, a *archive.Archive, events int) error {
	options := madeup.Default()
	options.Transactions, options.Accounts, options.Contracts = 20, accounts(events), 200
	made, begin, count := madeup.New(options), time.Now(), 0
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
	fmt.Printf("made in %v, %.0f events/s\n", time.Since(begin).Round(time.Millisecond), float64(count)/time.Since(begin).Seconds())
	return a.Sync(ctx)
}

// bench is a chain that is asked.
type bench struct {
	blocks  *archive.Reader
	methods jsonrpc.Handlers
	sizes   []uint64 // events by block
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
