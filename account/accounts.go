package account

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ashlar/account/password"
	"ashlar/kv"
	"ashlar/limit"
)

// DefaultKeys is how many keys an account may have at once where nothing else is said.
const DefaultKeys = 20

// Attempts to sign in, to register or to set a password. An address may be that of an
// office. A guesser is a client's network with the e-mail address that it tries: what is
// counted against it keeps nobody else out. What is counted against an e-mail address,
// whoever tries it, keeps many networks from guessing one password together; it takes
// more than ten of them to use it up for others.
const (
	addressPerSecond = 0.5
	addressBurst     = 20
	guesserPerSecond = 0.1
	guesserBurst     = 10
	emailPerSecond   = 1
	emailBurst       = 100
	// maxCounted is how many addresses, guessers, e-mail addresses and accounts are
	// remembered.
	maxCounted = 1 << 16
)

// Changes that an account's person makes of it and of its keys. Each is a row that stays
// for good, so whoever has an account could fill the disk otherwise.
const (
	changesPerSecond = 1.0 / 30
	changesBurst     = 60
)

// guesser is who tries to be somebody.
type guesser struct {
	email   string
	network netip.Addr
}

// Config is how accounts are looked after.
type Config struct {
	Registration Registration     // empty: RegistrationInvited
	Keys         int              // that an account may have at once; 0: DefaultKeys
	Password     password.Params  // zero: password.DefaultParams()
	Now          func() time.Time // nil: time.Now
}

// Accounts is the accounts of a store, and the invitations to have one. It may be used
// from many goroutines at once.
type Accounts struct {
	store  kv.Store
	now    func() time.Time
	hasher *password.Hasher
	policy atomic.Pointer[policy]

	byAddress *limit.Addresses
	byGuesser *limit.Table[guesser]
	byEmail   *limit.Table[string]
	byAccount *limit.Table[ID] // changes by its person

	write sync.Mutex // held by whoever changes something, from looking until it is durable

	mu          sync.RWMutex        // guards what follows
	people      map[ID]*holder      // none is ever removed
	emails      map[string]*holder  // by the e-mail address
	invitations map[hash]Invitation // by the hash of their tokens
}

// policy is the part of a Config that can be changed.
type policy struct {
	registration Registration
	keys         int
}

// OpenAccounts reads the accounts in store, which must stay open as long as they are
// used.
func OpenAccounts(ctx context.Context, store kv.Store, config Config) (*Accounts, error) {
	if err := claim(ctx, store); err != nil {
		return nil, err
	}
	if config.Password == (password.Params{}) {
		config.Password = password.DefaultParams()
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	a := &Accounts{
		store: store, now: config.Now, hasher: password.NewHasher(config.Password),
		byAddress: limit.NewAddresses(limit.Rate{PerSecond: addressPerSecond, Burst: addressBurst}, maxCounted),
		byGuesser: limit.NewTable[guesser](limit.Rate{PerSecond: guesserPerSecond, Burst: guesserBurst}, maxCounted),
		byEmail:   limit.NewTable[string](limit.Rate{PerSecond: emailPerSecond, Burst: emailBurst}, maxCounted),
		byAccount: limit.NewTable[ID](limit.Rate{PerSecond: changesPerSecond, Burst: changesBurst}, maxCounted),
		people:    make(map[ID]*holder), emails: make(map[string]*holder),
	}
	a.Reload(config)
	if err := a.readPeople(ctx); err != nil {
		return nil, err
	}
	return a, a.readInvitations(ctx)
}

// Reload makes another Registration and another number of Keys count.
func (a *Accounts) Reload(config Config) {
	a.policy.Store(&policy{cmp.Or(config.Registration, RegistrationInvited), cmp.Or(config.Keys, DefaultKeys)})
}

func (a *Accounts) readPeople(ctx context.Context) error {
	rows, err := newest(ctx, a.store, accountRevisions, len(ID{}))
	if err != nil {
		return err
	}
	for partition, row := range rows {
		id := ID([]byte(partition))
		p, err := decodeAccount(id, row.number, row.value)
		if err == nil && a.emails[p.Email] != nil {
			err = fmt.Errorf("another account has the e-mail address too")
		}
		if err != nil {
			return fmt.Errorf("account: table %s: account %s, revision %d: %w", accountRevisions.Name, id, row.number, err)
		}
		a.keep(p)
	}
	return nil
}

// keep makes p the state of its account.
func (a *Accounts) keep(p *person) {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.people[p.ID]
	if h == nil {
		h = new(holder)
		a.people[p.ID] = h
	}
	h.state.Store(p)
	a.emails[p.Email] = h
}

// List returns all accounts, the oldest first.
func (a *Accounts) List(context.Context) ([]Account, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	var all []Account
	for _, h := range a.people {
		all = append(all, h.load().Account)
	}
	slices.SortFunc(all, func(a, b Account) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Email, b.Email)) })
	return all, nil
}

