package ingest_test

import (
	"context"
	"errors"
	"math/big"
	"math/rand/v2"
	"testing"

	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/verify"
	"ashlar/history/audit"
	"ashlar/internal/raced"
	"ashlar/kv/pebble"
	"ashlar/kv/pebble/pebbletest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
)

// startNumber is the block whose state the tests begin with.
const startNumber = 25

// stateOf shows an archive as the source of a state. Each item that it returns passes
// through change, which may replace it or fail.
type stateOf struct {
	archive *archive.Archive
	head    *types.Header
	items   int
	change  func(item any) error
}

type accountItem struct {
	address common.Hash
	account *types.StateAccount
	again   bool // yield it twice
}

type slotItem struct {
	address, slot common.Hash
	value         []byte
}

type codeItem struct{ code []byte }

type blockItem struct {
	block    *types.Block
	receipts types.Receipts
}

func (s *stateOf) item(item any) error {
	s.items++
	if s.change == nil {
		return nil
	}
	return s.change(item)
}

func (s *stateOf) Head() *types.Header { return s.head }

func (s *stateOf) Accounts(ctx context.Context, found func(common.Hash, *types.StateAccount) error) error {
	return s.leaves(ctx, execute.TrieID{Root: s.head.Root}, func(key common.Hash, value []byte) error {
		item := &accountItem{address: key, account: new(types.StateAccount)}
		if err := rlp.DecodeBytes(value, item.account); err != nil {
			return err
		}
		if err := s.item(item); err != nil || item.account == nil {
			return err
		}
		if item.again {
			if err := found(item.address, item.account); err != nil {
				return err
			}
		}
		return found(item.address, item.account)
	})
}

func (s *stateOf) Slots(ctx context.Context, address, root common.Hash, found func(common.Hash, []byte) error) error {
	return s.leaves(ctx, execute.TrieID{Owner: address, Root: root}, func(key common.Hash, value []byte) error {
		item := &slotItem{address, key, value}
		if err := s.item(item); err != nil || item.value == nil {
			return err
		}
		return found(item.slot, item.value)
	})
}

func (s *stateOf) leaves(ctx context.Context, id execute.TrieID, found func(common.Hash, []byte) error) error {
	return execute.EachLeaf(ctx, s.archive.StateAt(startNumber), id, common.Hash{}, func(key common.Hash, value []byte) (bool, error) {
		return true, found(key, value)
	})
}

func (s *stateOf) Code(ctx context.Context, hash common.Hash) ([]byte, error) {
	code, err := s.archive.StateAt(startNumber).Code(ctx, hash)
	return code, errors.Join(err, s.item(&codeItem{code}))
}

