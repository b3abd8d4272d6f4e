// Package engine is the Engine API, through which an Ethereum consensus client sends
// blocks to an execution client and says which of them is the head.
//
// [API] reads the calls, makes the checks that need no chain (the fields and the fork of
// each version, blob hashes, the order of requests, the block's hash) and passes blocks
// and forkchoices on to a [Chain]. [Server] is the listener; it admits only clients that
// hold the [Secret]. No block is trusted: the chain checks each. The client is trusted
// only to choose between valid branches.
//
// The rules are those of ethereum/execution-apis, src/engine, from Paris to Amsterdam.
// Ashlar builds no blocks: calls that ask for one are refused by name.
package engine

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
)

// Verdict is the status of a block.
type Verdict string

// The verdicts, as the wire names them.
const (
	Valid   Verdict = "VALID"
	Invalid Verdict = "INVALID"
	// InvalidBlockHash is what engine_newPayloadV1 answers instead of Invalid if the block
	// does not have the stated hash.
	InvalidBlockHash Verdict = "INVALID_BLOCK_HASH"
	// Syncing means that ancestors of the block are missing.
	Syncing Verdict = "SYNCING"
	// Accepted means that the block was not checked: it branches off below the blocks on
	// which others can still be executed.
	Accepted Verdict = "ACCEPTED"
)

// Status is the answer of a chain about a block.
type Status struct {
	Verdict Verdict
	// LatestValid is the block itself if it is valid, else its last valid ancestor. It is
	// zero for an ancestor with proof of work, and nil if it is unknown.
	LatestValid *common.Hash
	Why         string // the block is invalid
}

// Forkchoice names the head, and the safe and finalized blocks among its ancestors. Zero
// means that there is none.
type Forkchoice struct{ Head, Safe, Finalized common.Hash }

var (
	// ErrInconsistent means that the safe or the finalized block is not an ancestor of the head.
	ErrInconsistent = errors.New("the safe or the finalized block is unknown, or not an ancestor of the head")
	// ErrTooDeep means that the head branches off below settled blocks.
	ErrTooDeep = errors.New("the head branches off below settled blocks")
)

// Chain is a chain that a consensus client drives. Its methods may be called from
// many goroutines at once. Errors other than the two above are faults of the chain itself.
type Chain interface {
	// NewPayload checks a block and keeps it, if it can. The head stays where it is.
	NewPayload(ctx context.Context, block *types.Block) (Status, error)
	// UpdateForkchoice makes a valid block the head. Unless it returns Valid and no error,
	// the head stays where it is. It returns ErrInconsistent or ErrTooDeep if the head is
	// valid but the forkchoice cannot be followed.
	UpdateForkchoice(ctx context.Context, to Forkchoice) (Status, error)
	// Body returns the body of the block with a hash, or nil if the chain does not have it.
	Body(ctx context.Context, hash common.Hash) (*Body, error)
	// BodyAt returns the body of the block with a number, or nil if the chain does not have
	// it. above says that the number is above the head's.
	BodyAt(ctx context.Context, number uint64) (body *Body, above bool, err error)
}

// Body is the part of a block that is not in its header.
type Body struct {
	Transactions [][]byte          // as they are hashed (EIP-2718)
	Withdrawals  types.Withdrawals // nil before Shanghai
	AccessList   []byte            // RLP; nil before Amsterdam
}

// Config configures an API.
type Config struct {
	Chain  Chain
	Rules  *params.ChainConfig // the schedule of forks
	Client ClientVersion       // this program
	Now    func() time.Time    // nil: time.Now
	Log    *slog.Logger        // nil: nothing is logged
}

// API answers a consensus client. It may be used from many goroutines at once.
type API struct {
	config Config
	warned sync.Once // that no blocks are built

	mu      sync.Mutex
	last    LastCalls // guarded by mu
	answers Answers   // guarded by mu
}

// LastCalls says when a consensus client last called; the times are zero before its first call.
type LastCalls struct {
	Client     string // its name, if it has sent one
	Payload    time.Time
	Forkchoice time.Time
}

// Answers says how often blocks and heads of a consensus client were answered with a verdict. InvalidBlockHash counts as
// Invalid.
type Answers struct{ Payloads, Forkchoices map[Verdict]uint64 }

func newAnswers() Answers {
	none := func() map[Verdict]uint64 { return map[Verdict]uint64{Valid: 0, Invalid: 0, Syncing: 0, Accepted: 0} }
	return Answers{none(), none()}
}

// New makes the API of a chain.
func New(config Config) *API {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	return &API{config: config, answers: newAnswers()}
}

// LastCalls returns when the consensus client last called.
func (a *API) LastCalls() LastCalls {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last
}

// Answers returns how often the consensus client's blocks and heads were answered with a verdict.
func (a *API) Answers() Answers {
	a.mu.Lock()
	defer a.mu.Unlock()
	return Answers{maps.Clone(a.answers.Payloads), maps.Clone(a.answers.Forkchoices)}
}

// count counts an answer of some.
func (a *API) count(some map[Verdict]uint64, verdict Verdict) {
	if verdict == InvalidBlockHash {
		verdict = Invalid
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	some[verdict]++
}

// record notes a call of the consensus client.
func (a *API) record(note func(*LastCalls)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	note(&a.last)
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
	for _, v := range []string{"V1", "V2"} {
		methods["engine_getPayloadBodiesByHash"+v] = a.bodiesByHash(v == "V2")
		methods["engine_getPayloadBodiesByRange"+v] = a.bodiesByRange(v == "V2")
	}
	for _, v := range []string{"V1", "V2", "V3"} {
		methods["engine_getBlobs"+v] = a.blobs(v)
	}
	for _, name := range refused() {
		methods[name] = refuseBuilding
	}
	return methods
}