// Find returns an account by its ID or its e-mail address.
func (a *Accounts) Find(idOrEmail string) (Account, error) {
	p, err := a.find(idOrEmail)
	if err != nil {
		return Account{}, err
	}
	return p.Account, nil
}

// find returns the present state of an account.
func (a *Accounts) find(idOrEmail string) (*person, error) {
	var id ID
	if id.UnmarshalText([]byte(idOrEmail)) == nil {
		h, err := a.holder(id)
		if err != nil {
			return nil, err
		}
		return h.load(), nil
	}
	email, err := foldEmail(idOrEmail)
	if err != nil {
		return nil, fmt.Errorf("%w: expected its ID or its e-mail address", ErrNoAccount)
	}
	if p := a.withEmail(email); p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%w: none has the e-mail address %s", ErrNoAccount, email)
}

// withEmail returns the account that has an e-mail address, nil where none has.
func (a *Accounts) withEmail(email string) *person {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if h := a.emails[email]; h != nil {
		return h.load()
	}
	return nil
}

// holder returns what holds the state of an account.
func (a *Accounts) holder(id ID) (*holder, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if h := a.people[id]; h != nil {
		return h, nil
	}
	return nil, fmt.Errorf("%w: none has the ID %s", ErrNoAccount, id)
}

// keysOf is how many keys an account may have at once.
func (a *Accounts) keysOf(account *Account) int {
	if account.Limits.Keys > 0 {
		return int(account.Limits.Keys)
	}
	return a.policy.Load().keys
}

// newID makes the ID of an account. The write lock is held.
func (a *Accounts) newID() (id ID) {
	for {
		_, _ = rand.Read(id[:]) // documented never to fail
		if _, err := a.holder(id); err != nil && !id.IsZero() {
			return id
		}
	}
}

// put makes a state of an account durable, and then the one that counts. The write lock
// is held.
func (a *Accounts) put(ctx context.Context, p *person) error {
	p.Account.Password = p.password != ""
	if err := write(ctx, a.store, accountRevisions, p.ID[:], p.number, p.record()); err != nil {
		return err
	}
	a.keep(p)
	return nil
}

// change has a copy of an account edited, and makes that its state.
func (a *Accounts) change(ctx context.Context, idOrEmail, doing string, edit func(*person) error) (*person, error) {
	a.write.Lock()
	defer a.write.Unlock()
	before, err := a.find(idOrEmail)
	if err != nil {
		return nil, err
	}
	p := *before
	if err := edit(&p); err != nil {
		return nil, err
	}
	p.number++
	if err := a.put(ctx, &p); err != nil {
		return nil, fmt.Errorf("account: %s account %s: %w", doing, p.ID, err)
	}
	return &p, nil
}

// countChange counts a change that an account's person makes, or says that there were
// too many.
func (a *Accounts) countChange(id ID) error {
	return spend(a.byAccount, a.now(), id, "changes")
}

// Disable ends all sessions of an account and keeps it and its keys from being used, at
// once, until it is enabled again.
func (a *Accounts) Disable(ctx context.Context, idOrEmail string) (Account, error) {
	return a.changed(ctx, idOrEmail, "disable", func(p *person) error {
		if p.Enabled() {
			p.Disabled = wholeSeconds(a.now())
			p.epoch++
		}
		return nil
	})
}

// Enable undoes Disable, but for the sessions that it ended.
func (a *Accounts) Enable(ctx context.Context, idOrEmail string) (Account, error) {
	return a.changed(ctx, idOrEmail, "enable", func(p *person) error {
		p.Disabled = time.Time{}
		return nil
	})
}

// SetRole changes what an account may do.
func (a *Accounts) SetRole(ctx context.Context, idOrEmail string, role Role) (Account, error) {
	return a.changed(ctx, idOrEmail, "change the role of", func(p *person) error {
		p.Role = role
		return role.check()
	})
}

// SetLimits gives an account limits in place of those it has.
func (a *Accounts) SetLimits(ctx context.Context, idOrEmail string, limits Limits) (Account, error) {
	return a.changed(ctx, idOrEmail, "limit", func(p *person) error {
		p.Limits = limits
		return nil
	})
}

func (a *Accounts) changed(ctx context.Context, idOrEmail, doing string, edit func(*person) error) (Account, error) {
	p, err := a.change(ctx, idOrEmail, doing, edit)
	if err != nil {
		return Account{}, err
	}
	return p.Account, nil
}