func (s *stateOf) Block(hash common.Hash, number uint64) (*types.Block, types.Receipts, []byte, error) {
	ctx := context.Background()
	header, err := s.archive.Header(ctx, number)
	if err != nil {
		return nil, nil, nil, err
	}
	body, err := s.archive.Body(ctx, number, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	block, err := body.Block(header.Header)
	if err != nil {
		return nil, nil, nil, err
	}
	stored, err := s.archive.Receipts(ctx, number, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	item := &blockItem{block: block}
	for i, transaction := range block.Transactions() {
		receipt, err := stored.Whole(i, transaction.Type())
		if err != nil {
			return nil, nil, nil, err
		}
		receipt.Bloom = types.CreateBloom(receipt)
		item.receipts = append(item.receipts, receipt)
	}
	return item.block, item.receipts, nil, s.item(item)
}

// wholeChain returns an archive with all blocks of the demo network.
func wholeChain(t *testing.T, genesis *core.Genesis) (*archive.Archive, *pebble.Store) {
	t.Helper()
	store := ingesttest.Store(t)
	a, err := archive.Create(t.Context(), store, genesis)
	if err != nil {
		t.Fatal(err)
	}
	continueWith(t, a, genesis, ingesttest.Chain(t))
	return a, store
}

func continueWith(t *testing.T, a *archive.Archive, genesis *core.Genesis, blocks []*types.Block) {
	t.Helper()
	executor, err := execute.New(genesis.Config)
	if err != nil {
		t.Fatal(err)
	}
	importer, err := ingest.New(t.Context(), a, executor, genesis)
	if err == nil {
		err = importer.Import(t.Context(), ingesttest.SourceOf(blocks))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// starter starts archives from the state of a block of the demo network.
type starter struct {
	t       *testing.T
	genesis *core.Genesis
	whole   *pebble.Store // the archive with all blocks
	source  *stateOf
	total   *big.Int
}

func newStarter(t *testing.T) *starter {
	s := &starter{t: t, genesis: ingesttest.Genesis(t)}
	var whole *archive.Archive
	whole, s.whole = wholeChain(t, s.genesis)
	header, err := whole.Header(t.Context(), startNumber)
	if err != nil {
		t.Fatal(err)
	}
	s.source, s.total = &stateOf{archive: whole, head: header.Header}, header.TotalDifficulty
	return s
}

// start starts an archive, in batches of few bytes.
func (s *starter) start(store *pebble.Store) (*archive.Archive, error) {
	s.t.Helper()
	executor, err := execute.New(s.genesis.Config)
	if err != nil {
		s.t.Fatal(err)
	}
	begun, err := archive.Begin(s.t.Context(), store, s.genesis, archive.Beginning{Ref: (&evm.Delta{Block: types.NewBlockWithHeader(s.source.head)}).Ref()})
	if err != nil {
		return nil, err
	}
	begun.BatchBytes = 300
	return ingest.Start(s.t.Context(), ingest.StartConfig{
		Start: begun, Executor: executor, Genesis: s.genesis, Source: s.source, TotalDifficulty: s.total, Progress: new(ingest.StartProgress),
	})
}

// check imports the blocks that follow, and checks the archive.
func (s *starter) check(store *pebble.Store, a *archive.Archive) {
	s.t.Helper()
	continueWith(s.t, a, s.genesis, ingesttest.Chain(s.t)[startNumber:])
	report, err := verify.Run(s.t.Context(), store, verify.Options{To: audit.Head, Full: true}, nil)
	if err != nil || !report.Sound {
		s.t.Fatalf("verify: %v, %+v", err, report)
	}
	if report.States != ingesttest.ChainBlocks-startNumber+1 {
		s.t.Errorf("%d states were checked, want %d", report.States, ingesttest.ChainBlocks-startNumber+1)
	}
}

// TestStart: an archive begins with a state, and goes on with the blocks after it.
func TestStart(t *testing.T) {
	s := newStarter(t)
	store := ingesttest.Store(t)
	a, err := s.start(store)
	if err != nil {
		t.Fatal(err)
	}
	if got := a.Extent(); got != (archive.Extent{State: startNumber, Tries: startNumber}) {
		t.Errorf("it begins with %+v", got)
	}
	s.check(store, a)
}

// TestStartInterrupted: the source fails at any item, or the process is killed there, and
// the next start completes the archive.
func TestStartInterrupted(t *testing.T) {
	raced.Skip(t)
	s := newStarter(t)
	if _, err := s.start(ingesttest.Store(t)); err != nil {
		t.Fatal(err)
	}
	total := s.source.items
	random := rand.New(rand.NewPCG(1, 1))
	stop := errors.New("stopped")
	for last := 0; last < total; last += 1 + random.IntN(max(1, total/8)) {
		disk, complete := pebbletest.NewDisk(), false
		for try := 0; try < 2 && !complete; try++ { // the second time a little later
			s.source.items = 0
			s.source.change = func(any) error {
				if s.source.items > last {
					return stop
				}
				return nil
			}
			store, err := disk.Open(pebble.Options{Path: "network"})
			if err != nil {
				t.Fatal(err)
			}
			if _, err = s.start(store); err != nil && !errors.Is(err, stop) {
				t.Fatalf("stopped after item %d: %v", last, err)
			}
			complete = err == nil // as fewer items were left
			killed := disk.Killed()
			if random.IntN(2) == 0 && !complete {
				killed = disk.PowerCut(random.IntN(101), random)
			}
			store.Close()
			disk, last = killed, min(last+random.IntN(20), total-1)
		}
		s.source.change = nil
		store, err := disk.Open(pebble.Options{Path: "network"})
		if err != nil {
			t.Fatal(err)
		}
		var a *archive.Archive
		if complete {
			a, err = archive.Open(t.Context(), store)
		} else {
			a, err = s.start(store)
		}
		if err != nil {
			t.Fatalf("after a stop at item %d: %v", last, err)
		}
		s.check(store, a)
		store.Close()
	}
}

// TestStartDamaged: a state or a block that is not the header's is refused, and a damaged
// state is not continued with.
func TestStartDamaged(t *testing.T) {
	raced.Skip(t)
	s := newStarter(t)
	for name, c := range map[string]struct {
		damage func(item any) bool // reports whether it changed the item
		want   string
		state  bool // the error is ErrOtherState
	}{
		"a balance": {damage: func(item any) bool {
			a, ok := item.(*accountItem)
			if ok {
				a.account.Balance.AddUint64(a.account.Balance, 1)
			}
			return ok
		}, state: true},
		"an account left out": {damage: func(item any) bool {
			a, ok := item.(*accountItem)
			if ok {
				a.account = nil
			}
			return ok
		}, state: true},
		"an account twice": {damage: func(item any) bool {
			a, ok := item.(*accountItem)
			if ok {
				a.again = true
			}
			return ok
		}, state: true},
		"a value": {damage: func(item any) bool {
			i, ok := item.(*slotItem)
			if ok {
				i.value = []byte{0x7}
			}
			return ok
		}, state: true},
		"a slot left out": {damage: func(item any) bool {
			i, ok := item.(*slotItem)
			if ok {
				i.value = nil
			}
			return ok
		}, state: true},
		"no word": {damage: func(item any) bool {
			i, ok := item.(*slotItem)
			if ok {
				i.value = []byte{0xc0, 0x01}
			}
			return ok
		}, state: true},
		"a slot out of order": {damage: func(item any) bool {
			i, ok := item.(*slotItem)
			if ok {
				i.slot = common.MaxHash
			}
			return ok
		}, state: true},
		"a transaction left out": {damage: func(item any) bool {
			b, ok := item.(*blockItem)
			if ok = ok && len(b.receipts) > 0; ok {
				b.block = b.block.WithBody(types.Body{Transactions: b.block.Transactions()[1:], Withdrawals: b.block.Withdrawals()})
			}
			return ok
		}},
		"a log's data": {damage: func(item any) bool {
			b, ok := item.(*blockItem)
			if ok = ok && len(b.receipts) > 0 && len(b.receipts[0].Logs) > 0; ok {
				b.receipts[0].Logs[0].Data = crypto.Keccak256(nil)
			}
			return ok
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			changed := false
			s.source.change = func(item any) error {
				changed = changed || c.damage(item)
				return nil
			}
			store := ingesttest.Store(t)
			_, err := s.start(store)
			if err == nil || !changed || errors.Is(err, ingest.ErrOtherState) != c.state {
				t.Fatalf("changed %t: %v", changed, err)
			}
			t.Log(err)
			s.source.change = nil
			a, err := s.start(store)
			switch {
			case c.state && !errors.Is(err, archive.ErrStarting):
				t.Errorf("continued with a damaged state: %v", err)
			case !c.state && err != nil:
				t.Errorf("not continued: %v", err)
			case !c.state:
				s.check(store, a)
			}
		})
	}
}
