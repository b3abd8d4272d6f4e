package era

import (
	"bytes"
	"encoding/binary"
	"testing"

	"ashlar/evm/era/eratest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/holiman/uint256"
)

func newHasher() types.ListHasher { return trie.NewListHasher() }

// The entries of a file in the order of the specification's index.
var beforeMerge = []kind{kindHeader, kindBody, kindSlimReceipts, kindTotalDifficulty}

func TestERE(t *testing.T) {
	for _, test := range []struct {
		name        string
		first       uint64
		count, pre  int
		totals      int
		accumulator int
	}{
		{"before the merge", 0, 5, 5, 5, 1},
		{"across the merge", MaxBlocks, 5, 2, 5, 1},
		{"after the merge", 2 * MaxBlocks, 5, 0, 0, 0},
		{"one block", 0, 1, 1, 1, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			chain := eratest.New(t, test.first, test.count, test.pre)
			data := encode(t, ERE, chain)
			got, err := readAll(data)
			if err != nil {
				t.Fatal(err)
			}
			sameBlocks(t, got, chain.Blocks)
			entries, _, err := newE2store(bytes.NewReader(data), int64(len(data))).entries()
			if err != nil {
				t.Fatal(err)
			}
			counts := make(map[kind]int)
			for _, e := range entries {
				counts[e.kind]++
			}
			if counts[kindTotalDifficulty] != test.totals || counts[kindAccumulator] != test.accumulator {
				t.Errorf("the file has %d total difficulties and %d accumulators, want %d and %d",
					counts[kindTotalDifficulty], counts[kindAccumulator], test.totals, test.accumulator)
			}
			found, err := Peek(bytes.NewReader(data), int64(len(data)))
			if want := (Range{test.first, test.first + uint64(test.count) - 1}); err != nil || found != want {
				t.Errorf("the file holds the blocks %+v, %v, want %+v", found, err, want)
			}
		})
	}
}

// sections writes the entries of all blocks, kind after kind.
func (a *archive) sections(kinds ...kind) {
	for _, k := range kinds {
		for i, b := range a.chain.Blocks {
			switch k {
			case kindHeader:
				a.zipped(k, b.Header())
			case kindBody:
				a.zipped(k, b.Body())
			case kindSlimReceipts:
				slim := make([]*types.SlimReceipt, len(a.chain.Results[i]))
				for j, r := range a.chain.Results[i] {
					slim[j] = (*types.SlimReceipt)(r)
				}
				a.zipped(k, slim)
			case kindTotalDifficulty:
				a.record(b)
				a.totalEntry()
			}
		}
	}
}

// endERE writes the accumulator and the index.
func (a *archive) endERE(kinds ...kind) []byte {
	root := a.records.root()
	a.entry(kindAccumulator, root[:])
	return a.index(kindDynamicIndex, kinds...)
}

// TestEREProfiles reads files without parts that a file may lack, and with entries
// in another order.
func TestEREProfiles(t *testing.T) {
	chain := eratest.New(t, 0, 3, 3)
	for name, build := range map[string]func(a *archive) []byte{
		"no receipts": func(a *archive) []byte {
			a.sections(kindHeader, kindBody, kindTotalDifficulty)
			return a.endERE(kindHeader, kindBody, kindTotalDifficulty)
		},
		"no totals and no accumulator": func(a *archive) []byte {
			a.sections(kindHeader, kindBody, kindSlimReceipts)
			return a.index(kindDynamicIndex, kindHeader, kindBody, kindSlimReceipts)
		},
		"no accumulator": func(a *archive) []byte {
			a.sections(beforeMerge...)
			return a.index(kindDynamicIndex, beforeMerge...)
		},
		"another order": func(a *archive) []byte {
			a.sections(kindTotalDifficulty, kindBody, kindHeader, kindSlimReceipts)
			return a.endERE(kindSlimReceipts, kindHeader, kindTotalDifficulty, kindBody)
		},
		"other entries": func(a *archive) []byte {
			a.sections(beforeMerge...)
			a.entry(0x0bad, []byte("unknown to this reader"))
			return a.endERE(beforeMerge...)
		},
		"proofs": func(a *archive) []byte { return a.withProofs(0, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readAll(build(newArchive(t, chain)))
			if err != nil {
				t.Fatal(err)
			}
			sameBlocks(t, got, chain.Blocks)
		})
	}
}

