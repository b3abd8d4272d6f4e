package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ashlar/evm/archive/window"
	"ashlar/history/retention"
	"ashlar/internal/node"
	"ashlar/internal/usage"
	"ashlar/kv"
	"ashlar/kv/pebble"
)

// A slide moves a window over a copy of the store, and answers all the while:
//
//	history removed   0     1/2n        2/2n          ...   1/2
//	                  idle  removing    idle  removing      idle
//	answers           about the last 45 % of the chain
//
// Each answer is made by a thread that does nothing else, so its processor time has neither
// that of the removal nor that of compactions. Times between the phases are comparable because
// they alternate: what else the machine does slows both. The store counts the blocks that all
// of them read, so the removal runs once without answers, and what it read then is subtracted.
type slide struct {
	opened
	store  kv.Store
	kinds  []kind
	chain  *sampled
	askers int           // threads that answer
	pause  time.Duration // of the removal, between two steps

	removed uint64        // rows
	took    time.Duration // of the removals
	blocks  [phases]int64 // that were read
}

// phases of a slide.
const (
	idle = iota
	removing
	phases
)

// answeredFrom is the share of the chain from which on blocks are asked about.
const answeredFrom = 0.55

// answered are the answers of one kind in one phase.
type answered struct{ waited, worked []time.Duration }

// runSlide prints what answers cost while a window moves and while it stands.
func (o options) runSlide(ctx context.Context) (err error) {
	size, chain, err := takeSample(ctx, o.path, answeredFrom)
	if err != nil {
		return err
	}
	alone := &slide{chain: chain}
	if _, err := o.runOn(ctx, alone, size); err != nil {
		return err
	}
	s := &slide{chain: chain, askers: 2, pause: 3 * time.Second}
	for _, k := range kinds() {
		if o.kinds.MatchString(k.name) {
			s.kinds = append(s.kinds, k)
		}
	}
	all, err := o.runOn(ctx, s, size)
	if err != nil {
		return err
	}
	fmt.Printf("store %d MiB, cache %d MiB; %d rows removed in %d steps, %v in all\n\n", size>>20, o.cacheOf(size)>>20, s.removed, o.slide, s.took.Round(time.Second/10))
	s.blocks[removing] -= alone.blocks[removing]
	s.print(all)
	return nil
}

// runOn runs s on a copy of the store.
func (o options) runOn(ctx context.Context, s *slide, size int64) (all [][phases]answered, err error) {
	folder, err := os.MkdirTemp("", "larger")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if err := os.CopyFS(folder, os.DirFS(o.path)); err != nil {
		return nil, err
	}
	store, err := pebble.Open(pebble.Options{Path: folder, Options: kv.Options{CacheBytes: o.cacheOf(size)}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	s.store = store
	if s.opened, err = open(ctx, store); err != nil {
		return nil, err
	}
	return s.run(ctx, o.slide)
}

// run moves the window in steps, and returns all answers by kind and phase.
func (s *slide) run(ctx context.Context, steps int) (all [][phases]answered, err error) {
	var phase atomic.Int32
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	each := make([][][phases]answered, s.askers)
	failed := make([]error, s.askers)
	var asking sync.WaitGroup
	for i := range s.askers {
		asking.Go(func() { each[i], failed[i] = s.ask(ctx, uint64(i), &phase) })
	}
	last, read := s.chain.head, int64(0)
	enter := func(p int32) {
		now := s.store.Stats().CacheMisses
		s.blocks[phase.Swap(p)] += now - read
		read = now
	}
	for step := 1; step <= steps && err == nil; step++ {
		time.Sleep(s.pause)
		options := window.DefaultOptions(slog.New(slog.DiscardHandler))
		options.Grace, options.Steps = 0, 0
		kept := last - last*uint64(step)/uint64(2*steps)
		remover := window.New(s.archive, s.store, retention.Window{State: retention.Span(kept), History: retention.Span(kept)}, options)
		began := time.Now()
		enter(removing)
		err = remover.Move(ctx)
		enter(idle)
		s.took += time.Since(began)
		s.removed += remover.Rows()
	}
	time.Sleep(s.pause)
	stop()
	asking.Wait()
	enter(idle)
	all = make([][phases]answered, len(s.kinds))
	for _, some := range each {
		for k := range some {
			for p := range phases {
				all[k][p].waited = append(all[k][p].waited, some[k][p].waited...)
				all[k][p].worked = append(all[k][p].worked, some[k][p].worked...)
			}
		}
	}
	return all, errors.Join(append(failed, err)...)
}

// ask makes answers of each kind in turn until ctx is done. Those during which the phase
// changes are not counted.
func (s *slide) ask(ctx context.Context, seed uint64, phase *atomic.Int32) ([][phases]answered, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	all := make([][phases]answered, len(s.kinds))
	m := &maker{rand.New(rand.NewPCG(seed, 2)), s.chain}
	var out []byte
	for i := 0; ctx.Err() == nil; i++ {
		k := i % len(s.kinds)
		request, err := node.Request(i, s.kinds[k].method, s.kinds[k].params(m)...)
		if err != nil {
			return nil, err
		}
		before := phase.Load()
		began, busy := time.Now(), usage.ThreadProcessor()
		out = s.server.Answer(context.WithoutCancel(ctx), request, out[:0])
		worked, waited := usage.ThreadProcessor()-busy, time.Since(began)
		if strings.Contains(string(out[:min(len(out), 100)]), `"error"`) {
			return nil, fmt.Errorf("%.300s: %.300s", request, out)
		}
		if phase.Load() == before {
			a := &all[k][before]
			a.waited, a.worked = append(a.waited, waited), append(a.worked, worked)
		}
	}
	return all, nil
}

func (s *slide) print(all [][phases]answered) {
	var answers [phases]int
	ratio := 0.0
	fmt.Printf("| kind | answers, idle | removing | µs of processor time, idle | removing | p50 µs, idle | removing | p99 µs, idle | removing |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for i, k := range s.kinds {
		a, b := &all[i][idle], &all[i][removing]
		fmt.Printf("| %s | %d | %d | %.1f | %.1f | %.0f | %.0f | %.0f | %.0f |\n", k.name, len(a.waited), len(b.waited), mean(a.worked), mean(b.worked),
			quantile(a.waited, 0.5), quantile(b.waited, 0.5), quantile(a.waited, 0.99), quantile(b.waited, 0.99))
		for p := range phases {
			answers[p] += len(all[i][p].waited)
		}
		ratio += math.Log(mean(b.worked) / mean(a.worked))
	}
	fmt.Printf("\nprocessor time while removing: %.2f times that while idle, the mean of all kinds\n", math.Exp(ratio/float64(len(s.kinds))))
	for p, name := range [phases]string{idle: "idle", removing: "removing"} {
		fmt.Printf("blocks of the store that answers read, %s: %.2f each\n", name, float64(s.blocks[p])/float64(answers[p]))
	}
}

// mean returns the mean in microseconds.
func mean(all []time.Duration) float64 {
	var sum time.Duration
	for _, d := range all {
		sum += d
	}
	return sum.Seconds() * 1e6 / float64(max(len(all), 1))
}

// quantile returns a quantile in microseconds.
func quantile(all []time.Duration, q float64) float64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[int(q*float64(len(all)-1))].Seconds() * 1e6
}
