package blockhash

import (
	"encoding/binary"

	"ashlar/starknet"

	"github.com/consensys/gnark-crypto/ecc/stark-curve/fp"
)

// chainHash is the rule before 0.7. It includes the chain's ID, but not events, time and
// sequencer.
func (c *Checker) chainHash(b *starknet.Block, transactions fp.Element) starknet.Felt {
	return felt(c.pedersen.many(
		fp.NewElement(b.Number), element(b.NewRoot), fp.Element{}, fp.Element{},
		fp.NewElement(uint64(len(b.Transactions))), transactions,
		fp.Element{}, fp.Element{}, fp.Element{}, fp.Element{},
		element(c.chainID), element(b.Parent),
	))
}

// pedersenHash is the rule from 0.7 to 0.13.1.
func (c *Checker) pedersenHash(b *starknet.Block, sequencer starknet.Felt, transactions, events fp.Element) starknet.Felt {
	return felt(c.pedersen.many(
		fp.NewElement(b.Number), element(b.NewRoot), element(sequencer), fp.NewElement(b.Timestamp),
		fp.NewElement(uint64(len(b.Transactions))), transactions,
		fp.NewElement(uint64(b.EventCount())), events,
		fp.Element{}, fp.Element{}, element(b.Parent),
	))
}

// poseidonHash is the rule since 0.13.2. Since 0.13.4 gas prices, including that of L2 gas, are
// combined in a hash of their own.
func (c *Checker) poseidonHash(b *starknet.Block, v version, transactions, events, receipts fp.Element) starknet.Felt {
	name := "STARKNET_BLOCK_HASH0"
	prices := appendElements(nil, []starknet.Felt{b.L1GasPrice.Wei, b.L1GasPrice.Fri, b.L1DataGasPrice.Wei, b.L1DataGasPrice.Fri})
	if !v.before(versionGasPrices()) {
		name = "STARKNET_BLOCK_HASH1"
		prices = append([]fp.Element{shortString("STARKNET_GAS_PRICES0")}, prices...)
		prices = append(prices, element(b.L2GasPrice.Wei), element(b.L2GasPrice.Fri))
		prices = []fp.Element{c.poseidon.many(prices...)}
	}
	elements := []fp.Element{
		shortString(name), fp.NewElement(b.Number), element(b.NewRoot), element(b.Sequencer), fp.NewElement(b.Timestamp),
		counts(b), element(b.Commitments.StateDiff), transactions, events, receipts,
	}
	elements = append(elements, prices...)
	elements = append(elements, shortString(b.Version), fp.Element{}, element(b.Parent))
	return felt(c.poseidon.many(elements...))
}

// counts packs the numbers of transactions, events and state changes, 64 bits each from the
// highest bit on, followed by one bit for the data mode.
func counts(b *starknet.Block) (e fp.Element) {
	var packed [fp.Bytes]byte
	binary.BigEndian.PutUint64(packed[0:], uint64(len(b.Transactions)))
	binary.BigEndian.PutUint64(packed[8:], uint64(b.EventCount()))
	binary.BigEndian.PutUint64(packed[16:], b.Commitments.StateDiffLength)
	if b.L1DataMode == starknet.Blob {
		packed[24] = 0x80
	}
	e.SetBytes(packed[:])
	return e
}

// shortString returns the number whose big-endian bytes are a text of at most 31 bytes.
func shortString(text string) (e fp.Element) {
	e.SetBytes([]byte(text))
	return e
}
