package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"ashlar/evm/archive"
	"ashlar/history/audit"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
	"golang.org/x/sync/errgroup"
)

// The states of blocks without trie nodes are checked by building their tries again from accounts and slots: a trie
// whose leaves come in order needs memory for one path only. The tables are walked side by side, and each state has
// a goroutine that takes the rows that are visible to it:
//
//	accounts   A         B              D
//	slots          A1 A2     C1             D1
//	order      A   A1 A2 B   C1         D   D1
//
// That costs a hash for each leaf of each state, so only a few states are checked at once.
const (
	rebuiltSample = 4  // states of a sample
	rebuiltMost   = 16 // with Options.Full
)

// errUnordered means that the store's walks do not yield partitions in ascending order.
var errUnordered = errors.New("verify: the rows of the store are not in order")

// checkRebuilt compares states whose trie nodes are not stored with the state roots in the headers. A store whose rows
// are not in order cannot be checked so: then no state counts as built again.
func (c *checker) checkRebuilt(ctx context.Context) error {
	if len(c.rebuilt) == 0 {
		return nil
	}
	states := make([]*rebuilding, len(c.rebuilt))
	for i, block := range c.rebuilt {
		states[i] = &rebuilding{checker: c, block: block, accounts: trie.NewStackTrie(nil), slots: trie.NewStackTrie(nil)}
	}
	err := c.feed(ctx, states)
	if errors.Is(err, errUnordered) {
		c.rebuilt = nil
		return nil
	}
	for _, state := range states {
		if err == nil {
			err = state.end(ctx)
		}
	}
	return err
}

// feed passes all versions of accounts and slots to each state.
func (c *checker) feed(ctx context.Context, states []*rebuilding) error {
	group, ctx := errgroup.WithContext(ctx)
	queues := make([]chan *versionBatch, len(states))
	for i, state := range states {
		queue := make(chan *versionBatch, 2)
		queues[i] = queue
		group.Go(func() error {
			for batch := range queue {
				for _, v := range batch.versions {
					if err := state.take(v); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	group.Go(func() error {
		defer func() {
			for _, queue := range queues {
				close(queue)
			}
		}()
		batch := new(versionBatch)
		send := func() error {
			for _, queue := range queues {
				select {
				case queue <- batch:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			batch = new(versionBatch)
			return nil
		}
		for v, err := range c.inOrder(ctx) {
			if err != nil {
				return err
			}
			if batch.add(v) {
				continue
			}
			if err := send(); err != nil {
				return err
			}
			batch.add(v)
		}
		return send()
	})
	return group.Wait()
}

// inOrder yields the versions of accounts and slots ordered by the hash of the address: those of an account before
// those of its slots. It yields errUnordered if the store has another order.
func (c *checker) inOrder(ctx context.Context) iter.Seq2[version, error] {
	return func(yield func(version, error) bool) {
		next, stop := iter.Pull2(ordered(c.WalkAgain(ctx, c.tables.Slots)))
		defer stop()
		slot, err, more := next()
		// slotsUpTo yields the slots of owners before one.
		slotsUpTo := func(owner []byte) bool {
			for ; more && (err != nil || owner == nil || bytes.Compare(slot.partition[:common.HashLength], owner) < 0); slot, err, more = next() {
				if !yield(slot, err) {
					return false
				}
			}
			return true
		}
		for account, err := range ordered(c.WalkAgain(ctx, c.tables.Accounts)) {
			if err != nil {
				yield(account, err)
				return
			}
			if !slotsUpTo(account.partition) || !yield(account, nil) {
				return
			}
		}
		slotsUpTo(nil)
	}
}

// errStopped ends a walk whose caller needs no more.
var errStopped = errors.New("stopped")

// ordered yields the versions of a walk, or errUnordered where a partition is below the one before.
func ordered(walk rowSeq) iter.Seq2[version, error] {
	return func(yield func(version, error) bool) {
		var last []byte
		err := stepVersions(walk, func(v version) error {
			if bytes.Compare(v.partition, last) < 0 {
				return errUnordered
			}
			last = append(last[:0], v.partition...)
			if !yield(v, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && err != errStopped {
			yield(version{}, err)
		}
	}
}

// rebuilding is a state whose tries are built again. It belongs to one goroutine.
type rebuilding struct {
	*checker
	block           uint64
	accounts, slots *trie.StackTrie

	begun   bool
	owner   common.Hash         // whose slots come now
	account *types.StateAccount // of owner; nil: none

	wrong *audit.Finding // about the first account that does not have the root of its slots
	roots [2]common.Hash // of that account: of its row, and of its slots
}

// take takes the next version.
func (r *rebuilding) take(v version) error {
	if v.from > r.block || v.until <= r.block || len(v.value) == 0 {
		return nil
	}
	owner := common.Hash(v.partition[:common.HashLength])
	if !r.begun || owner != r.owner {
		if err := r.finish(); err != nil {
			return err
		}
		r.begun, r.owner, r.account = true, owner, nil
	}
	if len(v.partition) == common.HashLength {
		account, err := archive.DecodeAccount(v.value)
		r.account = account
		return err
	}
	value, err := rlp.EncodeToBytes(v.value)
	if err != nil {
		return err
	}
	return r.slots.Update(v.partition[common.HashLength:], value)
}

// finish compares the root of the slots with the account's, and adds the account to the trie of accounts.
func (r *rebuilding) finish() error {
	if !r.begun {
		return nil
	}
	root, named := r.slots.Hash(), types.EmptyRootHash
	r.slots.Reset()
	if r.account != nil {
		named = r.account.Root
	}
	if root != named && r.wrong == nil {
		r.wrong = r.Finding(r.tables.Accounts, r.owner[:], r.block, "", "")
		r.roots = [2]common.Hash{named, root}
	}
	if r.account == nil {
		return nil
	}
	value, err := rlp.EncodeToBytes(r.account)
	if err != nil {
		return err
	}
	return r.accounts.Update(r.owner[:], value)
}

// end returns a finding if the tries do not have the state root of the block. The row is not known without trie nodes:
// the finding is about an account, or about all.
func (r *rebuilding) end(ctx context.Context) error {
	if err := r.finish(); err != nil {
		return err
	}
	header, err := r.header(ctx, r.block)
	if err != nil {
		return err
	}
	root := r.accounts.Hash()
	switch f := r.wrong; {
	case f == nil && root == header.Root:
		return nil
	case f == nil:
		return &audit.Finding{
			Table: r.tables.Accounts.Name, Key: "all accounts as of this block", Block: r.block,
			Expected: fmt.Sprintf("accounts with the state root %#x", header.Root), Got: fmt.Sprintf("accounts with %#x", root),
		}
	case root == header.Root: // so all accounts are right
		f.Table, f.Key = r.tables.Slots.Name, "the slots, as of this block, of "+f.Key
		f.Expected, f.Got = fmt.Sprintf("slots with the root %#x", r.roots[0]), fmt.Sprintf("slots with %#x", r.roots[1])
	default:
		f.Expected, f.Got = fmt.Sprintf("an account with the root of its slots, %#x", r.roots[1]), fmt.Sprintf("one with %#x, and accounts that do not have the state root", r.roots[0])
	}
	return r.wrong
}
