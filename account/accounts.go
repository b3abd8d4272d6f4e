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

// DefaultKeys is the default maximum number of live keys per account.
const DefaultKeys = 20

// Rate limits for attempts to sign in, to register or to set a password. They count:
//   - each client address, which may be that of a whole office;
//   - each guesser: a client network together with the e-mail address it tries, so that its
//     failures lock out nobody else;
//   - each e-mail address, so that many networks together cannot guess one password. More
//     than ten networks are needed to exhaust this limit.
const (
	addressPerSecond = 0.5
	addressBurst     = 20
	guesserPerSecond = 0.1
	guesserBurst     = 10
	emailPerSecond   = 1
	emailBurst       = 100
	// maxCounted is how many addresses, guessers, e-mail addresses and accounts are
	// tracked at once.
	maxCounted = 1 << 16
)

// Rate limits for changes that a user makes to an account and its keys. Each change adds a
// row that is never deleted, so without a limit a user could fill the disk.
const (
	changesPerSecond = 1.0 / 30
	changesBurst     = 60
)

// guesser identifies a source of attempts on one account.
type guesser struct {
	email   string
	network netip.Addr
}

// Config configures accounts.
type Config struct {
	Registration Registration     // empty: RegistrationInvited
	Keys         int              // maximum live keys per account; 0: DefaultKeys
	Password     password.Params  // zero: password.DefaultParams()
	Now          func() time.Time // nil: time.Now
}

// Accounts gives access to the accounts and invitations of a store. It is safe for
// concurrent use.
type Accounts struct {
	store  kv.Store
	now    func() time.Time
	hasher *password.Hasher
	policy atomic.Pointer[policy]

	byAddress *limit.Addresses
	byGuesser *limit.Table[guesser]
	byEmail   *limit.Table[string]
	byAccount *limit.Table[ID] // changes by the account's user

	write sync.Mutex // held during a change, from reading the old state until the new one is durable

	mu          sync.RWMutex        // guards the fields below
	people      map[ID]*holder      // never removed from
	emails      map[string]*holder  // by e-mail address
	invitations map[hash]Invitation // by the hash of their tokens
}

// policy is the part of a Config that can be reloaded.
type policy struct {
	registration Registration
	keys         int
}

// OpenAccounts reads the accounts in store, which must stay open as long as they are in
// use.
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

// Reload replaces Registration and Keys; other fields of config are ignored.
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

// keep makes p the current revision of its account in memory.
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

// List returns all accounts, oldest first.
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

// find returns the current revision of an account.
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

// withEmail returns the account with an e-mail address, or nil.
func (a *Accounts) withEmail(email string) *person {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if h := a.emails[email]; h != nil {
		return h.load()
	}
	return nil
}

// holder returns the holder of an account.
func (a *Accounts) holder(id ID) (*holder, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if h := a.people[id]; h != nil {
		return h, nil
	}
	return nil, fmt.Errorf("%w: none has the ID %s", ErrNoAccount, id)
}

// keysOf returns how many live keys an account may have.
func (a *Accounts) keysOf(account *Account) int {
	if account.Limits.Keys > 0 {
		return int(account.Limits.Keys)
	}
	return a.policy.Load().keys
}

// newID returns an unused account ID. The write lock is held.
func (a *Accounts) newID() (id ID) {
	for {
		_, _ = rand.Read(id[:]) // documented never to fail
		if _, err := a.holder(id); err != nil && !id.IsZero() {
			return id
		}
	}
}

// put writes a revision of an account durably, then makes it current in memory. The write
// lock is held.
func (a *Accounts) put(ctx context.Context, p *person) error {
	p.Account.Password = p.password != ""
	if err := write(ctx, a.store, accountRevisions, p.ID[:], p.number, p.record()); err != nil {
		return err
	}
	a.keep(p)
	return nil
}

// change edits a copy of an account and stores it as the next revision.
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

// countChange charges a change made by the account's user to its rate limit.
func (a *Accounts) countChange(id ID) error {
	return spend(a.byAccount, a.now(), id, "changes")
}

// Disable ends all sessions of an account, and blocks the account and its keys at once
// until Enable is called.
func (a *Accounts) Disable(ctx context.Context, idOrEmail string) (Account, error) {
	return a.changed(ctx, idOrEmail, "disable", func(p *person) error {
		if p.Enabled() {
			p.Disabled = wholeSeconds(a.now())
			p.epoch++
		}
		return nil
	})
}

// Enable reverses Disable. Ended sessions stay ended.
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

// SetLimits replaces the limits of an account.
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
