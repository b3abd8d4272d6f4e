package execute

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/holiman/uint256"
)

// farState is a state of trie nodes in memory each of which takes a millisecond to read, if it is far.
type farState struct {
	evm.State
	nodes map[common.Hash][]byte // by the hash of owner and path
	codes map[common.Hash][]byte
	far   bool
	fail  func(owner common.Hash, path []byte) error // may be nil

	reads, running, most atomic.Int64
}

func newFarState(far bool) *farState {
	return &farState{nodes: make(map[common.Hash][]byte), codes: make(map[common.Hash][]byte), far: far}
}

// Distant implements [evm.Distant].
func (s *farState) Distant() bool { return s.far }

func (s *farState) wait(ctx context.Context) error {
	s.reads.Add(1)
	if !s.far {
		return nil
	}
	running := s.running.Add(1)
	defer s.running.Add(-1)
	for most := s.most.Load(); running > most && !s.most.CompareAndSwap(most, running); most = s.most.Load() {
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Millisecond):
		return nil
	}
}

// Node implements [evm.State].
func (s *farState) Node(ctx context.Context, owner common.Hash, path []byte, hash common.Hash) ([]byte, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	if s.fail != nil {
		if err := s.fail(owner, path); err != nil {
			return nil, err
		}
	}
	blob := s.nodes[crypto.Keccak256Hash(owner[:], path)]
	if crypto.Keccak256Hash(blob) != hash {
		return nil, fmt.Errorf("%w: path %x of %x", evm.ErrMissing, path, owner)
	}
	return blob, nil
}

// Code implements [evm.State].
func (s *farState) Code(ctx context.Context, hash common.Hash) ([]byte, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	return s.codes[hash], nil
}

// add adds a trie.
func (s *farState) add(owner common.Hash, leaves map[common.Hash][]byte) TrieID {
	built := trie.NewStackTrie(func(path []byte, _ common.Hash, blob []byte) {
		s.nodes[crypto.Keccak256Hash(owner[:], path)] = slices.Clone(blob)
	})
	for _, key := range sortedKeys(leaves) {
		if err := built.Update(key[:], leaves[key]); err != nil {
			panic(err)
		}
	}
	return TrieID{Owner: owner, Root: built.Hash()}
}

func sortedKeys(leaves map[common.Hash][]byte) (keys []common.Hash) {
	for key := range leaves {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, common.Hash.Cmp)
	return keys
}

func numbered(i int) common.Hash {
	return crypto.Keccak256Hash(binary.BigEndian.AppendUint32(nil, uint32(i)))
}

// slotLeaves returns leaves as those of a storage trie: short values, some of whose nodes are parts of their parents.
func slotLeaves(count int) map[common.Hash][]byte {
	leaves := make(map[common.Hash][]byte, count)
	for i := range count {
		value, _ := rlp.EncodeToBytes(uint64(i + 1))
		key := numbered(i)
		leaves[key] = value
		if i%10 == 0 { // a neighbor, with a long extension above both
			key[31] ^= 1
			leaves[key] = value
		}
	}
	return leaves
}

// walked returns the keys of a walk from a key on, up to most.
func walked(ctx context.Context, of evm.State, id TrieID, from common.Hash, most int) (keys []common.Hash, err error) {
	err = EachLeaf(ctx, of, id, from, func(key common.Hash, value []byte) (bool, error) {
		keys = append(keys, key)
		return len(keys) < most, nil
	})
	return keys, err
}

