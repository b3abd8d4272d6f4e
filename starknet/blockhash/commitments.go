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

// appendElements converts felts and appends them to to.
func appendElements(to []fp.Element, felts []starknet.Felt) []fp.Element {
	for _, f := range felts {
		to = append(to, element(f))
	}
	return to
}

// hashFelts returns the Pedersen hash of felts.
func (c *Checker) hashFelts(felts []starknet.Felt) fp.Element {
	return c.pedersen.many(appendElements(nil, felts)...)
}

// transactionLeavesPedersen returns the leaves until 0.13.1: a transaction's hash combined with
// that of its signature. Before 0.11.1, signatures of kinds other than Invoke are treated as
// empty.
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

// transactionLeavesPoseidon returns the leaves since 0.13.2: the hash of a transaction's hash and
// signature. Until 0.13.3, an empty signature is treated as a single 0.
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

// emitted is an event with the hash of its transaction.
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

// eventLeavesPedersen returns the leaves until 0.13.1, which do not include the transaction.
func (c *Checker) eventLeavesPedersen(b *starknet.Block) []fp.Element {
	events := eventsOf(b)
	leaves := make([]fp.Element, len(events))
	inParallel(len(leaves), func(i int) {
		e := events[i]
		leaves[i] = c.pedersen.many(element(e.From), c.hashFelts(e.Keys), c.hashFelts(e.Data))
	})
	return leaves
}

// eventRootPedersen returns the event commitment until 0.13.1.
func (c *Checker) eventRootPedersen(b *starknet.Block) fp.Element {
	return treeRoot(c.pedersen, c.eventLeavesPedersen(b))
}

// eventLeavesPoseidon returns the leaves since 0.13.2.
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

// receiptLeaves returns the leaves since 0.13.2. They include the L2 gas used, but always as 0.
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

// hashMessages returns the hash of the L1 messages of a transaction.
func (c *Checker) hashMessages(messages []starknet.Message) fp.Element {
	elements := []fp.Element{fp.NewElement(uint64(len(messages)))}
	for _, m := range messages {
		elements = append(elements, element(m.From), element(m.To), fp.NewElement(uint64(len(m.Payload))))
		elements = appendElements(elements, m.Payload)
	}
	return c.poseidon.many(elements...)
}

// revertReason returns the lowest 250 bits of the Keccak hash of a revert reason, or 0 if the
// transaction was not reverted.
func revertReason(r *starknet.Receipt) (e fp.Element) {
	if !r.Reverted {
		return e
	}
	digest := crypto.Keccak256([]byte(r.RevertReason))
	digest[0] &= 0x03
	e.SetBytes(digest)
	return e
}
