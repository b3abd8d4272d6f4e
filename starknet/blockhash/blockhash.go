// Package blockhash recomputes the hashes of a Starknet network's blocks from what the
// blocks hold, so that a source is believed no event that its block has not.
//
// A block's hash is made of its header and of three roots over its contents: of
// the transactions' hashes and signatures, of the events, and since 0.13.2 of the
// receipts. How it is made changed with the versions of Starknet:
//
//	to 0.6            Pedersen; the chain's id in place of events, time and sequencer
//	0.7 to 0.13.1     Pedersen; from 0.11.1 on with the signatures of all transactions
//	0.13.2, 0.13.3    Poseidon; with receipts and the state's differences
//	0.13.4 to 0.14.1  Poseidon; with the price of L2 gas
//
// Two things are taken as they are told: the hash of a transaction, which stands
// for its contents, and the commitment to the state's differences, which are not
// kept. What is not in a hash is not checked by it: before 0.7 events, before
// 0.13.2 whether a transaction failed, its fee and its messages to L1.
//
// A hash is not checked, which [Verdict] says,
//   - where the version is 0.13.2 or later and the source does not tell the state
//     differences' commitment, as nodes do not before version 0.10 of their API;
//   - where the version is later than those above and none of the rules fits;
//   - where a block outside of mainnet tells no version and none of the rules
//     fits: some early blocks were hashed with the address of a sequencer that
//     nothing tells any more.
package blockhash

import (
	"fmt"

	"ashlar/starknet"

	"github.com/consensys/gnark-crypto/ecc/stark-curve/fp"
)

// Checker recomputes the hashes of one network's blocks. It may be used by
// several goroutines at a time.
type Checker struct {
	chainID  starknet.Felt
	pedersen *pedersen
	poseidon *poseidon
}

// New makes a Checker for the network with this id, which is in the hashes of
// blocks before 0.7; 0 where it is not known. It takes some milliseconds.
func New(chainID starknet.Felt) *Checker {
	return &Checker{chainID, newPedersen(), newPoseidon()}
}

// Error says that a block is not what its hash stands for.
type Error struct {
	Block    *starknet.Header
	What     Part // is wrong
	Found    starknet.Felt
	Expected starknet.Felt
}

func (e *Error) Error() string {
	return fmt.Sprintf("block %d: its %s is %s, expected %s by what it holds", e.Block.Number, e.What, e.Found, e.Expected)
}

// Part is what can be wrong of a header.
type Part string

// The parts of a header that are recomputed.
const (
	Hash                  Part = "hash"
	TransactionCommitment Part = "transaction commitment"
	EventCommitment       Part = "event commitment"
	ReceiptCommitment     Part = "receipt commitment"
)

// Verdict is what is known of a hash that is not wrong.
type Verdict uint8

// The verdicts.
const (
	Confirmed   Verdict = iota + 1 // it is that of the block's contents
	Untold                         // the source leaves out some of what it is made of
	UnknownRule                    // it may follow a rule that is not known
)

func (v Verdict) String() string {
	switch v {
	case Confirmed:
		return "confirmed"
	case Untold:
		return "not checked: the source leaves out some of what it is made of"
	case UnknownRule:
		return "not checked: it may follow a rule that is not known"
	}
	return "not judged"
}

// Check recomputes a block's hash, on every processor that is free. The error is
// an [*Error] where the hash is wrong.
func (c *Checker) Check(b *starknet.Block) (Verdict, error) {
	v, err := parseVersion(b.Version)
	if err != nil {
		return UnknownRule, nil
	}
	if v.before(versionPoseidon()) {
		return c.checkPedersen(b, v, treeRoot(c.pedersen, c.transactionLeavesPedersen(b, v)), c.eventRootPedersen(b))
	}
	return c.checkPoseidon(b, v, treeRoot(c.poseidon, c.transactionLeavesPoseidon(b, v)))
}

// CheckUnsigned is Check for a block whose transactions have lost their
// signatures, as those of an archive have. The root over the transactions is that
// which the header tells: it is in the hash, and since 0.13.2 the transactions'
// hashes are in the root over the receipts as well, which is recomputed.
//
// Of blocks until 0.13.1 some sources tell no such root, or those of other rules.
// Then they are taken for blocks without signatures, and are Untold where their
// hash is another.
func (c *Checker) CheckUnsigned(b *starknet.Block) (Verdict, error) {
	v, err := parseVersion(b.Version)
	if err != nil {
		return UnknownRule, nil
	}
	if !v.before(versionPoseidon()) {
		return c.checkPoseidon(b, v, element(b.Commitments.Transactions))
	}
	events := c.eventRootPedersen(b)
	if verdict, err := c.checkTold(b, v, events); verdict != Untold {
		return verdict, err
	}
	verdict, err := c.checkPedersen(b, v, treeRoot(c.pedersen, c.transactionLeavesPedersen(b, v)), events)
	if err != nil {
		return Untold, nil
	}
	return verdict, nil
}

