// Package blockhash recomputes the hashes of Starknet blocks from their contents, so that a
// source cannot add, omit or change events.
//
// A block hash covers the header and commitments to the contents: to the hashes and signatures
// of transactions, to events, and since 0.13.2 to receipts. The rules depend on the version of
// Starknet:
//
//	to 0.6            Pedersen; chain ID instead of events, time and sequencer
//	0.7 to 0.13.1     Pedersen; since 0.11.1 with the signatures of all transactions
//	0.13.2, 0.13.3    Poseidon; with receipts and state diff
//	0.13.4 to 0.14.1  Poseidon; with the price of L2 gas
//
// Two inputs are not verified: a transaction's hash, which stands for its contents, and the
// commitment to the state diff, which is not stored. Anything that a hash does not cover is not
// verified either: events before 0.7; and the status, fee and L1 messages of transactions before
// 0.13.2.
//
// A [Verdict] says that a hash cannot be checked, and why:
//   - since 0.13.2, if the source does not provide the commitment to the state diff, such as nodes
//     before version 0.10 of their API;
//   - if the version is newer than those above and no rule matches;
//   - if a block of a network other than mainnet has no version and no rule matches: some early
//     blocks were hashed with a sequencer address that is no longer available.
package blockhash

import (
	"fmt"

	"ashlar/starknet"

	"github.com/consensys/gnark-crypto/ecc/stark-curve/fp"
)

// Checker recomputes the block hashes of one network. It is safe for concurrent use.
type Checker struct {
	chainID  starknet.Felt
	pedersen *pedersen
	poseidon *poseidon
}

// New returns a Checker for the network with a chain ID, which is part of the hashes of blocks
// before 0.7; 0 if unknown. It takes some milliseconds.
func New(chainID starknet.Felt) *Checker {
	return &Checker{chainID, newPedersen(), newPoseidon()}
}

// Error means that a hash or commitment of a block does not match its contents.
type Error struct {
	Block    *starknet.Header
	What     Part // that is wrong
	Found    starknet.Felt
	Expected starknet.Felt
}

func (e *Error) Error() string {
	return fmt.Sprintf("block %d: its %s is %s, expected %s for its contents", e.Block.Number, e.What, e.Found, e.Expected)
}

// Part is a recomputed part of a header.
type Part string

// The recomputed parts.
const (
	Hash                  Part = "hash"
	TransactionCommitment Part = "transaction commitment"
	EventCommitment       Part = "event commitment"
	ReceiptCommitment     Part = "receipt commitment"
)

// Verdict is the result of a check that did not find an error.
type Verdict uint8

// The verdicts.
const (
	Confirmed   Verdict = iota + 1 // the hash matches the contents
	Incomplete                     // the source does not provide all inputs of the hash
	UnknownRule                    // the hash may follow an unknown rule
)

func (v Verdict) String() string {
	switch v {
	case Confirmed:
		return "confirmed"
	case Incomplete:
		return "not checked: the source does not provide all inputs of the hash"
	case UnknownRule:
		return "not checked: the hash may follow an unknown rule"
	}
	return "unknown verdict"
}

// Check recomputes a block's hash, using all processors. If the hash is wrong, it returns an
// [*Error].
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

// CheckUnsigned is Check for a block without signatures, as in an archive. It uses the
// transaction commitment in the header. That is covered by the hash; since 0.13.2 the
// transactions' hashes are also covered by the receipt commitment, which is recomputed.
//
// Some sources provide no such commitment for blocks until 0.13.1, or one by other rules. Such
// blocks are checked as if they had no signatures; if the hash does not match, the verdict is
// Incomplete.
func (c *Checker) CheckUnsigned(b *starknet.Block) (Verdict, error) {
	v, err := parseVersion(b.Version)
	if err != nil {
		return UnknownRule, nil
	}
	if !v.before(versionPoseidon()) {
		return c.checkPoseidon(b, v, element(b.Commitments.Transactions))
	}
	events := c.eventRootPedersen(b)
	if verdict, err := c.checkDeclared(b, v, events); verdict != Incomplete {
		return verdict, err
	}
	verdict, err := c.checkPedersen(b, v, treeRoot(c.pedersen, c.transactionLeavesPedersen(b, v)), events)
	if err != nil {
		return Incomplete, nil
	}
	return verdict, nil
}

// checkDeclared checks a block until 0.13.1 by the commitments in its header. The verdict is Incomplete
// if these may follow other rules than those of the block's version.
func (c *Checker) checkDeclared(b *starknet.Block, v version, events fp.Element) (Verdict, error) {
	transactions, declared := element(b.Commitments.Transactions), element(b.Commitments.Events)
	if transactions.IsZero() {
		return Incomplete, nil
	}
	verdict, err := c.checkPedersen(b, v, transactions, events)
	switch {
	case v.before(versionInHeader()):
		if err != nil {
			return Incomplete, nil
		}
		return verdict, nil
	case declared == events && (err == nil || !declared.IsZero()): // without events, it is zero by any rule
		return verdict, err
	case err == nil || c.pedersenHash(b, b.Sequencer, transactions, declared) == b.Hash:
		return 0, &Error{&b.Header, EventCommitment, b.Commitments.Events, felt(events)}
	}
	return Incomplete, nil
}

// checkPedersen checks a block by the rules until 0.13.1, given the commitments to its
// transactions and events. It does not compare the commitments in the header: for old blocks
// some nodes and gateways provide those of later rules.
func (c *Checker) checkPedersen(b *starknet.Block, v version, transactions, events fp.Element) (Verdict, error) {
	hash := c.pedersenHash(b, b.Sequencer, transactions, events)
	if hash == b.Hash {
		return Confirmed, nil
	}
	if v.before(versionInHeader()) {
		return c.checkEarly(b, transactions, events, hash)
	}
	return 0, &Error{&b.Header, Hash, b.Hash, hash}
}

// checkEarly checks a block without a version by the other rules of its time.
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

// Exceptions for mainnet's early blocks.
const (
	mainnetID               = "SN_MAIN"
	mainnetFirstOfVersion07 = 833
	// mainnetHiddenSequencer is the address with which blocks of 0.8 were hashed before it was
	// part of their headers.
	mainnetHiddenSequencer = "0x21f4b90b0377c82bf330b7b5295820769e72d79d8acd0effa0ebde6e9988bc5"
)

// checkPoseidon checks a block by the rules since 0.13.2, given the commitment to its
// transactions.
func (c *Checker) checkPoseidon(b *starknet.Block, v version, transactions fp.Element) (Verdict, error) {
	if b.Commitments.StateDiff.IsZero() {
		return Incomplete, nil
	}
	events := treeRoot(c.poseidon, c.eventLeavesPoseidon(b))
	receipts := treeRoot(c.poseidon, c.receiptLeaves(b))
	for _, check := range []struct {
		what            Part
		found, expected starknet.Felt
	}{
		// The hash is last, since a wrong commitment is more specific. Receipts precede events
		// for the same reason: both cover the transactions' hashes, but only events the events.
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
