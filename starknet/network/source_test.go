package network

import (
	"context"
	"testing"

	"ashlar/family"
	"ashlar/internal/await"
	"ashlar/starknet"
	"ashlar/starknet/source/node/nodetest"
)

// TestGenesisIsReached: a node whose only block has the number 0 answers as it should.
func TestGenesisIsReached(t *testing.T) {
	store, _ := newStored(t)
	fake := nodetest.New(t, 9, chainOf(1, 1))
	fake.ChainID = starknet.FeltOfText("SN_MINE")
	n := openServed(t, store, family.Sources{fake.URL}, false)
	reached := func() bool {
		status, err := n.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return status.Source.Reached
	}
	if reached() {
		t.Error("reached before the first answer")
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.follow(ctx) }()
	await.Until(t, "the node to be reached", reached)
	stop()
	<-ended
}
