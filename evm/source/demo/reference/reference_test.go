package reference

import (
	"context"
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/rawdb"

	"ashlar/evm/source/demo"
)

// A copied state is whole: the same chain goes on from it, and everything that
// the state's root stands for can be read.
func TestChainGoesOnFromCopiedState(t *testing.T) {
	plain, copied := begin(t), begin(t)
	for range 3 {
		for _, b := range []*Builder{plain, copied} {
			if err := b.Build(context.Background(), 10, func(Block) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		if plain.Head().Hash() != copied.Head().Hash() {
			t.Fatalf("block %d is %s, and %s from copied states", plain.Head().NumberU64(), plain.Head().Hash(), copied.Head().Hash())
		}
		db, err := copyState(copied.db, copied.Head().Root())
		if err != nil {
			t.Fatal(err)
		}
		copied.db = db
	}
}

func TestCopyStateNeedsTheState(t *testing.T) {
	if _, err := copyState(begin(t).db, common.Hash{1}); err == nil {
		t.Error("copying a state that is not there: no error")
	}
}

func TestBuildStops(t *testing.T) {
	stop := errors.New("enough")
	seen := 0
	err := begin(t).Build(context.Background(), 5, func(b Block) error {
		if seen++; b.NumberU64() == 3 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || seen != 3 {
		t.Errorf("error %v after %d blocks, expected %v after 3", err, seen, stop)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := begin(t).Build(ctx, 5, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, expected %v", err, context.Canceled)
	}
}

// The chain maker's panics come out as errors.
func TestBuildWithoutStateFails(t *testing.T) {
	b := begin(t)
	b.db = rawdb.NewMemoryDatabase()
	if err := b.Build(context.Background(), 5, func(Block) error { return nil }); err == nil {
		t.Error("building on a missing state: no error")
	}
}

func begin(t *testing.T) *Builder {
	t.Helper()
	network, err := demo.New(demo.Default())
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(network)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
