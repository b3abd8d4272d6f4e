// Package pool holds the pending transactions of an EVM network.
//
// A transaction is accepted only if it could be included. It is checked by the rules of the
// next block and against the nonce and balance of its sender; the proofs of its blobs, the
// most expensive check, come last. The pool holds at most one transaction for each nonce of
// a sender; a replacement must pay a tenth more (for blobs, twice as much). The pool is
// bounded in transactions per sender and in total transactions and bytes; when it is full,
// a transaction makes way that its sender has above a fair share, or the cheapest ones do. A sender
// with a delegation has one executable transaction at most.
//
// The transactions of a sender are executable if their nonces follow the account's nonce
// without a gap; those behind a gap are queued. At each new head, [Pool.Reset] removes
// transactions that were included or can no longer be.
//
// Error texts are those of geth's pool, which wallets recognize.
package pool

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/txpool"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"golang.org/x/sync/semaphore"
)

// Limits bound the pool.
type Limits struct {
	Transactions int           // total
	Bytes        int           // total, in network encoding, blobs included
	Executable   int           // executable transactions per sender
	Waiting      int           // transactions per sender that wait for an earlier nonce
	Lifetime     time.Duration // after which a transaction is dropped
	Behind       time.Duration // how long calls wait for a newer head, see AwaitHead
}

// DefaultLimits returns limits similar to geth's.
func DefaultLimits() Limits {
	return Limits{Transactions: 6144, Bytes: 256 << 20, Executable: 1024, Waiting: 64, Lifetime: 3 * time.Hour, Behind: time.Second}
}

// The least increase of the fees of a replacement, in percent. Blob transactions are
// expensive to propagate, so it is higher for them.
const (
	bumpPercent     = 10
	blobBumpPercent = 100
)

// Head is the block on which the next one is built.
type Head struct {
	Header *types.Header
	State  evm.State // after it
}

// Pool holds the pending transactions of one network. It is safe for concurrent use.
type Pool struct {
	config  *params.ChainConfig
	limits  Limits
	now     func() time.Time
	proving *semaphore.Weighted // weight 1; held while blob proofs are verified

	mutex         sync.Mutex
	head          Head                       // guarded by mutex
	adapted       *types.Header              // guarded by mutex; of the head that the last Reset to succeed was for
	moved         chan struct{}              // guarded by mutex; see wake
	behind        time.Time                  // guarded by mutex; since when calls have found the pool behind; zero since it last caught up
	senders       map[common.Address]*sender // guarded by mutex
	byHash        map[common.Hash]*entry     // guarded by mutex
	bytes         int                        // guarded by mutex
	authorized    map[common.Address]int     // guarded by mutex; pending authorizations by account
	returning     types.Transactions         // guarded by mutex; of dropped blocks, until a Reset adds them
	version       uint64                     // guarded by mutex; incremented by each change
	subscriptions map[*Subscription]struct{} // guarded by mutex
}

// entry is a transaction in the pool.
type entry struct {
	tx          *types.Transaction // with its blobs
	from        common.Address
	authorities []common.Address // accounts whose authorizations it has (EIP-7702)
	accepted    bool             // by another node
	since       time.Time
}

// New returns an empty pool. It takes no transactions before the first Reset.
func New(config *params.ChainConfig, limits Limits) *Pool {
	return &Pool{
		config: config, limits: limits, now: time.Now, proving: semaphore.NewWeighted(1), moved: make(chan struct{}),
		senders: make(map[common.Address]*sender), byHash: make(map[common.Hash]*entry), authorized: make(map[common.Address]int),
		subscriptions: make(map[*Subscription]struct{}),
	}
}

// Add adds a transaction, or returns why it is rejected, or a [StateError]. A blob transaction must come
// with its blobs.
func (p *Pool) Add(ctx context.Context, tx *types.Transaction) error {
	return p.add(ctx, &entry{tx: tx})
}

// AddAccepted is Add for a transaction that another node has in its pool. The limits for delegations, and for
// senders of transactions with blobs, do not apply. The node applied them at its own head, which may be newer,
// and it does not send the transaction again.
func (p *Pool) AddAccepted(ctx context.Context, tx *types.Transaction) error {
	return p.add(ctx, &entry{tx: tx, accepted: true})
}