// withProofs writes a file with the proofs that its blocks are in the accumulator, of
// which change may change one.
func (a *archive) withProofs(proofType uint64, change func(proof []byte)) []byte {
	a.sections(kindHeader, kindBody, kindSlimReceipts)
	for _, b := range a.chain.Blocks {
		a.record(b)
	}
	var length [32]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(a.chain.Blocks)))
	for i := range a.chain.Blocks {
		// The tree by its definition: all of its leaves, level by level.
		level := make([][32]byte, MaxBlocks)
		copy(level, a.records.leaves)
		total := littleEndian(uint256.MustFromBig(a.chain.Totals[i]))
		proof := total[:]
		for place := i; len(level) > 1; place /= 2 {
			sibling := level[place^1]
			proof = append(proof, sibling[:]...)
			above := make([][32]byte, len(level)/2)
			for j := range above {
				above[j] = hashPair(level[2*j], level[2*j+1])
			}
			level = above
		}
		proof = append(proof, length[:]...)
		if change != nil && i == len(a.chain.Blocks)-1 {
			change(proof)
		}
		a.zipped(kindProof, struct {
			Type uint64
			Data []byte
		}{proofType, proof})
	}
	for _, total := range a.chain.Totals {
		word := littleEndian(uint256.MustFromBig(total))
		a.entry(kindTotalDifficulty, word[:])
	}
	return a.endERE(append(beforeMerge, kindProof)...)
}

// TestEREUnchecked counts the proofs of blocks after the merge.
func TestEREUnchecked(t *testing.T) {
	chain := eratest.New(t, MaxBlocks, 3, 0)
	a := newArchive(t, chain)
	a.sections(kindHeader, kindBody, kindSlimReceipts)
	for range chain.Blocks {
		a.zipped(kindProof, struct {
			Type uint64
			Data []byte
		}{3, []byte("a proof against the beacon chain")})
	}
	data := a.index(kindDynamicIndex, kindHeader, kindBody, kindSlimReceipts, kindProof)
	r, err := Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if r.Unchecked() != 3 || r.Len() != 3 || r.format != ERE || !r.HasReceipts() || r.ID() != chain.Blocks[2].Hash() {
		t.Errorf("the file has %d unchecked proofs, %d blocks, the format %d, receipts: %t, the ID %s", r.Unchecked(), r.Len(), r.format, r.HasReceipts(), r.ID())
	}
}

