// Package password keeps passwords of people in a form from which they cannot be
// read, and checks them without telling more than right or wrong.
//
// Passwords are hashed with argon2id (RFC 9106). The parameters stand beside each
// hash, so that they can be raised: old hashes go on to be checked by their own, and
// [Hasher.Check] says when one should be made anew. A check of nothing takes as long
// as one of a hash, so how long it takes does not tell whether there is one.
//
// What a password must not be is what everybody tries first: [Guessable] knows that.
//
// Hashing takes much memory on purpose. A [Hasher] does a few at a time and lets a
// few more wait; beyond that it refuses with [ErrBusy].
package password

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"ashlar/limit"

	"golang.org/x/crypto/argon2"
)

// ErrBusy says that too many passwords are being hashed.
var ErrBusy = errors.New("too many passwords are being checked: try again in a moment")

// Params are what argon2id works with.
type Params struct {
	MemoryKiB uint32
	Passes    uint32
	Lanes     uint8
}

// DefaultParams are the first that OWASP recommends: much memory for a short time, on one
// processor.
func DefaultParams() Params { return Params{MemoryKiB: 46 << 10, Passes: 1, Lanes: 1} }

const (
	saltLen = 16
	hashLen = 32
	// maxMemoryKiB and maxPasses bound what a stored hash can ask for.
	maxMemoryKiB = 1 << 20
	maxPasses    = 100
	// maxHashing is how many are hashed at once where there are processors for them, and
	// maxWaiting how many may wait.
	maxHashing = 4
	maxWaiting = 64
)

// Hasher hashes passwords. It may be used from many goroutines at once.
type Hasher struct {
	params Params
	slots  int // hashes at once
	pool   *limit.Pool
	absent parsed // what is checked where there is no hash
}

// NewHasher returns a hasher that makes hashes with params.
func NewHasher(params Params) *Hasher {
	slots := min(max(1, runtime.GOMAXPROCS(0)/2), maxHashing) // the others answer requests meanwhile
	h := &Hasher{params: params, slots: slots, pool: limit.NewPool(slots, maxWaiting)}
	h.absent = parsed{params: params, salt: make([]byte, saltLen), hash: make([]byte, hashLen)}
	return h
}

// Hash returns what to store of a password.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	leave, err := h.enter(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	p := parsed{params: h.params, salt: make([]byte, saltLen)}
	_, _ = rand.Read(p.salt) // documented never to fail
	p.hash = p.derive(password, hashLen)
	return p.String(), nil
}

// Check says whether a password is the one that stored was made of, and whether it
// should be hashed anew because other parameters are used now. Where stored is empty
// nothing is right, after as much work.
func (h *Hasher) Check(ctx context.Context, stored, password string) (right, outdated bool, err error) {
	p := h.absent
	if stored != "" {
		if p, err = parse(stored); err != nil {
			return false, false, err
		}
	}
	leave, err := h.enter(ctx)
	if err != nil {
		return false, false, err
	}
	defer leave()
	same := subtle.ConstantTimeCompare(p.derive(password, len(p.hash)), p.hash) == 1
	right = same && stored != ""
	return right, right && p.params != h.params, nil
}

// enter waits for a turn, which all take alike, and returns what ends it.
func (h *Hasher) enter(ctx context.Context) (leave func(), err error) {
	share := new(limit.Share)
	switch err := h.pool.Enter(ctx, share); {
	case errors.Is(err, limit.ErrBusy):
		return nil, ErrBusy
	case err != nil:
		return nil, err
	}
	return func() { h.pool.Leave(share) }, nil
}

// parsed is what is stored of a password, taken apart.
type parsed struct {
	params Params
	salt   []byte
	hash   []byte
}

func (p parsed) derive(password string, n int) []byte {
	return argon2.IDKey([]byte(password), p.salt, p.params.Passes, p.params.MemoryKiB, p.params.Lanes, uint32(n))
}

// String is p as it is stored, in the form that most programs use.
func (p parsed) String() string {
	text := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s",
		argon2.Version, p.params.MemoryKiB, p.params.Passes, p.params.Lanes, text(p.salt), text(p.hash))
}

// Valid says what is wrong with something that is to be a stored hash.
func Valid(stored string) error {
	_, err := parse(stored)
	return err
}

// parse is the reverse of String. Its errors repeat nothing of what is stored.
func parse(stored string) (p parsed, err error) {
	parts := strings.Split(stored, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" {
		return p, errors.New("a stored password is no argon2id hash")
	}
	if want := fmt.Sprintf("v=%d", argon2.Version); parts[2] != want {
		return p, fmt.Errorf("a stored password has the version %q, expected %s", parts[2], want)
	}
	n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &p.params.MemoryKiB, &p.params.Passes, &p.params.Lanes)
	if err != nil || n != 3 {
		return p, fmt.Errorf("a stored password has the parameters %q, expected m=KIB,t=PASSES,p=LANES", parts[3])
	}
	if p.params.MemoryKiB > maxMemoryKiB || p.params.Passes < 1 || p.params.Passes > maxPasses || p.params.Lanes < 1 {
		return p, fmt.Errorf("a stored password has the parameters %q, which are out of range", parts[3])
	}
	salt, saltErr := base64.RawStdEncoding.DecodeString(parts[4])
	hash, hashErr := base64.RawStdEncoding.DecodeString(parts[5])
	if err := errors.Join(saltErr, hashErr); err != nil || len(salt) < 8 || len(salt) > 64 || len(hash) < 16 || len(hash) > 64 {
		return p, errors.New("a stored password has a salt or a hash of an unexpected form")
	}
	p.salt, p.hash = salt, hash
	// What another form of the same would be read as is not what was written.
	if p.String() != stored {
		return p, errors.New("a stored password is not written as expected")
	}
	return p, nil
}
