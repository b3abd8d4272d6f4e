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
	"ashlar/retry"

	"golang.org/x/sync/errgroup"
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
	Registration Registration    // empty: RegistrationInvited
	Keys         int             // maximum live keys per account; 0: DefaultKeys
	Teams        int             // that a user may own; 0: only operators create teams
	Password     password.Params // zero: password.DefaultParams()
	// Shared says that other processes write to the store too; see [Keyring.Refresh].
	Shared bool
	// Mailer sends letters that verify e-mail addresses; nil: they are not verified.
	Mailer Mailer
	// Retry lets restrictions take effect while the store refuses writes; [Accounts.Run]
	// stores them later. nil: a restriction that cannot be stored is an error.
	Retry *retry.Task
	Now   func() time.Time // nil: time.Now
}

// Accounts gives access to the accounts and invitations of a store. It is safe for
// concurrent use.
type Accounts struct {
	rows   *rows
	now    func() time.Time
	hasher *password.Hasher
	policy atomic.Pointer[policy]

	byAddress *limit.Addresses
	byGuesser *limit.Table[guesser]
	byEmail   *limit.Table[string]
	byAccount *limit.Table[ID] // changes by the account's user
	byCode    *limit.Table[ID] // codes of second factors
	lettersBy *limit.Table[guesser]
	lettersOf *limit.Addresses
	lettersTo *limit.Table[string]
	mailer    Mailer // nil: addresses are not verified
	first     first

	write sync.Mutex // held during a change, from reading the old state until the new one is durable
	seen  []byte     // guarded by write: by catchUp, of the pointer of changes

	attached    []Belongings
	keys        *keyStore     // set by OpenKeyring
	sweeping    sync.Mutex    // held by Sweep
	unsweptMore chan struct{} // holds a value when unswept has grown

	mu          sync.RWMutex               // guards the fields below
	people      map[ID]*holder             // with deleted ones; never removed from
	unswept     map[ID]struct{}            // deleted accounts that Sweep has to look after
	emails      map[string]*holder         // by e-mail address
	identities  map[identityRecord]*holder // by identity at a provider
	invitations map[hash]Invitation        // by the hash of their tokens
	mailTokens  map[hash]mailTokenRecord
	teamsOf     map[ID]map[ID]struct{} // teams by their members
	ended       map[ID]struct{}        // memberships that a revision of a team has ended
	joined      map[hash]ID            // members by the invitations with which they joined a team
}

// policy is the part of a Config that can be reloaded.
type policy struct {
	registration Registration
	keys         int
	teams        int
	byCreator    *limit.Table[ID] // new teams, whose rate depends on teams
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
		rows: newRows(store, config.Now, config.Shared, config.Retry), now: config.Now, hasher: password.NewHasher(config.Password),
		byAddress: limit.NewAddresses(limit.Rate{PerSecond: addressPerSecond, Burst: addressBurst}, maxCounted),
		byGuesser: limit.NewTable[guesser](limit.Rate{PerSecond: guesserPerSecond, Burst: guesserBurst}, maxCounted),
		byEmail:   limit.NewTable[string](limit.Rate{PerSecond: emailPerSecond, Burst: emailBurst}, maxCounted),
		byAccount: limit.NewTable[ID](limit.Rate{PerSecond: changesPerSecond, Burst: changesBurst}, maxCounted),
		byCode:    limit.NewTable[ID](limit.Rate{PerSecond: codesPerSecond, Burst: codesBurst}, maxCounted),
		lettersBy: limit.NewTable[guesser](limit.Rate{PerSecond: lettersPerSecond, Burst: lettersOfOne}, maxCounted),
		lettersOf: limit.NewAddresses(limit.Rate{PerSecond: lettersPerClient, Burst: lettersOfClient}, maxCounted),
		lettersTo: limit.NewTable[string](limit.Rate{PerSecond: lettersPerEmail, Burst: lettersOfAllBurst}, maxCounted),
		mailer:    config.Mailer,
		people:    make(map[ID]*holder), emails: make(map[string]*holder), identities: make(map[identityRecord]*holder), mailTokens: make(map[hash]mailTokenRecord),
		unswept: make(map[ID]struct{}), unsweptMore: make(chan struct{}, 1),
		teamsOf: make(map[ID]map[ID]struct{}), ended: make(map[ID]struct{}), joined: make(map[hash]ID),
	}
	a.Reload(config)
	if err := a.readPeople(ctx); err != nil {
		return nil, err
	}
	if err := a.readInvitations(ctx); err != nil {
		return nil, err
	}
	if err := a.readMailTokens(ctx); err != nil {
		return nil, err
	}
	return a, a.dropOldAudit(ctx)
}

// Reload replaces Registration, Keys and Teams; other fields of config are ignored. Another number of Teams begins to count
// new teams anew.
func (a *Accounts) Reload(config Config) {
	next := &policy{registration: cmp.Or(config.Registration, RegistrationInvited), keys: cmp.Or(config.Keys, DefaultKeys), teams: config.Teams}
	if before := a.policy.Load(); before != nil && before.teams == next.teams {
		next.byCreator = before.byCreator
	} else {
		next.byCreator = limit.NewTable[ID](newTeams(config), maxCounted)
	}
	a.policy.Store(next)
}

// List returns all accounts, oldest first.
func (a *Accounts) List(context.Context) ([]Account, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	var all []Account
	for _, h := range a.people {
		if p := h.load(); !p.deleted {
			all = append(all, a.described(p))
		}
	}
	slices.SortFunc(all, func(a, b Account) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Label(), b.Label()), slices.Compare(a.ID[:], b.ID[:]))
	})
	return all, nil
}