func (p *Pool) add(ctx context.Context, w *entry) error {
	added, err := p.checked(ctx, w)
	if err != nil {
		return err
	}
	return p.admit(ctx, added)
}

// AddForwarded is Add for a transaction that is forwarded to another node. It calls forward to
// forward the transaction after checking it. If forward fails, so does AddForwarded, and the
// transaction is not added. Once forwarded, it returns nil even if the transaction cannot be
// added, because the pool is full or because it has already come back from that node.
//
// A transaction that is in the pool already is forwarded again, since the node may have lost it,
// and forward decides what is returned.
func (p *Pool) AddForwarded(ctx context.Context, tx *types.Transaction, forward func() error) error {
	added, err := p.checked(ctx, &entry{tx: tx})
	if errors.Is(err, txpool.ErrAlreadyKnown) {
		return forward()
	}
	if err != nil {
		return err
	}
	if err := forward(); err != nil {
		return err
	}
	_ = p.admit(ctx, added)
	return nil
}

// checked checks a transaction, cheapest checks first. It returns the entry to add, with the
// transaction in the form to keep. The mutex is not held while signatures of authorizations and
// blob proofs are verified, so the sender's state may have changed when checked returns.
func (p *Pool) checked(ctx context.Context, w *entry) (*entry, error) {
	if err := p.awaitFirst(ctx); err != nil {
		return nil, err
	}
	p.mutex.Lock()
	head, known := p.head, p.byHash[w.tx.Hash()] != nil
	p.mutex.Unlock()
	if known {
		return nil, txpool.ErrAlreadyKnown
	}
	var err error
	if w.from, err = p.check(w.tx, head.Header); err != nil {
		return nil, err
	}
	if err := readAhead(ctx, head.State, w.from); err != nil {
		return nil, err
	}
	if err := p.affordable(ctx, w); err != nil {
		return nil, err
	}
	w.authorities = w.tx.SetCodeAuthorities()
	p.mutex.Lock()
	_, _, err = p.admissible(ctx, w)
	p.mutex.Unlock()
	if err != nil {
		return nil, err
	}
	w.tx, err = p.prove(ctx, w.tx)
	return w, err
}

// admit adds a transaction that was checked.
func (p *Pool) admit(ctx context.Context, added *entry) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	of, replaced, err := p.admissible(ctx, added)
	if err != nil {
		return err
	}
	added.since = p.now()
	gone, err := p.evictionsFor(of, added, replaced)
	if err != nil {
		return err
	}
	for _, w := range gone {
		p.forget(w)
	}
	p.put(of, added)
	p.notify(added.tx)
	return nil
}

// admissible returns whether a transaction fits the sender's other transactions and those of
// its authorities, and which one it replaces. The mutex is held.
func (p *Pool) admissible(ctx context.Context, w *entry) (of *sender, replaced *entry, err error) {
	if p.byHash[w.tx.Hash()] != nil {
		return nil, nil, txpool.ErrAlreadyKnown
	}
	if of, err = p.sender(ctx, w.from); err != nil {
		return nil, nil, err
	}
	if err = of.affords(w); err != nil {
		return nil, nil, err
	}
	if err = p.checkDelegations(of, w); err != nil {
		return nil, nil, err
	}
	replaced, err = of.place(w.tx, p.limits)
	return of, replaced, err
}

// sender returns the state of a sender as of the head. It may have no transactions.
func (p *Pool) sender(ctx context.Context, address common.Address) (*sender, error) {
	if of := p.senders[address]; of != nil {
		return of, nil
	}
	of := newSender()
	return of, of.read(ctx, p.head.State, address)
}

// put adds an admitted transaction.
func (p *Pool) put(of *sender, added *entry) {
	of.insert(added)
	p.senders[added.from] = of
	p.byHash[added.tx.Hash()] = added
	p.bytes += int(added.tx.Size())
	p.authorize(added)
	p.version++
}

// forget removes a transaction.
func (p *Pool) forget(gone *entry) {
	of := p.senders[gone.from]
	of.remove(gone)
	if len(of.byNonce) == 0 {
		delete(p.senders, gone.from)
	}
	delete(p.byHash, gone.tx.Hash())
	p.bytes -= int(gone.tx.Size())
	p.unauthorize(gone)
	p.version++
}

