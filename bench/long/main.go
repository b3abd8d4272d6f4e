// Command long imports a long chain and prints what each tenth of its transactions costs:
//
//	go run ./bench/chaingen -blocks 24000 -txs 60 -out CHAIN
//	go run ./bench/long -chain CHAIN -data DIR
//
// It imports as ashlar import does, in this process, into a network that does not exist yet.
// Each line has
//
//	µs/tx    processor time of a transaction, and the collector's part of it
//	tx/s     transactions by the clock
//	MiB      resident memory, and the greatest so far
//	written  bytes that the store has written to its files for a transaction
//	misses   blocks of the store that were read for a transaction, not from the cache
//
// The last lines are the final compaction and the whole import. With -profile, the first and
// the last tenth leave a profile each of the processor and of the memory.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"

	"ashlar/app"
	"ashlar/app/command"
	"ashlar/app/store"
	"ashlar/family"
	"ashlar/kv"
)

const (
	network = "long"
	parts   = 10
)

type options struct {
	chain, data, profile string
	memory               family.Bytes
}

func main() {
	log.SetFlags(0)
	var o options
	flag.StringVar(&o.chain, "chain", "", "directory that bench/chaingen has written")
	flag.StringVar(&o.data, "data", "", "data directory to make")
	flag.StringVar(&o.profile, "profile", "", "directory for processor profiles of the first and the last tenth")
	o.memory = command.DefaultMemory
	flag.Func("memory", fmt.Sprintf("memory that the import may take (default %s)", o.memory), func(text string) (err error) {
		o.memory, err = command.ParseMemory(text)
		return err
	})
	flag.Parse()
	if o.chain == "" || o.data == "" || flag.NArg() > 0 {
		log.Fatal("long: invalid flags (want -chain DIR -data DIR and no arguments)")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := o.run(ctx); err != nil {
		log.Fatal("long: ", err)
	}
}

func (o options) run(ctx context.Context) error {
	total, err := o.transactions()
	if err != nil {
		return err
	}
	memory := command.PrepareImport(o.memory)
	f, err := app.Families().Named("evm")
	if err != nil {
		return err
	}
	dir := store.Dir(o.data)
	if err := dir.Check(); err != nil {
		return err
	}
	place, err := app.Place(ctx, dir, f, network)
	if err != nil {
		return err
	}
	if !place.New {
		return fmt.Errorf("%s has a network %q already (want a new directory)", o.data, network)
	}
	m := &meter{total: total, profile: o.profile}
	place.Memory = memory
	open := place.Open
	place.Open = func(k kv.Options) (kv.Store, error) {
		opened, err := open(k)
		m.store = opened
		return opened, err
	}
	flags := map[string]string{"genesis": filepath.Join(o.chain, "genesis.json"), "trace-index": "no"}
	imported, err := f.Import(ctx, place, flags)
	if err != nil {
		return err
	}
	err = m.measure(imported.Progress, func() error {
		return imported.Run(ctx, []string{filepath.Join(o.chain, "chain.rlp")}, silent{})
	})
	if err == nil {
		err = imported.Compact(ctx)
		m.compacted()
	}
	if err := errors.Join(err, imported.Close()); err != nil {
		return err
	}
	disk, err := dir.Bytes(network)
	if err == nil {
		m.amplification(disk)
	}
	return err
}

// transactions returns how many transactions the chain has.
func (o options) transactions() (uint64, error) {
	text, err := os.ReadFile(filepath.Join(o.chain, "meta.json"))
	if err != nil {
		return 0, err
	}
	var meta struct{ Transactions uint64 }
	if err := json.Unmarshal(text, &meta); err != nil {
		return 0, fmt.Errorf("meta.json: %w", err)
	}
	if meta.Transactions < parts {
		return 0, fmt.Errorf("meta.json: %d transactions (want at least %d)", meta.Transactions, parts)
	}
	return meta.Transactions, nil
}

// silent shows no progress.
type silent struct{}

func (silent) Begin(string, func() (read, total int64)) {}
func (silent) Done(string)                              {}