// TestEachLeafAhead: a walk whose nodes are read ahead finds the same leaves, from any key on, and waits less.
func TestEachLeafAhead(t *testing.T) {
	for _, count := range []int{1, 2, 40, 3000} {
		near, far := newFarState(false), newFarState(true)
		leaves := slotLeaves(count)
		keys := sortedKeys(leaves)
		owner := common.Hash{7}
		id := near.add(owner, leaves)
		far.add(owner, leaves)
		froms := []common.Hash{{}, keys[0], keys[len(keys)/2], keys[len(keys)-1], {0: 0x50}, {0: 0x57, 1: 0x80}}
		for i := range byte(16) {
			froms = append(froms, common.Hash{i<<4 | 0xf, 0xff})
		}
		for _, from := range froms {
			synctest.Test(t, func(t *testing.T) {
				near.reads.Store(0)
				far.reads.Store(0)
				want, err := walked(t.Context(), near, id, from, 1<<20)
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				got, err := walked(t.Context(), far, id, from, 1<<20)
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%d leaves from %x: %d leaves, %v, expected %d", count, from[:2], len(got), err, len(want))
				}
				if first, _ := slices.BinarySearchFunc(keys, from, common.Hash.Cmp); len(want) != len(keys)-first {
					t.Errorf("%d leaves from %x: %d, expected %d", count, from[:2], len(want), len(keys)-first)
				}
				waits := int(time.Since(began).Milliseconds())
				if far.reads.Load() > near.reads.Load() {
					t.Errorf("%d leaves from %x: %d reads, expected %d at most", count, from[:2], far.reads.Load(), near.reads.Load())
				}
				if bound := 14 + len(want)/20; waits > bound {
					t.Errorf("%d leaves from %x: %d waits for %d reads, expected %d at most", count, from[:2], waits, far.reads.Load(), bound)
				}
				if from == (common.Hash{}) {
					t.Logf("%d leaves: %d reads, %d waits, at most %d reads under way", len(keys), far.reads.Load(), waits, far.most.Load())
				}
			})
		}
		if far.most.Load() > aheadReads {
			t.Errorf("%d reads were under way, expected %d at most", far.most.Load(), aheadReads)
		}
	}
}

// TestEachLeafAheadEndsEarly: a walk that ends early has read of each level at most twice what it needed, and the first
// ones.
func TestEachLeafAheadEndsEarly(t *testing.T) {
	near, far := newFarState(false), newFarState(true)
	leaves := slotLeaves(20_000)
	id := near.add(common.Hash{7}, leaves)
	far.add(common.Hash{7}, leaves)
	for _, most := range []int{1, 12, 100, 1000} {
		synctest.Test(t, func(t *testing.T) {
			near.reads.Store(0)
			far.reads.Store(0)
			want, err := walked(t.Context(), near, id, common.Hash{}, most)
			if err != nil || len(want) != most {
				t.Fatal(len(want), err)
			}
			began := time.Now()
			got, err := walked(t.Context(), far, id, common.Hash{}, most)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%d leaves, %v, expected %d", len(got), err, most)
			}
			const levels = 6
			needed, reads := near.reads.Load(), far.reads.Load()
			if bound := needed + min(needed, levels*aheadMost) + levels*aheadFirst; reads > bound {
				t.Errorf("%d leaves: %d reads, expected %d at most, as %d are needed", most, reads, bound, needed)
			}
			t.Logf("%d leaves: %d reads of which %d are needed, %d waits", most, reads, needed, time.Since(began).Milliseconds())
			if running := far.running.Load(); running != 0 {
				t.Errorf("%d reads are under way after the end", running)
			}
		})
	}
}