// Reset moves the pool to a new head and removes transactions that can no longer be
// included. It adds the transactions in returned, which were in blocks dropped by a
// reorganization, if they can still be included. Should it fail, the next Reset that succeeds adds them.
func (p *Pool) Reset(ctx context.Context, head Head, returned types.Transactions) error {
	p.mutex.Lock()
	p.keepReturning(returned)
	senders := slices.Collect(maps.Keys(p.senders))
	p.mutex.Unlock()
	if err := readAhead(ctx, head.State, senders...); err != nil {
		return err
	}
	p.mutex.Lock()
	before := p.adapted // the pool is in order for it, whatever failed since
	p.head = head
	p.wake()
	forked := before != nil && p.config.LatestFork(before.Time) != p.config.LatestFork(head.Header.Time)
	err := p.review(ctx, forked)
	p.mutex.Unlock()
	if err != nil {
		return err
	}
	p.addReturning(ctx)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.adapted, p.behind = head.Header, time.Time{}
	p.wake()
	return nil
}

// review checks every transaction as of a new head. forked says that the rules have changed
// since the last one: a transaction may now have too much gas or too little.
func (p *Pool) review(ctx context.Context, forked bool) error {
	expired := p.now().Add(-p.limits.Lifetime)
	for address, of := range p.senders {
		if err := of.read(ctx, p.head.State, address); err != nil {
			return err
		}
		for nonce, w := range of.byNonce {
			if nonce < of.nonce || w.since.Before(expired) || w.tx.Gas() > p.head.Header.GasLimit || w.tx.Cost().Cmp(of.balance) > 0 {
				p.forget(w)
			} else if forked {
				if _, err := p.check(w.tx, p.head.Header); err != nil {
					p.forget(w)
				}
			}
		}
	}
	return nil
}

// Get returns the transaction with a hash, without its blobs, and its sender.
func (p *Pool) Get(hash common.Hash) (tx *types.Transaction, from common.Address, ok bool) {
	if tx, from, ok = p.GetWithBlobs(hash); ok {
		tx = tx.WithoutBlobTxSidecar()
	}
	return tx, from, ok
}

// GetWithBlobs is Get for a transaction with its blobs.
func (p *Pool) GetWithBlobs(hash common.Hash) (tx *types.Transaction, from common.Address, ok bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if w := p.byHash[hash]; w != nil {
		return w.tx, w.from, true
	}
	return nil, from, false
}

// Find returns the transaction of a sender with a nonce, without its blobs, or nil.
func (p *Pool) Find(from common.Address, nonce uint64) *types.Transaction {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if of := p.senders[from]; of != nil && of.byNonce[nonce] != nil {
		return of.byNonce[nonce].tx.WithoutBlobTxSidecar()
	}
	return nil
}

// Remove removes a transaction if it is in the pool.
func (p *Pool) Remove(hash common.Hash) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if w := p.byHash[hash]; w != nil {
		p.forget(w)
	}
}

// Nonce returns the nonce after an account's last executable transaction.
func (p *Pool) Nonce(ctx context.Context, address common.Address) (uint64, error) {
	if err := p.awaitFirst(ctx); err != nil {
		return 0, err
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	of, err := p.sender(ctx, address)
	if err != nil {
		return 0, err
	}
	return of.next(), nil
}

// Version returns a number that changes with the contents of the pool.
func (p *Pool) Version() uint64 {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.version
}

// Content is the transactions of one sender, by nonce.
type Content struct {
	Pending, Queued types.Transactions // executable, and behind a gap
}

// Content returns the transactions of every sender.
func (p *Pool) Content() map[common.Address]Content {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	all := make(map[common.Address]Content, len(p.senders))
	for address, of := range p.senders {
		all[address] = of.content()
	}
	return all
}

// ContentFrom returns the transactions of one sender.
func (p *Pool) ContentFrom(address common.Address) Content {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if of := p.senders[address]; of != nil {
		return of.content()
	}
	return Content{}
}

// Stats returns the numbers of executable and of queued transactions.
func (p *Pool) Stats() (pending, queued int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, of := range p.senders {
		pending, queued = pending+of.run.length, queued+len(of.byNonce)-of.run.length
	}
	return pending, queued
}