func TestERERefused(t *testing.T) {
	whole := func(change func(a *archive)) func(a *archive) []byte {
		return func(a *archive) []byte {
			a.sections(beforeMerge...)
			change(a)
			return a.endERE(beforeMerge...)
		}
	}
	testRefused(t, eratest.New(t, MaxBlocks, 3, 3), 0, []refused{
		{"no blocks", "the file has no blocks", func(a *archive) []byte { return a.endERE() }},
		{"a body less", "3 headers and 2 bodies", func(a *archive) []byte {
			a.sections(kindHeader)
			a.zipped(kindBody, a.chain.Blocks[0].Body())
			a.zipped(kindBody, a.chain.Blocks[1].Body())
			a.places[kindBody] = append(a.places[kindBody], 0)
			return a.endERE(kindHeader, kindBody)
		}},
		{"receipts of one block", "3 headers and 1 times the CompressedSlimReceipts", func(a *archive) []byte {
			a.sections(kindHeader, kindBody)
			a.zipped(kindSlimReceipts, []*types.SlimReceipt{})
			return a.index(kindDynamicIndex, kindHeader, kindBody)
		}},
		{"receipts of era1", "found the CompressedReceipts", whole(func(a *archive) { a.zipped(kindReceipts, []*types.Receipt{}) })},
		{"a second version", "found the Version", whole(func(a *archive) { a.entry(kindVersion, nil) })},
		{"two accumulators", "is followed by the Accumulator", whole(func(a *archive) { a.entry(kindAccumulator, make([]byte, 32)) })},
		{"wrong accumulator", "the accumulator is", whole(func(a *archive) { a.records.leaves[1][0] ^= 1 })},
		{"an accumulator without totals", "want none in a file without total difficulties", func(a *archive) []byte {
			a.sections(kindHeader, kindBody)
			return a.endERE(kindHeader, kindBody)
		}},
		{"wrong total", "the headers add up to", func(a *archive) []byte {
			a.sections(kindHeader, kindBody)
			a.record(a.chain.Blocks[0])
			a.totalEntry()
			a.totalEntry()
			a.totalEntry()
			return a.endERE(kindHeader, kindBody, kindTotalDifficulty)
		}},
		{"another number in the index", "begins with block 8193", whole(func(a *archive) { a.first++ })},
		{"another place of a body", "the block index has the CompressedBody entry (type 0x4) of block 8194 at", whole(func(a *archive) { a.places[kindBody][2]-- })},
		{"another place of the first body", "no entry of that block is there", whole(func(a *archive) { a.places[kindBody][0]-- })},
		{"a kind twice", "no entry of that block is there", func(a *archive) []byte {
			a.sections(beforeMerge...)
			return a.endERE(kindHeader, kindBody, kindBody, kindTotalDifficulty)
		}},
		{"a kind left out", "want 120 for 3 blocks with 4 entries each", func(a *archive) []byte {
			a.sections(beforeMerge...)
			return a.endERE(kindHeader, kindBody, kindTotalDifficulty)
		}},
		{"another count of kinds", "says 5 entries for each block", func(a *archive) []byte {
			a.sections(beforeMerge...)
			data := a.endERE(beforeMerge...)
			binary.LittleEndian.PutUint64(data[len(data)-16:], 5)
			return data
		}},
		{"another count of blocks", "counts 4 blocks", func(a *archive) []byte {
			a.sections(beforeMerge...)
			data := a.endERE(beforeMerge...)
			binary.LittleEndian.PutUint64(data[len(data)-8:], 4)
			return data
		}},
		{"a proof with another sibling", "block 8194: the proof leads to", func(a *archive) []byte {
			return a.withProofs(0, func(proof []byte) { proof[3*common.HashLength] ^= 1 })
		}},
		{"a proof of after the merge", "block 8192: the proof has the type 1", func(a *archive) []byte { return a.withProofs(1, nil) }},
		{"a proof of an unknown type", "block 8192: the proof has the type 9", func(a *archive) []byte { return a.withProofs(9, nil) }},
		{"a proof that is none", "block 8192: not a proof", func(a *archive) []byte {
			a.sections(beforeMerge...)
			for range a.chain.Blocks {
				a.zipped(kindProof, "a proof")
			}
			return a.endERE(append(beforeMerge, kindProof)...)
		}},
	})
}

// TestEREBlockRefused has a file whose headers are right, and receipts that are not.
func TestEREBlockRefused(t *testing.T) {
	testRefused(t, eratest.New(t, 0, 3, 1), 2, []refused{
		{"a wrong receipt", "block 2: the receipts have the root", func(a *archive) []byte {
			last := *a.chain.Results[2][1]
			last.Logs = []*types.Log{{Data: []byte("not what happened")}}
			a.chain.Results[2] = types.Receipts{a.chain.Results[2][0], &last}
			a.sections(kindHeader, kindBody, kindSlimReceipts)
			return a.index(kindDynamicIndex, kindHeader, kindBody, kindSlimReceipts)
		}},
	})
	testRefused(t, eratest.New(t, 0, 3, 1), 2, []refused{
		{"a withdrawal left out", "block 2: the withdrawals have the root", func(a *archive) []byte {
			body := *a.chain.Blocks[2].Body()
			body.Withdrawals = types.Withdrawals{}
			a.chain.Blocks[2] = types.NewBlockWithHeader(a.chain.Blocks[2].Header()).WithBody(body)
			a.sections(kindHeader, kindBody, kindSlimReceipts)
			return a.index(kindDynamicIndex, kindHeader, kindBody, kindSlimReceipts)
		}},
	})
	testRefused(t, eratest.New(t, 0, 3, 1), 0, []refused{
		{"work after the merge", "want none after the merge", func(a *archive) []byte {
			h := a.chain.Blocks[2].Header()
			h.Difficulty.SetInt64(1)
			a.chain.Blocks[2] = types.NewBlockWithHeader(h)
			a.sections(kindHeader, kindBody)
			return a.index(kindDynamicIndex, kindHeader, kindBody)
		}},
	})
}
