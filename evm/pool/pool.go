// Package pool holds the transactions of an EVM network that wait to be included.
//
// A transaction is taken in only if it could be included: it is checked by the
// rules of the block that comes next, against the nonce and the balance of its
// sender, and then, which costs most, the proofs of its blobs are verified. At most
// one waits for each nonce of a sender; another takes its place by paying a tenth
// more. What waits is bounded, in number for each sender and in number and bytes for
// all; where there is no room, what pays least goes.
//
// A sender's transactions are executable as far as their nonces follow one
// another from the account's on; those behind a gap are queued. With each new head
// [Pool.Reset] lets go of what has been included or can be included no more.
//
// Errors are in the words of geth's pool, which wallets know.
package pool

import (
	"context"
	"sync"
	"time"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/txpool"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"golang.org/x/sync/semaphore"
)

// Limits bound what waits.
type Limits struct {
	Transactions int           // of all senders
	Bytes        int           // of all senders, as they are sent, blobs included
	OfSender     int           // transactions of one sender
	Lifetime     time.Duration // after which a transaction that was not included is let go
}

// DefaultLimits are like those of geth.
func DefaultLimits() Limits {
	return Limits{Transactions: 6144, Bytes: 256 << 20, OfSender: 64, Lifetime: 3 * time.Hour}
}

// bumpPercent is by how much a replacement must pay more; for blobs, which are
// costly to pass on, twice as much.
const (
	bumpPercent     = 10
	blobBumpPercent = 100
)

// Head is what the next block builds on.
type Head struct {
	Header *types.Header
	State  evm.State // after it
}

// Pool is the pool of one network. Its methods may be called from many goroutines at once.
type Pool struct {
	config  *params.ChainConfig
	limits  Limits
	now     func() time.Time
	proving *semaphore.Weighted // one place for whoever's blobs are proven

	mutex    sync.Mutex
	head     Head                       // guarded by mutex
	senders  map[common.Address]*sender // guarded by mutex
	byHash   map[common.Hash]*waiting   // guarded by mutex
	bytes    int                        // guarded by mutex
	version  uint64                     // guarded by mutex; counts changes
	watchers map[*watcher]struct{}      // guarded by mutex
}

// waiting is a transaction in the pool.
type waiting struct {
	tx    *types.Transaction // with its blobs
	from  common.Address
	since time.Time
}

// New makes an empty pool. Nothing is taken in before the first Reset.
func New(config *params.ChainConfig, limits Limits) *Pool {
	return &Pool{
		config: config, limits: limits, now: time.Now, proving: semaphore.NewWeighted(1),
		senders: make(map[common.Address]*sender), byHash: make(map[common.Hash]*waiting),
		watchers: make(map[*watcher]struct{}),
	}
}

// Add takes in a transaction, or says why not. Blobs must come with it.
func (p *Pool) Add(ctx context.Context, tx *types.Transaction) error {
	tx, from, err := p.checked(ctx, tx)
	if err != nil {
		return err
	}
	return p.admit(ctx, tx, from)
}

// AddPassed is Add for a transaction that is passed on to where it can be included.
// That is done, by pass, once the transaction could be taken in, and if it fails
// nobody is told of the transaction. Once it is passed on, all is well: that there is
// no room for it here any more, or that it has come back from there, is no error.
func (p *Pool) AddPassed(ctx context.Context, tx *types.Transaction, pass func() error) error {
	tx, from, err := p.checked(ctx, tx)
	if err != nil {
		return err
	}
	if err := pass(); err != nil {
		return err
	}
	_ = p.admit(ctx, tx, from)
	return nil
}

// checked checks a transaction, the cheapest first. It returns the transaction as it
// is kept, and its sender. Nobody waits while the proofs of blobs are looked at, so
// what has been said of the sender by then may be no longer so.
func (p *Pool) checked(ctx context.Context, tx *types.Transaction) (_ *types.Transaction, from common.Address, err error) {
	p.mutex.Lock()
	head, known := p.head, p.byHash[tx.Hash()] != nil
	p.mutex.Unlock()
	switch {
	case known:
		return nil, from, txpool.ErrAlreadyKnown
	case head.Header == nil:
		return nil, from, errNoHead
	}
	if from, err = p.check(tx, head.Header); err != nil {
		return nil, from, err
	}
	p.mutex.Lock()
	_, _, err = p.admissible(ctx, tx, from)
	p.mutex.Unlock()
	if err != nil {
		return nil, from, err
	}
	tx, err = p.prove(ctx, tx)
	return tx, from, err
}

