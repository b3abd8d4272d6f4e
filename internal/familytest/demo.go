// Package familytest has tests that every family of networks passes.
package familytest

import (
	"context"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ashlar/family"
	"ashlar/internal/await"
	"ashlar/jsonrpc"
	"ashlar/kv"
	"ashlar/kv/pebble"
	"ashlar/kv/pebble/pebbletest"

	"golang.org/x/sync/errgroup"
)

// DemoOnFullDisk fills the disk below a family's demo: the network says that it makes no blocks, still answers, and goes
// on by itself when there is space again. check compares the network's blocks with those of the demo.
func DemoOnFullDisk(t *testing.T, f family.Family, check func(*testing.T, family.Network)) {
	t.Helper()
	var full atomic.Bool
	disk := pebbletest.NewDisk()
	disk.FullWhile(full.Load)
	opened := func(o kv.Options) (kv.Store, error) { return disk.Open(pebble.Options{Options: o, Path: "store"}) }
	demo, err := f.Demo()
	if err != nil {
		t.Fatal(err)
	}
	if err := demo.Create(t.Context(), family.Place{Name: "demo", Open: opened}, 8); err != nil {
		t.Fatal(err)
	}
	store, err := opened(kv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	n, err := f.Open(t.Context(), store, f.Entries(), false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Serve(t.Context(), family.Service{Name: "demo", Data: t.TempDir(), Observe: func([]string) jsonrpc.Observer { return nil }}); err != nil {
		t.Fatal(err)
	}
	run, err := demo.Start(t.Context(), n, 10*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return n.Run(ctx) })
	group.Go(func() error { return run(ctx) })
	status := func() family.Status {
		t.Helper()
		if ctx.Err() != nil {
			t.Fatal(group.Wait())
		}
		s, err := n.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for range 2 {
		before := status().Head
		await.Until(t, "blocks", func() bool { s := status(); return s.Head >= before+3 && s.Stopped == nil })
		full.Store(true)
		await.Until(t, "the stop on a full disk", func() bool { return status().Stopped != nil })
		if s := status(); !strings.Contains(s.Stopped.Why, syscall.ENOSPC.Error()) {
			t.Errorf("on a full disk: %+v", s.Stopped)
		}
		full.Store(false)
	}
	head := status().Head
	await.Until(t, "blocks after the last stop", func() bool { s := status(); return s.Head >= head+3 && s.Stopped == nil })
	stop()
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := demo.Start(t.Context(), n, time.Hour); err != nil { // it follows all blocks
		t.Errorf("the chain is not that of the demo: %v", err)
	}
	check(t, n)
}