// Find returns an account by its ID or its e-mail address.
func (a *Accounts) Find(idOrEmail string) (Account, error) {
	p, err := a.find(idOrEmail)
	if err != nil {
		return Account{}, err
	}
	return a.described(p), nil
}

// described returns what callers see of an account.
func (a *Accounts) described(p *person) Account {
	seen := p.Account
	seen.Unsaved = a.rows.isUnsaved(placeOf(p.ID))
	return seen
}

// placeOf returns the place of an account's rows.
func placeOf(id ID) place { return place{accountRevisions, string(id[:])} }

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

// holder returns the holder of an account that is not deleted.
func (a *Accounts) holder(id ID) (*holder, error) {
	if h := a.known(id); h != nil && !h.load().deleted {
		return h, nil
	}
	return nil, fmt.Errorf("%w: none has the ID %s", ErrNoAccount, id)
}

// known returns the holder of an account, which may be deleted, or nil.
func (a *Accounts) known(id ID) *holder {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.people[id]
}

// MaxKeys returns how many live keys an account may have.
func (a *Accounts) MaxKeys(account *Account) int {
	if account.Limits.Keys > 0 {
		return int(account.Limits.Keys)
	}
	return a.policy.Load().keys
}

// newID returns an unused account ID. The write lock is held.
func (a *Accounts) newID() (id ID) {
	for {
		_, _ = rand.Read(id[:]) // documented never to fail
		if a.known(id) == nil && !id.IsZero() {
			return id
		}
	}
}

// put stores a revision of an account, with what it did and makes it current in memory. The write lock is
// held.
func (a *Accounts) put(ctx context.Context, o order, p *person, did string) error {
	p.Account.Password = p.password != ""
	what := "account "
	if before := a.known(p.ID); p.IsTeam() || before != nil && before.load().IsTeam() {
		what = "team "
	}
	row := unsavedRow{number: p.number, record: p.record(), what: what + p.ID.String(), did: did, of: p.ID}
	return a.rows.put(ctx, o, placeOf(p.ID), row, func() { a.keep(p) })
}

// Run stores restrictions that the store refused, and removes what belonged to deleted
// accounts, until ctx is done. Config.Retry must be set.
func (a *Accounts) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.rows.run(ctx) })
	group.Go(func() error { return a.runSweeps(ctx) })
	return group.Wait()
}

// Unsaved returns the restrictions of accounts, keys and invitations that are in effect but
// not durable; nil if there are none.
func (a *Accounts) Unsaved() *Unsaved { return a.rows.unsavedState() }

// Unreadable names the accounts, keys and invitations that are disabled because their
// newest rows cannot be read, such as rows that a newer program wrote.
func (a *Accounts) Unreadable() []string { return a.rows.unreadableTexts() }

// change edits a copy of an account and stores it as the next revision.
func (a *Accounts) change(ctx context.Context, idOrEmail, doing string, o order, edit func(*person) error) (*person, error) {
	a.write.Lock()
	defer a.write.Unlock()
	unlock, err := a.rows.lock(ctx, o)
	switch {
	case err == nil:
		defer unlock()
	case o == onceDurable: // a restriction goes without the lock
		return nil, err
	}
	before, err := a.latest(ctx, o, idOrEmail)
	if err != nil {
		return nil, err
	}
	if before.Unreadable != "" {
		return nil, fmt.Errorf("%w: account %s: %s", ErrUnreadable, before.ID, before.Unreadable)
	}
	p := *before
	if err := edit(&p); err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	p.number = a.rows.next(placeOf(p.ID), p.number)
	if err := a.put(ctx, o, &p, doing); err != nil {
		return nil, fmt.Errorf("account: %s account %s: %w", doing, p.ID, err)
	}
	return &p, nil
}

// countChange charges a change made by the account's user to its rate limit.
func (a *Accounts) countChange(id ID) error {
	return spend(a.byAccount, a.now(), id, "changes")
}

// Disable ends all sessions of an account, and blocks the account and its keys at once
// until Enable is called. Like every restriction, it takes effect before it is stored; the
// account is Unsaved while the store refuses it.
func (a *Accounts) Disable(ctx context.Context, idOrEmail string) (Account, error) {
	return a.changed(ctx, idOrEmail, "disable", atOnce, func(p *person) error {
		if p.Enabled() {
			p.Disabled = wholeSeconds(a.now())
			p.epoch++
		}
		return nil
	})
}

// Enable reverses Disable. Ended sessions stay ended.
func (a *Accounts) Enable(ctx context.Context, idOrEmail string) (Account, error) {
	return a.changed(ctx, idOrEmail, "enable", onceDurable, func(p *person) error {
		p.Disabled = time.Time{}
		return nil
	})
}

// SetRole changes what an account may do.
func (a *Accounts) SetRole(ctx context.Context, idOrEmail string, role Role) (Account, error) {
	o := order(role == RoleUser) // atOnce for the lesser role
	return a.changed(ctx, idOrEmail, "change the role of", o, func(p *person) error {
		p.Role = role
		return role.check()
	})
}

// SetLimits replaces the limits of an account.
func (a *Accounts) SetLimits(ctx context.Context, idOrEmail string, limits Limits) (Account, error) {
	return a.changed(ctx, idOrEmail, "limit", atOnce, func(p *person) error {
		p.Limits = limits
		return nil
	})
}

func (a *Accounts) changed(ctx context.Context, idOrEmail, doing string, o order, edit func(*person) error) (Account, error) {
	p, err := a.change(ctx, idOrEmail, doing, o, edit)
	if err != nil {
		return Account{}, err
	}
	return a.described(p), nil
}