// TestEachLeafAheadFails: a walk ends with the error of the first node that it needs and cannot have, after the same
// leaves, and does not notice a node behind its end.
func TestEachLeafAheadFails(t *testing.T) {
	near, far := newFarState(false), newFarState(true)
	leaves := slotLeaves(1000)
	id := near.add(common.Hash{7}, leaves)
	far.add(common.Hash{7}, leaves)
	failed := errors.New("the store is away")
	for _, at := range []string{"", "\x00", "\x01", "\x08", "\x08\x03", "\x0f\x0f"} {
		near.fail = func(_ common.Hash, path []byte) error {
			if string(path) == at {
				return fmt.Errorf("path %x: %w", path, failed)
			}
			return nil
		}
		far.fail = near.fail
		synctest.Test(t, func(t *testing.T) {
			want, expected := walked(t.Context(), near, id, common.Hash{}, 1<<20)
			got, err := walked(t.Context(), far, id, common.Hash{}, 1<<20)
			if !errors.Is(err, failed) || err.Error() != expected.Error() || !slices.Equal(got, want) {
				t.Errorf("path %x: %d leaves, %v, expected %d, %v", at, len(got), err, len(want), expected)
			}
			if len(want) == 0 {
				return
			}
			if got, err := walked(t.Context(), far, id, common.Hash{}, len(want)); err != nil || !slices.Equal(got, want) {
				t.Errorf("path %x: %d leaves, %v, expected %d", at, len(got), err, len(want))
			}
		})
	}
}

// TestEachLeafAheadCanceled: after a walk that was canceled no read is under way.
func TestEachLeafAheadCanceled(t *testing.T) {
	far := newFarState(true)
	id := far.add(common.Hash{7}, slotLeaves(3000))
	for after := range 30 {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(after)*time.Millisecond+500*time.Microsecond)
			defer cancel()
			if _, err := walked(ctx, far, id, common.Hash{}, 1<<20); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("after %d ms: %v", after, err)
			}
			if running := far.running.Load(); running != 0 {
				t.Errorf("after %d ms: %d reads are under way after the end", after, running)
			}
		})
	}
}

// addAccounts adds accounts with few slots each, some with many, and returns the trie of accounts.
func addAccounts(s *farState, count int) TrieID {
	accounts := make(map[common.Hash][]byte)
	for i := range count {
		account := types.StateAccount{Nonce: uint64(i), Balance: new(uint256.Int), Root: types.EmptyRootHash, CodeHash: types.EmptyCodeHash[:]}
		key := numbered(i)
		if i%3 != 0 {
			code := []byte{1, byte(i % 100)}
			slots := slotLeaves(i % 7)
			if i == 100 {
				slots = slotLeaves(2000)
			}
			account.CodeHash = crypto.Keccak256(code)
			account.Root = s.add(key, slots).Root
			s.codes[common.BytesToHash(account.CodeHash)] = code
		}
		accounts[key], _ = rlp.EncodeToBytes(&account)
	}
	return s.add(common.Hash{}, accounts)
}

// walkedWhole lists the accounts with their slots, and codes but for those that it has listed before.
func walkedWhole(ctx context.Context, state evm.State, id TrieID, of Contents) (lines []string, err error) {
	state, end := ReadAhead(ctx, state, of)
	defer end()
	known := make(map[string]bool)
	err = EachLeaf(ctx, state, id, common.Hash{}, func(key common.Hash, value []byte) (bool, error) {
		lines = append(lines, fmt.Sprintf("%x %x", key, value))
		account := new(types.StateAccount)
		if err := rlp.DecodeBytes(value, account); err != nil {
			return false, err
		}
		if code := string(account.CodeHash); !known[code] {
			known[code] = true
			code, err := state.Code(ctx, common.BytesToHash(account.CodeHash))
			if err != nil {
				return false, err
			}
			lines = append(lines, fmt.Sprintf("%x code %x", key, code))
		}
		return true, EachLeaf(ctx, state, TrieID{Owner: key, Root: account.Root}, common.Hash{}, func(slot common.Hash, value []byte) (bool, error) {
			lines = append(lines, fmt.Sprintf("%x slot %x %x", key, slot, value))
			return true, nil
		})
	})
	return lines, err
}

