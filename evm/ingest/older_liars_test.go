package ingest_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"ashlar/evm/source/node"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// lies are what a node may invent, and the error about it.
func lies(number uint64) map[string]struct {
	lie  func(*olderNode)
	want string
} {
	body := func(change func(*types.Body)) func(*olderNode) {
		return func(n *olderNode) {
			n.body = func(at uint64, body *types.Body) {
				if at == number {
					change(body)
				}
			}
		}
	}
	receipts := func(change func(types.Receipts) types.Receipts) func(*olderNode) {
		return func(n *olderNode) {
			n.receipts = func(at uint64, receipts types.Receipts) types.Receipts {
				if at == number {
					return change(receipts)
				}
				return receipts
			}
		}
	}
	bad := fmt.Sprintf("node liar: bad block %d (", number)
	return map[string]struct {
		lie  func(*olderNode)
		want string
	}{
		"a changed transaction": {body(func(b *types.Body) {
			b.Transactions[0] = types.NewTx(&types.LegacyTx{Nonce: 1, Gas: 21000})
		}), bad},
		"a missing transaction": {body(func(b *types.Body) { b.Transactions = b.Transactions[1:] }), bad},
		"a withdrawal":          {body(func(b *types.Body) { b.Withdrawals = append(b.Withdrawals, &types.Withdrawal{Amount: 1}) }), bad},
		"a missing receipt":     {receipts(func(r types.Receipts) types.Receipts { return r[1:] }), bad},
		"a changed receipt": {receipts(func(r types.Receipts) types.Receipts {
			r[0].CumulativeGasUsed++
			return r
		}), bad},
		"another parent": {func(n *olderNode) {
			n.header = func(header *types.Header) {
				if header.Number.Uint64() == number {
					header.Extra = []byte("another")
				}
			}
		}, fmt.Sprintf("node liar: the source is of another chain than the archive: header %d has the hash ", number)},
		"an invalid answer": {func(n *olderNode) {
			n.asked = func() error { return &node.InvalidError{What: "a block", Err: errors.New("nonsense")} }
		}, "node liar: invalid answer, a block: nonsense"},
		"a broken connection": {func(n *olderNode) {
			n.asked = func() error { return io.ErrUnexpectedEOF }
		}, "node liar: unexpected EOF"},
	}
}

// TestOlderFromLiars: what a node invents is refused with its place, and nothing of it is
// visible. It is given up after several attempts. Another node then has the blocks.
func TestOlderFromLiars(t *testing.T) {
	const number = 17 // in the second batch
	for name, test := range lies(number) {
		t.Run(name, func(t *testing.T) {
			o := newOlderStart(t)
			liar := o.node("liar")
			test.lie(liar)
			const last = "; given up after 3 failures in a row"
			if err := o.fetch(t.Context(), liar); err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasSuffix(err.Error(), last) {
				t.Errorf("got the error %v, want %q and %q", err, test.want, last)
			}
			if first := o.archive.Extent().Blocks; first <= number {
				t.Errorf("it begins with block %d, and block %d was refused", first, number)
			}
			o.verify()
			if err := o.fetch(t.Context(), liar, o.node("honest")); err != nil || o.archive.Extent().Blocks != 0 {
				t.Errorf("from an honest node: %v, %+v", err, o.archive.Extent())
			}
			o.verify()
		})
	}
}

// TestOlderAgain: a node that once failed a check, or to answer, is asked again, if it is the only one.
func TestOlderAgain(t *testing.T) {
	for name, test := range lies(17) {
		t.Run(name, func(t *testing.T) {
			o := newOlderStart(t)
			n := o.node("liar")
			identified := 0
			n.network = func() (uint64, common.Hash, error) {
				if identified++; identified == 1 {
					test.lie(n)
				} else {
					n.asked, n.header, n.body, n.receipts = nil, nil, nil, nil
				}
				honest := o.node("honest")
				return honest.Identity(t.Context())
			}
			if err := o.fetch(t.Context(), n); err != nil || o.archive.Extent().Blocks != 0 {
				t.Errorf("%v, %+v", err, o.archive.Extent())
			}
			if identified != 2 {
				t.Errorf("identified %d times, want at first and after the failure", identified)
			}
			o.verify()
		})
	}
}

// TestOlderFromOtherNetwork: a node of another network is not asked for blocks, nor again.
func TestOlderFromOtherNetwork(t *testing.T) {
	o := newOlderStart(t)
	id, genesis, err := o.node("right").Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, network := range map[string]func() (uint64, common.Hash, error){
		"id":      func() (uint64, common.Hash, error) { return id + 1, genesis, nil },
		"genesis": func() (uint64, common.Hash, error) { return id, common.Hash{1}, nil },
	} {
		n, identified := o.node("other"), 0
		n.network = func() (uint64, common.Hash, error) { identified++; return network() }
		n.asked = func() error { t.Errorf("%s: it was asked for more", name); return nil }
		const want = "node other: it is a node of another network: its chain id is "
		if err := o.fetch(t.Context(), n); err == nil || !strings.HasPrefix(err.Error(), want) || identified != 1 {
			t.Errorf("%s: %v after %d questions, want %q", name, err, identified, want)
		}
	}
}

// TestOlderFromServersBehindOneURL: one of them is of another network, which shows after others have had blocks.
func TestOlderFromServersBehindOneURL(t *testing.T) {
	o := newOlderStart(t)
	id, genesis, err := o.node("right").Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n, first := o.node("many"), o.archive.Extent().Blocks
	var identified atomic.Int64
	n.network = func() (uint64, common.Hash, error) {
		if identified.Add(1) == 2 {
			return id + 1, genesis, nil
		}
		return id, genesis, nil
	}
	n.asked = func() error {
		if o.archive.Extent().Blocks < first && identified.Load() == 1 {
			return io.ErrUnexpectedEOF
		}
		return nil
	}
	if err := o.fetch(t.Context(), n); err != nil || o.archive.Extent().Blocks != 0 {
		t.Errorf("%v, %+v", err, o.archive.Extent())
	}
	if got := identified.Load(); got != 3 {
		t.Errorf("identified %d times, want 3", got)
	}
	o.verify()
}