// admit takes in a transaction that was checked.
func (p *Pool) admit(ctx context.Context, tx *types.Transaction, from common.Address) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	of, replaced, err := p.admissible(ctx, tx, from)
	if err != nil {
		return err
	}
	added := &waiting{tx: tx, from: from, since: p.now()}
	gone, err := p.roomFor(added, replaced)
	if err != nil {
		return err
	}
	for _, w := range gone {
		p.forget(w)
	}
	p.put(of, added)
	p.tell(tx)
	return nil
}

// admissible says whether a transaction may wait beside what waits of its sender, and
// which one it takes the place of. The mutex is held.
func (p *Pool) admissible(ctx context.Context, tx *types.Transaction, from common.Address) (of *sender, replaced *waiting, err error) {
	if p.byHash[tx.Hash()] != nil {
		return nil, nil, txpool.ErrAlreadyKnown
	}
	if of, err = p.sender(ctx, from); err != nil {
		return nil, nil, err
	}
	replaced, err = of.admit(tx, p.limits.OfSender)
	return of, replaced, err
}

// sender is what is known of a sender as of the head, also where nothing of it waits.
func (p *Pool) sender(ctx context.Context, address common.Address) (*sender, error) {
	if of := p.senders[address]; of != nil {
		return of, nil
	}
	of := newSender()
	return of, of.read(ctx, p.head.State, address)
}

// put lets a transaction wait that has been admitted.
func (p *Pool) put(of *sender, added *waiting) {
	of.byNonce[added.tx.Nonce()] = added
	p.senders[added.from] = of
	p.byHash[added.tx.Hash()] = added
	p.bytes += int(added.tx.Size())
	p.version++
}

// forget lets go of a transaction.
func (p *Pool) forget(gone *waiting) {
	of := p.senders[gone.from]
	delete(of.byNonce, gone.tx.Nonce())
	if len(of.byNonce) == 0 {
		delete(p.senders, gone.from)
	}
	delete(p.byHash, gone.tx.Hash())
	p.bytes -= int(gone.tx.Size())
	p.version++
}

// Reset takes note of a new head, and lets go of what can be included no more. The
// transactions in returned were in blocks of a branch that lost; they wait again
// if they still can be included.
func (p *Pool) Reset(ctx context.Context, head Head, returned types.Transactions) error {
	p.mutex.Lock()
	p.head = head
	err := p.review(ctx)
	p.mutex.Unlock()
	if err != nil {
		return err
	}
	for _, tx := range returned {
		if tx.Type() != types.BlobTxType { // its blobs are not in the block
			_ = p.Add(ctx, tx) // as good as it can be: the other branch may have it
		}
	}
	return nil
}

// review looks at every transaction as of a new head.
func (p *Pool) review(ctx context.Context) error {
	expired := p.now().Add(-p.limits.Lifetime)
	for address, of := range p.senders {
		if err := of.read(ctx, p.head.State, address); err != nil {
			return err
		}
		for nonce, w := range of.byNonce {
			if nonce < of.nonce || w.since.Before(expired) || w.tx.Gas() > p.head.Header.GasLimit || w.tx.Cost().Cmp(of.balance) > 0 {
				p.forget(w)
			}
		}
	}
	return nil
}

// Get returns the waiting transaction with a hash, without its blobs, and its sender.
func (p *Pool) Get(hash common.Hash) (tx *types.Transaction, from common.Address, ok bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	w := p.byHash[hash]
	if w == nil {
		return nil, from, false
	}
	return w.tx.WithoutBlobTxSidecar(), w.from, true
}

// Remove lets go of a transaction, if it waits.
func (p *Pool) Remove(hash common.Hash) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if w := p.byHash[hash]; w != nil {
		p.forget(w)
	}
}

// Nonce is the first nonce of an account that no executable transaction has.
func (p *Pool) Nonce(ctx context.Context, address common.Address) (uint64, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.head.Header == nil {
		return 0, errNoHead
	}
	of, err := p.sender(ctx, address)
	if err != nil {
		return 0, err
	}
	return of.nonce + uint64(len(of.executable())), nil
}

// Version changes whenever what waits does.
func (p *Pool) Version() uint64 {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.version
}

// Content is what waits of one sender, by nonce.
type Content struct {
	Pending, Queued types.Transactions // executable, and behind a gap
}

// Content returns what waits of every sender.
func (p *Pool) Content() map[common.Address]Content {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	all := make(map[common.Address]Content, len(p.senders))
	for address, of := range p.senders {
		all[address] = of.content()
	}
	return all
}

// ContentFrom returns what waits of one sender.
func (p *Pool) ContentFrom(address common.Address) Content {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if of := p.senders[address]; of != nil {
		return of.content()
	}
	return Content{}
}

// Stats counts what waits.
func (p *Pool) Stats() (pending, queued int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, of := range p.senders {
		n := len(of.executable())
		pending, queued = pending+n, queued+len(of.byNonce)-n
	}
	return pending, queued
}
