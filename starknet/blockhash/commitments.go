package blockhash

import (
	"ashlar/starknet"

	"github.com/consensys/gnark-crypto/ecc/stark-curve/fp"
	"github.com/ethereum/go-ethereum/crypto"
)

func element(f starknet.Felt) (e fp.Element) {
	e.SetBytes(f[:])
	return e
}

func felt(e fp.Element) starknet.Felt { return e.Bytes() }

// appendElements appends felts to what is to be hashed.
func appendElements(to []fp.Element, felts []starknet.Felt) []fp.Element {
	for _, f := range felts {
		to = append(to, element(f))
	}
	return to
}

// hashFelts is the Pedersen hash of felts.
func (c *Checker) hashFelts(felts []starknet.Felt) fp.Element {
	return c.pedersen.many(appendElements(nil, felts)...)
}

// transactionLeavesPedersen are the leaves until 0.13.1: a transaction's hash
// with that of its signature. Before 0.11.1 the signatures of Invoke alone
// counted, the others were taken for empty.
func (c *Checker) transactionLeavesPedersen(b *starknet.Block, v version) []fp.Element {
	leaves := make([]fp.Element, len(b.Transactions))
	inParallel(len(leaves), func(i int) {
		t := &b.Transactions[i]
		signature := t.Signature
		if t.Kind != starknet.Invoke && v.before(versionSignatures()) {
			signature = nil
		}
		hash, signed := element(t.Hash), c.hashFelts(signature)
		leaves[i] = c.pedersen.pair(&hash, &signed)
	})
	return leaves
}

// transactionLeavesPoseidon are the leaves since 0.13.2: the hash of a
// transaction's hash and its signature. Until 0.13.3 an empty signature was
// taken for one of a single 0.
func (c *Checker) transactionLeavesPoseidon(b *starknet.Block, v version) []fp.Element {
	leaves := make([]fp.Element, len(b.Transactions))
	inParallel(len(leaves), func(i int) {
		t := &b.Transactions[i]
		elements := appendElements([]fp.Element{element(t.Hash)}, t.Signature)
		if len(t.Signature) == 0 && v.before(versionGasPrices()) {
			elements = append(elements, fp.Element{})
		}
		leaves[i] = c.poseidon.many(elements...)
	})
	return leaves
}

// emitted is an event with the transaction that emitted it.
type emitted struct {
	transaction *starknet.Felt
	*starknet.Event
}

func eventsOf(b *starknet.Block) []emitted {
	events := make([]emitted, 0, b.EventCount())
	for i := range b.Transactions {
		t := &b.Transactions[i]
		for j := range t.Receipt.Events {
			events = append(events, emitted{&t.Hash, &t.Receipt.Events[j]})
		}
	}
	return events
}

// eventLeavesPedersen are the leaves until 0.13.1, which do not tell of which
// transaction an event is.
func (c *Checker) eventLeavesPedersen(b *starknet.Block) []fp.Element {
	events := eventsOf(b)
	leaves := make([]fp.Element, len(events))
	inParallel(len(leaves), func(i int) {
		e := events[i]
		leaves[i] = c.pedersen.many(element(e.From), c.hashFelts(e.Keys), c.hashFelts(e.Data))
	})
	return leaves
}

// eventRootPedersen is the root over them.
func (c *Checker) eventRootPedersen(b *starknet.Block) fp.Element {
	return treeRoot(c.pedersen, c.eventLeavesPedersen(b))
}

// eventLeavesPoseidon are the leaves since 0.13.2.
func (c *Checker) eventLeavesPoseidon(b *starknet.Block) []fp.Element {
	events := eventsOf(b)
	leaves := make([]fp.Element, len(events))
	inParallel(len(leaves), func(i int) {
		e := events[i]
		elements := []fp.Element{element(e.From), element(*e.transaction), fp.NewElement(uint64(len(e.Keys)))}
		elements = appendElements(elements, e.Keys)
		elements = append(elements, fp.NewElement(uint64(len(e.Data))))
		leaves[i] = c.poseidon.many(appendElements(elements, e.Data)...)
	})
	return leaves
}

// receiptLeaves are the leaves since 0.13.2. Among the gas that was used L2 gas
// has a place and is always 0 there.
func (c *Checker) receiptLeaves(b *starknet.Block) []fp.Element {
	leaves := make([]fp.Element, len(b.Transactions))
	inParallel(len(leaves), func(i int) {
		t := &b.Transactions[i]
		r := &t.Receipt
		leaves[i] = c.poseidon.many(
			element(t.Hash), element(r.ActualFee), c.hashMessages(r.Messages), revertReason(r),
			fp.Element{}, fp.NewElement(r.Gas.L1), fp.NewElement(r.Gas.L1Data),
		)
	})
	return leaves
}

// hashMessages is the hash of the messages that a transaction sent to L1.
func (c *Checker) hashMessages(messages []starknet.Message) fp.Element {
	elements := []fp.Element{fp.NewElement(uint64(len(messages)))}
	for _, m := range messages {
		elements = append(elements, element(m.From), element(m.To), fp.NewElement(uint64(len(m.Payload))))
		elements = appendElements(elements, m.Payload)
	}
	return c.poseidon.many(elements...)
}

// revertReason stands for the reason of a failure: the lowest 250 bits of its
// Keccak hash, or 0 where there was none.
func revertReason(r *starknet.Receipt) (e fp.Element) {
	if !r.Reverted {
		return e
	}
	digest := crypto.Keccak256([]byte(r.RevertReason))
	digest[0] &= 0x03
	e.SetBytes(digest)
	return e
}
