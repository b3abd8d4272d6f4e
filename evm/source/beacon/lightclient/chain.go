package lightclient

import (
	"cmp"
	"crypto/sha256"
	"math"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Chain is what a light client must know of a beacon chain besides its headers.
//
// Only the root of the genesis validators and the forks' versions reach a signature: they are
// hashed with what a committee signs. A wrong one makes signatures fail.
// A fork's name and epoch say where in a state or a block the proven values are; at a wrong place
// are hashes of something else, or of nothing: see unusedLeaves. GenesisTime and SlotTime say which slots are in the future.
type Chain struct {
	GenesisTime           uint64 // Unix seconds
	GenesisValidatorsRoot common.Hash
	SlotTime              time.Duration
	SlotsPerEpoch         uint64
	Forks                 []Fork // by epoch, in ascending order; of several in one epoch the last counts
}

// Fork is an upgrade of a beacon chain.
type Fork struct {
	Name    string // in lower case, as beacon APIs name it
	Epoch   uint64
	Version [4]byte
}

// rank is the order of the forks whose light client data this package knows.
var rank = map[string]int{"phase0": 0, "altair": 1, "bellatrix": 2, "capella": 3, "deneb": 4, "electra": 5, "fulu": 6, "gloas": 7}

// Ranks of forks that change light client data.
const (
	capella = 3 // the header of the execution block is proven
	deneb   = 4 // it has two more fields
	electra = 5 // a state has more than 32 fields
	gloas   = 7 // states and bodies have another shape, and a body has no execution block of its own
)

// KnowsFork reports whether this package knows the light client data of a fork.
func KnowsFork(name string) bool { return rank[name] > 0 || name == "phase0" }

// CompareForks orders forks of one epoch: later ones follow, and those that are not known are last.
func CompareForks(a, b string) int {
	at := func(name string) int {
		if !KnowsFork(name) {
			return math.MaxInt
		}
		return rank[name]
	}
	return cmp.Or(cmp.Compare(at(a), at(b)), cmp.Compare(a, b))
}

// SlotAt returns the slot of a time, 0 before the genesis.
func (c *Chain) SlotAt(now time.Time) uint64 {
	since := now.Sub(time.Unix(int64(c.GenesisTime), 0))
	if since <= 0 || c.SlotTime <= 0 {
		return 0
	}
	return uint64(since / c.SlotTime)
}

// TimeOf returns when a slot begins.
func (c *Chain) TimeOf(slot uint64) time.Time {
	return time.Unix(int64(c.GenesisTime), 0).Add(time.Duration(slot) * c.SlotTime)
}

// forkAt returns the fork of a slot, which is unnamed if the chain has none there.
func (c *Chain) forkAt(slot uint64) (at Fork) {
	for _, fork := range c.Forks {
		if fork.Epoch > slot/c.SlotsPerEpoch {
			break
		}
		at = fork
	}
	return at
}

// domain is what a sync committee's signature in a slot is hashed with. It signs the slot
// before, whose fork counts.
func (c *Chain) domain(signatureSlot uint64) [32]byte {
	const domainSyncCommittee = 7
	version := c.forkAt(max(signatureSlot, 1) - 1).Version
	var leaf [32]byte
	copy(leaf[:], version[:])
	data := hashPair(leaf, c.GenesisValidatorsRoot)
	domain := [32]byte{domainSyncCommittee}
	copy(domain[4:], data[:28])
	return domain
}

// signingRoot is what a sync committee signs for a block.
func (c *Chain) signingRoot(block common.Hash, signatureSlot uint64) [32]byte {
	return hashPair(block, c.domain(signatureSlot))
}

func hashPair(left, right [32]byte) [32]byte {
	return sha256.Sum256(append(left[:], right[:]...))
}

// period is a size of a sync committee with its time in office, one of the two that consensus
// clients know. The size is proven by the committee's root, so the time in office is too.
type period struct {
	size  int
	slots uint64
}

// periods are those of the presets mainnet, which most networks have, and minimal, for tests.
func periods() []period { return []period{{512, 8192}, {32, 64}} }
