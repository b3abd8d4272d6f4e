// Package engine is the Engine API: how an Ethereum consensus client tells an
// execution client which blocks there are and which of them is the head.
//
// [API] reads the calls, checks of them what can be checked without a chain (the
// fields that each version has, the fork that it is for, blob hashes, the order of
// requests, the block's hash) and passes blocks and forkchoices on to a [Chain];
// [Server] is the listener, which lets in only who knows the [Secret]. Nothing that
// comes is believed: whether a block is right is for the chain to find out. What
// the client is relied on for is which of several right branches is the chain.
//
// The rules are those of ethereum/execution-apis, src/engine, from Paris to Osaka.
// Blocks are not built here: calls that ask for that are refused by name.
package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
)

// Verdict is what is known of a block.
type Verdict string

// The verdicts, as they are called on the wire.
const (
	Valid   Verdict = "VALID"
	Invalid Verdict = "INVALID"
	// InvalidBlockHash is what Invalid is called by engine_newPayloadV1 where the hash
	// is not that of the block.
	InvalidBlockHash Verdict = "INVALID_BLOCK_HASH"
	// Syncing says that blocks are missing below it.
	Syncing Verdict = "SYNCING"
	// Accepted says that it leaves the chain where blocks cannot be executed any
	// more, so that it was not checked.
	Accepted Verdict = "ACCEPTED"
)

// Status is what a chain says of a block.
type Status struct {
	Verdict Verdict
	// LatestValid is the block itself where it is valid, and its last valid ancestor
	// where it is not: zero for one with proof of work, nil where it is not known.
	LatestValid *common.Hash
	Why         string // it is invalid
}

// Forkchoice is what a consensus client says of the chain: which block is its head,
// and which of the blocks up to that are safe and finalized, zero where none is.
type Forkchoice struct{ Head, Safe, Finalized common.Hash }

var (
	// ErrInconsistent says that the safe or the finalized block is not on the branch of the head.
	ErrInconsistent = errors.New("the safe or the finalized block is not an ancestor of the head, or not known")
	// ErrTooDeep says that the head leaves the chain below what is final.
	ErrTooDeep = errors.New("the head leaves the chain below blocks that are settled")
)

// Chain is a chain that a consensus client drives. Its methods may be called from
// many goroutines at once. Their errors, the two above aside, are faults of the
// chain itself.
type Chain interface {
	// NewPayload checks a block and keeps it, if it can. The head stays where it is.
	NewPayload(ctx context.Context, block *types.Block) (Status, error)
	// UpdateForkchoice makes a valid block the head; whatever it returns, other than
	// Valid and no error, the head is where it was. It is ErrInconsistent or ErrTooDeep
	// where the forkchoice cannot be followed though its head is valid.
	UpdateForkchoice(ctx context.Context, to Forkchoice) (Status, error)
}

// Config is what an API is made of.
type Config struct {
	Chain  Chain
	Rules  *params.ChainConfig // which fork is when
	Client ClientVersion       // who answers
	Now    func() time.Time    // nil: time.Now
}

// API answers a consensus client. It may be used from many goroutines at once.
type API struct {
	config Config

	mu    sync.Mutex
	heard Heard // guarded by mu
}

// Heard says when a consensus client was last heard: zero where it was not.
type Heard struct {
	Client     string // what it calls itself, if it said so
	Payload    time.Time
	Forkchoice time.Time
}

// New makes the API of a chain.
func New(config Config) *API {
	if config.Now == nil {
		config.Now = time.Now
	}
	return &API{config: config}
}

// Heard says when the consensus client was last heard.
func (a *API) Heard() Heard {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.heard
}

// hears takes note that the consensus client calls.
func (a *API) hears(note func(*Heard)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	note(&a.heard)
}

// Methods are all methods of the API by name.
func (a *API) Methods() jsonrpc.Handlers {
	methods := jsonrpc.Handlers{
		"engine_exchangeCapabilities": a.exchangeCapabilities,
		"engine_getClientVersionV1":   a.clientVersion,
	}
	for _, v := range payloadVersions() {
		methods["engine_newPayload"+v.name] = a.newPayload(v)
	}
	for _, v := range attributesVersions() {
		methods["engine_forkchoiceUpdated"+v.name] = a.forkchoiceUpdated(v)
	}
	for _, name := range refused() {
		methods[name] = refuseBuilding
	}
	return methods
}