// TestReadAheadOfContents: a walk over accounts with their storage and codes finds the same, and waits less.
func TestReadAheadOfContents(t *testing.T) {
	const count = 1000
	near, far := newFarState(false), newFarState(true)
	id := addAccounts(near, count)
	addAccounts(far, count)
	near.reads.Store(0)
	want, err := walkedWhole(t.Context(), near, id, Contents{})
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []Contents{{}, {Storage: true}, {Storage: true, Code: true}} {
		synctest.Test(t, func(t *testing.T) {
			far.reads.Store(0)
			began := time.Now()
			got, err := walkedWhole(t.Context(), far, id, of)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%d lines, %v, expected %d", len(got), err, len(want))
			}
			reads, waits := far.reads.Load(), time.Since(began).Milliseconds()
			t.Logf("%+v: %d reads of which %d are needed, %d waits", of, reads, near.reads.Load(), waits)
			if of.Storage && of.Code && waits > near.reads.Load()/20 {
				t.Errorf("%d waits, expected %d at most", waits, near.reads.Load()/20)
			}
		})
	}
}

// TestReadAheadOfManySlots: accounts whose storage tries have more nodes in a level than are read ahead. The nodes of
// accounts behind the present one, which may be found first, leave room for its own.
func TestReadAheadOfManySlots(t *testing.T) {
	far := newFarState(true)
	accounts, slots := make(map[common.Hash][]byte), slotLeaves(100)
	for i := range 400 {
		key := numbered(i)
		account := types.StateAccount{Balance: new(uint256.Int), Root: types.EmptyRootHash, CodeHash: types.EmptyCodeHash[:]}
		if i%2 == 0 {
			account.Root = far.add(key, slots).Root
		}
		accounts[key], _ = rlp.EncodeToBytes(&account)
	}
	id := far.add(common.Hash{}, accounts)
	for range 3 { // which of the reads that end together is seen first differs
		synctest.Test(t, func(t *testing.T) {
			far.reads.Store(0)
			began := time.Now()
			lines, err := walkedWhole(t.Context(), far, id, Contents{Storage: true})
			if want := len(accounts) + 1 + len(accounts)/2*len(slots); err != nil || len(lines) != want {
				t.Errorf("%d lines, %v, expected %d", len(lines), err, want)
			}
			reads, waits := far.reads.Load(), time.Since(began).Milliseconds()
			t.Logf("%d reads, %d waits", reads, waits)
			if waits > reads/40 {
				t.Errorf("%d waits for %d reads, expected %d at most", waits, reads, reads/40)
			}
		})
	}
}

// failingCodes is a state that has each code once.
type failingCodes struct {
	*farState
	mu   sync.Mutex
	read map[common.Hash]bool // guarded by mu
}

// Code implements [evm.State].
func (s *failingCodes) Code(ctx context.Context, hash common.Hash) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read[hash] {
		return nil, errors.New("the store is away")
	}
	s.read[hash] = true
	return s.codes[hash], nil
}

// TestReadAheadOfFailingCodes: a walk needs a code that several accounts have only once. That it could not be read again
// neither ends the walk nor what is read ahead.
func TestReadAheadOfFailingCodes(t *testing.T) {
	far := newFarState(true)
	id := addAccounts(far, 1000)
	want, err := walkedWhole(t.Context(), &farState{nodes: far.nodes, codes: far.codes}, id, Contents{})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		far.reads.Store(0)
		began := time.Now()
		got, err := walkedWhole(t.Context(), &failingCodes{farState: far, read: make(map[common.Hash]bool)}, id, Contents{Storage: true, Code: true})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%d lines, %v, expected %d", len(got), err, len(want))
		}
		reads, waits := far.reads.Load(), time.Since(began).Milliseconds()
		t.Logf("%d reads, %d waits", reads, waits)
		if waits > reads/20 {
			t.Errorf("%d waits for %d reads, expected %d at most", waits, reads, reads/20)
		}
	})
}

// BenchmarkEachLeaf is a walk over a state whose reads take no time.
func BenchmarkEachLeaf(b *testing.B) {
	near := newFarState(false)
	id := near.add(common.Hash{7}, slotLeaves(20_000))
	for _, most := range []int{12, 1 << 20} {
		b.Run(fmt.Sprint(most), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := walked(b.Context(), near, id, common.Hash{}, most); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
