package main

import (
	"context"
	"errors"
	"fmt"

	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/snapshot"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/core"
)

// loaded is the network that begins with the snapshot of the other one.
const loaded = "loaded"

// runSnapshot makes a snapshot of a network, and begins another one with it.
func (m *measurement) runSnapshot(ctx context.Context, genesis *core.Genesis, a *archive.Archive) error {
	folder := string(m.dir) + "-snapshot"
	creator, err := snapshot.New(ctx, a, snapshot.Options{Folder: folder})
	if err != nil {
		return err
	}
	creating := beginStep()
	size, err := creator.Run(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("snapshot of %d MiB made: %v\n", size>>20, creating)
	loading := beginStep()
	source, err := snapshot.Open(ctx, folder, genesis, creator.Head().Hash)
	if err != nil {
		return err
	}
	total, _, err := source.Check(ctx)
	if err != nil {
		return errors.Join(err, source.Close())
	}
	db, err := m.open(loaded)
	if err != nil {
		return errors.Join(err, source.Close())
	}
	start, err := archive.Begin(ctx, db, genesis, archive.Beginning{Ref: source.State(), Source: source.Contents()})
	if err != nil {
		return err
	}
	executor, err := execute.New(genesis.Config)
	if err != nil {
		return err
	}
	if _, err := ingest.Start(ctx, ingest.StartConfig{
		Start: start, Executor: executor, Genesis: genesis, Source: source, TotalDifficulty: total, Progress: new(ingest.StartProgress),
	}); err != nil {
		return err
	}
	fmt.Println("snapshot loaded, without compaction:", loading)
	return errors.Join(source.Close(), db.Close())
}

func (m *measurement) open(name string) (kv.Store, error) {
	return m.dir.OpenNetwork(name, kv.Options{BulkLoad: true, CacheBytes: m.cacheBytes, Tables: archive.Tables()})
}
