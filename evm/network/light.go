package network

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"ashlar/evm/proven"
	"ashlar/evm/source/beacon"
	"ashlar/evm/source/engine"
	"ashlar/family"
	"ashlar/kv"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
)

// LightClient is how a light client of the beacon chain names the head.
type LightClient struct {
	Nodes      upstream.Nodes `yaml:"nodes"`      // beacon APIs of consensus clients; empty: there is no light client
	Checkpoint string         `yaml:"checkpoint"` // root of the beacon block that is trusted
}

// check returns what is wrong with the entries of a light client.
func (c *LightClient) check(e *Entries) error {
	switch {
	case len(c.Nodes) == 0 && c.Checkpoint == "":
		return nil
	case len(c.Nodes) == 0:
		return errors.New("checkpoint is given without nodes: expected the URL of at least one consensus client")
	case e.Checked != checkState:
		return fmt.Errorf("a light client names the head of networks with an upstream and check: %s: expected both", checkState)
	case len(e.Source) > 0:
		return errors.New("a light client names the head of networks that execute no blocks: expected no source")
	case e.Engine.Listen != "":
		return errors.New("both an engine and a light client would name the head: expected one of them")
	}
	if _, err := c.checkpoint(); err != nil {
		return err
	}
	for i := range c.Nodes {
		if n := &c.Nodes[i]; n.Backup || n.Rate != 0 || n.Burst != 0 || n.Daily != 0 || len(n.Units) > 0 {
			return fmt.Errorf("nodes: number %d of %d: all nodes are asked all the time (want url, key_file, key_env and headers alone)", i+1, len(c.Nodes))
		}
	}
	if err := c.Nodes.Check(); err != nil {
		return fmt.Errorf("nodes: %w", err)
	}
	return nil
}

func (c *LightClient) checkpoint() (root common.Hash, err error) {
	if err := root.UnmarshalText([]byte(c.Checkpoint)); err != nil || root == (common.Hash{}) {
		return root, fmt.Errorf("checkpoint: invalid root %q (want that of a finalized beacon block, 0x and 64 hexadecimal digits)", c.Checkpoint)
	}
	return root, nil
}

// openLight returns a light client that names the head to a client of the remote chain.
func (n *network) openLight(genesis common.Hash, names *proven.Consensus) (*beacon.Follower, error) {
	entries := &n.entries.LightClient
	checkpoint, err := entries.checkpoint()
	if err != nil {
		return nil, err
	}
	shown, err := entries.Nodes.Names()
	if err != nil {
		return nil, fmt.Errorf("nodes: %w", err)
	}
	config := beacon.Config{
		Known: beacon.Public(genesis), Checkpoint: checkpoint, Keeper: &lightKeeper{n.store, checkpoint, n.reading}, Log: n.log(),
		Name: func(ctx context.Context, to engine.Forkchoice) error {
			_, err := names.UpdateForkchoice(ctx, to)
			return err
		},
	}
	for i := range entries.Nodes {
		template, err := entries.Nodes[i].Template()
		if err != nil {
			return nil, fmt.Errorf("nodes: number %d of %d: %w", i+1, len(entries.Nodes), err)
		}
		config.Nodes = append(config.Nodes, beacon.NewNode(shown[i], template))
	}
	return beacon.New(config), nil
}

// pointerLight names the pointer with the last finalized block: see docs/format.md.
const pointerLight = "light_client"

// lightKeeper keeps the last finalized block in a network's store. It implements
// [beacon.Keeper].
type lightKeeper struct {
	store      kv.Store
	configured common.Hash // the checkpoint from which the block was verified
	reading    bool        // another process writes
}

// Load implements [beacon.Keeper]. A block that was verified from another checkpoint than the
// configured one does not count.
func (k *lightKeeper) Load(ctx context.Context) (saved beacon.Checkpoint, err error) {
	value, err := k.store.Pointer(ctx, pointerLight)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return saved, nil
	case err != nil:
		return saved, err
	case len(value) != 2*common.HashLength+8:
		return saved, fmt.Errorf("pointer %q has %d bytes (want %d)", pointerLight, len(value), 2*common.HashLength+8)
	case !bytes.Equal(value[:common.HashLength], k.configured[:]):
		return saved, nil
	}
	saved.Slot = binary.BigEndian.Uint64(value[common.HashLength:])
	saved.Root = common.Hash(value[common.HashLength+8:])
	return saved, nil
}

// Save implements [beacon.Keeper].
func (k *lightKeeper) Save(ctx context.Context, c beacon.Checkpoint) error {
	if k.reading {
		return nil
	}
	value := binary.BigEndian.AppendUint64(k.configured[:], c.Slot)
	batch := k.store.NewBatch()
	batch.SetPointer(pointerLight, append(value, c.Root[:]...))
	if err := k.store.Write(ctx, batch); err != nil {
		return err
	}
	return k.store.Sync(ctx)
}

// behindLight returns how many blocks a head is behind the one that a light client has verified, which has no number: none
// if it is that one, else what nodes say.
func behindLight(now *beacon.Status, head common.Hash, nodes uint64) uint64 {
	if head == now.Head.Block {
		return 0
	}
	return nodes
}

// lightStatus says what a light client sees.
func lightStatus(now *beacon.Status) *family.LightClientStatus {
	status := &family.LightClientStatus{
		Problem: now.Problem, Checkpoint: now.Checkpoint.Hex(), Slot: now.Slot, Head: now.Head.Number, Finalized: now.Finalized.Number,
		PeriodsBehind: now.PeriodsBehind, Named: family.Seconds(now.Named), FinalizedTime: family.Seconds(now.Finalized.Time),
	}
	for _, n := range now.Nodes {
		status.Nodes = append(status.Nodes, family.BeaconNodeStatus{
			Name: n.Name, Slot: n.Slot, Used: n.Usable && n.Why == "", Why: n.Why, Aside: family.Seconds(n.Aside), Failures: n.Failures, Invalid: n.Invalid,
		})
	}
	return status
}
