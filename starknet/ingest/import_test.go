package ingest

import (
	"context"
	"errors"
	"testing"
	"time"

	"ashlar/kv"
	"ashlar/starknet"
	"ashlar/starknet/archive"
)

// TestImportSettlesGroups: an import holds at most a group of blocks in memory, whatever their number and their size,
// and makes them durable from time to time.
func TestImportSettlesGroups(t *testing.T) {
	_, a := open(t)
	blocks := makeBlocks(50, 2*groupBlocks+50)
	for _, block := range blocks[groupBlocks+10:][:4] {
		block.Transactions = []starknet.Transaction{{Hash: block.Hash, Receipt: starknet.Receipt{Events: make([]starknet.Event, groupEvents/2+1)}}}
	}
	i := New(a)
	var synced uint64 // head when a sync was due
	most := 0
	source := &list{blocks: blocks}
	source.next = func() {
		most = max(most, len(i.group))
		events := 0
		for _, block := range i.group {
			events += block.EventCount()
		}
		if len(i.group) >= groupBlocks || events > groupEvents {
			t.Errorf("%d blocks with %d events are in memory, want at most %d with %d", len(i.group), events, groupBlocks-1, groupEvents)
		}
		switch len(source.blocks) {
		case 100: // a sync is due with the next group
			i.synced = time.Now().Add(-2 * syncEvery)
			synced = i.Progress().Head
		case 1:
			if p := i.Progress(); p.Kept <= synced {
				t.Errorf("%+v, want more than block %d to be durable", p, synced)
			}
		}
	}
	if err := i.Import(t.Context(), source); err != nil || a.Span().Last != blocks[len(blocks)-1].Ref() {
		t.Errorf("%v, settled is %s", err, a.Span().Last)
	}
	if most != groupBlocks-1 {
		t.Errorf("at most %d blocks were in memory, want %d", most, groupBlocks-1)
	}
}

// TestImportReportsFailures: an import ends with the error of its source, of a write or of a sync. It never says that
// blocks are durable which may not be.
func TestImportReportsFailures(t *testing.T) {
	blocks := makeBlocks(50, groupBlocks+20)
	errSource := errors.New("the file ends within a block")
	for name, test := range map[string]struct {
		source     error
		write      int // that fails; negative: none
		syncs      int // that fail
		want       error
		head, kept uint64
	}{
		"source":       {source: errSource, write: -1, want: errSource, head: blocks[len(blocks)-1].Number, kept: blocks[len(blocks)-1].Number},
		"first group":  {write: 0, want: errWrite},
		"second group": {write: 1, want: errWrite, head: blocks[groupBlocks-1].Number, kept: blocks[groupBlocks-1].Number},
		"sync":         {write: -1, syncs: 1, want: errSync, head: blocks[len(blocks)-1].Number},
	} {
		under, _ := open(t)
		store := &failingWrite{Store: &failingSync{Store: under, failures: test.syncs}, left: test.write}
		a, err := archive.Open(t.Context(), store)
		if err != nil {
			t.Fatal(err)
		}
		i := New(a)
		if err := i.Import(t.Context(), &list{blocks: blocks, end: test.source}); !errors.Is(err, test.want) {
			t.Errorf("%s fails: %v, want %v", name, err, test.want)
		}
		if p := i.Progress(); p.Head != test.head || p.Kept != test.kept {
			t.Errorf("%s fails: %+v, want head %d, kept %d", name, p, test.head, test.kept)
		}
	}
}

// hanging is a store that makes no write before ctx is done, as a cluster does whose nodes are lost.
type hanging struct {
	kv.Store
	writing chan struct{} // closed by the first write
}

func (h *hanging) Write(ctx context.Context, _ kv.Batch) error {
	close(h.writing)
	<-ctx.Done()
	return ctx.Err()
}

// TestStopImportWhileStoreHangs stops an import whose store does not answer.
func TestStopImportWhileStoreHangs(t *testing.T) {
	below, _ := open(t)
	store := &hanging{below, make(chan struct{})}
	a, err := archive.Create(t.Context(), store, "SN_TEST")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- New(a).Import(ctx, &list{blocks: makeBlocks(50, 3)}) }()
	<-store.writing
	stop()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the import ended with %v, expected %v", err, context.Canceled)
		}
	case <-time.After(4 * stopTime):
		t.Fatalf("the import runs %v after it was stopped", 4*stopTime)
	}
}