// checkTold judges a block until 0.13.1 by the roots that its header tells. It is
// Untold where these need not be by the rules of its time.
func (c *Checker) checkTold(b *starknet.Block, v version, events fp.Element) (Verdict, error) {
	transactions, told := element(b.Commitments.Transactions), element(b.Commitments.Events)
	if transactions.IsZero() {
		return Untold, nil
	}
	verdict, err := c.checkPedersen(b, v, transactions, events)
	switch {
	case v.before(versionTold()):
		if err != nil {
			return Untold, nil
		}
		return verdict, nil
	case told == events && (err == nil || !told.IsZero()): // zero, without events, is the root by any rule
		return verdict, err
	case err == nil || c.pedersenHash(b, b.Sequencer, transactions, told) == b.Hash:
		return 0, &Error{&b.Header, EventCommitment, b.Commitments.Events, felt(events)}
	}
	return Untold, nil
}

// checkPedersen judges a block by the rules until 0.13.1, with those roots over its
// transactions and events. The commitments that are told are not compared: some
// nodes and gateways tell of old blocks those that later rules would have made.
func (c *Checker) checkPedersen(b *starknet.Block, v version, transactions, events fp.Element) (Verdict, error) {
	hash := c.pedersenHash(b, b.Sequencer, transactions, events)
	if hash == b.Hash {
		return Confirmed, nil
	}
	if v.before(versionTold()) {
		return c.checkEarly(b, transactions, events, hash)
	}
	return 0, &Error{&b.Header, Hash, b.Hash, hash}
}

// checkEarly judges a block that tells no version by the other rules that were
// valid in its time.
func (c *Checker) checkEarly(b *starknet.Block, transactions, events fp.Element, hash starknet.Felt) (Verdict, error) {
	mainnet := c.chainID == felt(shortString(mainnetID))
	if !mainnet || b.Number < mainnetFirstOfVersion07 {
		if early := c.chainHash(b, transactions); early == b.Hash {
			return Confirmed, nil
		} else if mainnet {
			hash = early
		}
	}
	if mainnet && b.Sequencer.IsZero() && b.Number >= mainnetFirstOfVersion07 {
		hidden, err := starknet.ParseFelt(mainnetHiddenSequencer)
		if err != nil {
			return 0, err
		}
		if hash = c.pedersenHash(b, hidden, transactions, events); hash == b.Hash {
			return Confirmed, nil
		}
	}
	if !mainnet {
		return UnknownRule, nil
	}
	return 0, &Error{&b.Header, Hash, b.Hash, hash}
}

// What only mainnet's early blocks need.
const (
	mainnetID               = "SN_MAIN"
	mainnetFirstOfVersion07 = 833
	// mainnetHiddenSequencer is the address that blocks of 0.8 were hashed with
	// before they told it.
	mainnetHiddenSequencer = "0x21f4b90b0377c82bf330b7b5295820769e72d79d8acd0effa0ebde6e9988bc5"
)

// checkPoseidon judges a block by the rules since 0.13.2, with that root over its
// transactions.
func (c *Checker) checkPoseidon(b *starknet.Block, v version, transactions fp.Element) (Verdict, error) {
	if b.Commitments.StateDiff.IsZero() {
		return Untold, nil
	}
	events := treeRoot(c.poseidon, c.eventLeavesPoseidon(b))
	receipts := treeRoot(c.poseidon, c.receiptLeaves(b))
	for _, check := range []struct {
		what            Part
		found, expected starknet.Felt
	}{
		// The hash is last: where a commitment is wrong too, that says more. So does
		// that of the receipts beside that of the events: either has the
		// transactions' hashes, the latter alone the events.
		{TransactionCommitment, b.Commitments.Transactions, felt(transactions)},
		{ReceiptCommitment, b.Commitments.Receipts, felt(receipts)},
		{EventCommitment, b.Commitments.Events, felt(events)},
		{Hash, b.Hash, c.poseidonHash(b, v, transactions, events, receipts)},
	} {
		switch {
		case check.found == check.expected:
		case versionNewest().before(v):
			return UnknownRule, nil
		default:
			return 0, &Error{&b.Header, check.what, check.found, check.expected}
		}
	}
	return Confirmed, nil
}
