package network

import (
	"testing"

	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/source/demo"
	"ashlar/family"
	"ashlar/kv"
)

// A transaction of the demo that has no room in its block is left out alone: later ones of its sender continue with the nonce that
// the sender has on the chain, also after a restart.
func TestDemoGoesOnAfterATransactionLeftOut(t *testing.T) {
	config := demo.Default()
	config.Seed, config.GasLimit, config.AmsterdamBlock, config.MeanTransactions = 0, 10_200_000, 20, 60 // full blocks
	shown, err := demo.New(config)
	if err != nil {
		t.Fatal(err)
	}
	store := ingesttest.Store(t)
	place := family.Place{Name: "demo", Open: func(kv.Options) (kv.Store, error) { return keptOpen{store}, nil }}
	const restart, last = 60, 75
	for _, blocks := range []uint64{restart, last} {
		if err := (demoNetwork{shown: shown, before: shown}).Create(t.Context(), place, blocks); err != nil {
			t.Fatal(err)
		}
	}
	i, err := createDemo(t.Context(), place, shown)
	if err != nil {
		t.Fatal(err)
	}
	traffic, err := shown.Traffic()
	if err != nil {
		t.Fatal(err)
	}
	missing := 0
	for number := uint64(1); number <= last; number++ {
		header, err := i.archive.Header(t.Context(), number)
		if err != nil {
			t.Fatal(err)
		}
		contents, err := traffic.Next(number, header.BaseFee)
		if err != nil {
			t.Fatal(err)
		}
		body, err := i.archive.Body(t.Context(), number, nil)
		if err != nil {
			t.Fatal(err)
		}
		lacks := len(contents.Transactions) - body.Len()
		if lacks > 1 {
			t.Errorf("block %d lacks %d transactions of %d", number, lacks, len(contents.Transactions))
		}
		missing += lacks
	}
	if missing == 0 {
		t.Error("no transaction was left out: expected blocks that are fuller")
	}
}
