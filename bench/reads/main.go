// Command reads measures the archive without a server: slots per second, and proofs of an
// account with one slot per second, at random blocks of an imported network.
//
//	go run ./bench/reads -data DIR -network NAME
//
// The slots exist in the archive. The proofs are of contracts that wrote logs, each with a
// slot of its own. Every reader is a goroutine. Rates are by elapsed time, not by processor
// time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/query"
	"ashlar/kv"
	"ashlar/kv/pebble"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"golang.org/x/sync/errgroup"
)

const samples = 200_000 // how many slots are chosen at most

func main() {
	data := flag.String("data", "", "data directory")
	network := flag.String("network", "", "network in it")
	seconds := flag.Int("seconds", 5, "how long each kind is measured")
	readers := flag.Int("readers", runtime.GOMAXPROCS(0), "goroutines that read")
	cache := flag.Int64("cache", 128, "cache of the store, in MiB")
	flag.Parse()
	if *data == "" || *network == "" || flag.NArg() > 0 || *seconds < 1 || *readers < 1 {
		log.Fatal("reads: invalid flags (want -data DIR -network NAME and no arguments)")
	}
	path := filepath.Join(*data, "networks", *network)
	if err := measure(context.Background(), path, *cache<<20, time.Duration(*seconds)*time.Second, *readers); err != nil {
		log.Fatal(err)
	}
}

func measure(ctx context.Context, path string, cacheBytes int64, length time.Duration, readers int) (err error) {
	store, err := pebble.Open(pebble.Options{Path: path, Options: kv.Options{CacheBytes: cacheBytes}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	a, err := archive.Open(ctx, store)
	if err != nil {
		return err
	}
	executor, err := execute.New(a.Genesis().Config)
	if err != nil {
		return err
	}
	view, err := query.NewChain(a, nil, executor).View()
	if err != nil {
		return err
	}
	slots, err := sampleSlots(ctx, store)
	if err != nil {
		return err
	}
	contracts, err := sampleContracts(ctx, view)
	if err != nil {
		return err
	}
	head := view.Head().Number
	if err := drive("slots, any block", length, readers, func(r *rand.Rand) error {
		slot := slots[r.IntN(len(slots))]
		_, err := view.State(r.Uint64N(head+1)).Slot(ctx, slot.address, slot.key)
		return err
	}); err != nil {
		return err
	}
	return drive("proofs of an account and a slot, any block", length, readers, func(r *rand.Rand) error {
		p := contracts[r.IntN(len(contracts))]
		_, err := view.Prove(ctx, r.Uint64N(head+1), p.address, []common.Hash{p.slot})
		return err
	})
}

// drive warms up for a tenth of the time, then calls ask from all readers until the time is
// over, and prints the rate.
func drive(what string, length time.Duration, readers int, ask func(*rand.Rand) error) error {
	if _, err := rate(length/10, readers, ask); err != nil {
		return err
	}
	perSecond, err := rate(length, readers, ask)
	if err == nil {
		fmt.Printf("%-45s %9.0f/s\n", what, perSecond)
	}
	return err
}

// rate calls ask from all readers for the given time and returns the calls per second.
func rate(length time.Duration, readers int, ask func(*rand.Rand) error) (float64, error) {
	var asked atomic.Uint64
	var group errgroup.Group
	begin := time.Now()
	for reader := range readers {
		group.Go(func() error {
			r := rand.New(rand.NewPCG(uint64(reader), uint64(length)))
			for time.Since(begin) < length {
				for range 100 {
					if err := ask(r); err != nil {
						return err
					}
				}
				asked.Add(100)
			}
			return nil
		})
	}
	err := group.Wait()
	return float64(asked.Load()) / time.Since(begin).Seconds(), err
}

type slot struct{ address, key common.Hash }

// sampleSlots chooses slots from the whole table.
func sampleSlots(ctx context.Context, store kv.Store) ([]slot, error) {
	r := rand.New(rand.NewPCG(1, 2))
	var picked []slot
	seen := 0
	for _, table := range archive.Tables() {
		if table.Name != "slots" {
			continue
		}
		for row, err := range store.Walk(ctx, table, 0) {
			if err != nil {
				return nil, err
			}
			one := slot{common.Hash(row.Partition[:32]), common.Hash(row.Partition[32:])}
			if seen++; len(picked) < samples {
				picked = append(picked, one)
			} else if i := r.IntN(seen); i < samples {
				picked[i] = one
			}
		}
	}
	if len(picked) == 0 {
		return nil, errors.New("choose slots: the network has none")
	}
	return picked, nil
}

type contract struct {
	address common.Address
	slot    common.Hash
}

// sampleContracts chooses contracts that wrote logs. Each comes with the slot in which a
// token with the usual layout stores the balance of a sender of the same block.
func sampleContracts(ctx context.Context, view *query.View) ([]contract, error) {
	var picked []contract
	for number := uint64(0); number <= view.Head().Number; number += 1 + view.Head().Number/500 {
		body, err := view.Body(ctx, number, nil)
		if err != nil {
			return nil, err
		}
		filter := &query.Filter{From: number, To: number}
		err = view.Logs(ctx, filter, 1<<20, func(l *query.Log) error {
			sender := body.Sender(l.Transaction)
			key := crypto.Keccak256Hash(common.LeftPadBytes(sender[:], 32), make([]byte, 32))
			picked = append(picked, contract{l.Address, key})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if len(picked) == 0 {
		return nil, errors.New("choose contracts: the network has no logs")
	}
	return picked, nil
}
