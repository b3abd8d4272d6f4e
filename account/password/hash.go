// Package password hashes and checks passwords.
//
// Passwords are hashed with argon2id (RFC 9106). The parameters are stored with each hash,
// so they can be raised: old hashes are checked with their own parameters, and
// [Hasher.Check] reports when a password should be rehashed. Checking against no hash takes
// as long as checking against one, so timing does not reveal whether a hash exists.
//
// [Guessable] recognizes passwords that an attacker tries first.
//
// Hashing deliberately takes much memory. A [Hasher] runs a few hashes at a time and queues
// a few more; beyond that it fails with [ErrBusy].
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

// ErrBusy means that too many passwords are being hashed.
var ErrBusy = errors.New("too many passwords are being checked: try again in a moment")

// Params are the parameters of argon2id.
type Params struct {
	MemoryKiB uint32
	Passes    uint32
	Lanes     uint8
}

// DefaultParams returns OWASP's first recommendation: much memory for a short time, on one
// processor.
func DefaultParams() Params { return Params{MemoryKiB: 46 << 10, Passes: 1, Lanes: 1} }

const (
	saltLen = 16
	hashLen = 32
	// maxMemoryKiB and maxPasses bound the cost of a stored hash.
	maxMemoryKiB = 1 << 20
	maxPasses    = 100
	// maxHashing is how many hashes run at once if there are enough processors, maxWaiting
	// how many may be queued.
	maxHashing = 4
	maxWaiting = 64
)

// Hasher hashes passwords. It is safe for concurrent use.
type Hasher struct {
	params Params
	pool   *limit.Pool
	absent parsed // checked in place of a missing hash
}

// NewHasher returns a Hasher that creates hashes with params.
func NewHasher(params Params) *Hasher {
	h := &Hasher{params: params, pool: limit.NewPool(hashesAtOnce(), maxWaiting)}
	h.absent = parsed{params: params, salt: make([]byte, saltLen), hash: make([]byte, hashLen)}
	return h
}

// hashesAtOnce is how many passwords are hashed at the same time. It leaves processors for requests.
func hashesAtOnce() int { return min(max(1, runtime.GOMAXPROCS(0)/2), maxHashing) }

// Hash returns the hash of a password, in the form to store.
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

// Check reports whether stored is the hash of password, and whether the password should be
// rehashed because the parameters have changed. If stored is empty, no password is right,
// but the work is the same.
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

// enter waits for a free slot, first come, first served. leave frees it.
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

// parsed is a decoded hash.
type parsed struct {
	params Params
	salt   []byte
	hash   []byte
}

func (p parsed) derive(password string, n int) []byte {
	return argon2.IDKey([]byte(password), p.salt, p.params.Passes, p.params.MemoryKiB, p.params.Lanes, uint32(n))
}

// String returns the hash in its stored form, the PHC string format.
func (p parsed) String() string {
	text := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s",
		argon2.Version, p.params.MemoryKiB, p.params.Passes, p.params.Lanes, text(p.salt), text(p.hash))
}

// Valid returns an error unless stored is a valid hash.
func Valid(stored string) error {
	_, err := parse(stored)
	return err
}

// parse is the reverse of String. Its errors reveal neither salt nor hash.
func parse(stored string) (p parsed, err error) {
	parts := strings.Split(stored, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" {
		return p, errors.New("a stored password is not an argon2id hash")
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
		return p, errors.New("a stored password has a salt or a hash of unexpected form")
	}
	p.salt, p.hash = salt, hash
	// Only the canonical form is accepted.
	if p.String() != stored {
		return p, errors.New("a stored password is not in canonical form")
	}
	return p, nil
}
