package api

import (
	"context"
	"encoding/json"
	"fmt"

	"ashlar/eth"
	"ashlar/evm/archive"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/forkid"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/params/forks"
)

// capabilityMethods describes the methods that return the rules and the available history.
// They are called rarely, so they use encoding/json.
func (a *API) capabilityMethods() []jsonrpc.Method {
	return []jsonrpc.Method{
		{
			Name: "eth_config", Summary: "Returns the rules of the current, the next and the last fork.",
			Result: eth.Result("Configuration", schema.Object(
				schema.Members{"current": schema.OrNull(forkSchema), "next": schema.OrNull(forkSchema), "last": schema.OrNull(forkSchema)}, nil)),
			Cost: jsonrpc.Light(1), Concerns: jsonrpc.NoContract, Handler: a.forkConfig,
		},
		{
			Name: "eth_capabilities", Summary: "Returns the head, and the oldest block of each kind of history.",
			Result: eth.Result("Capabilities", schema.Object(schema.Members{
				"head":  schema.Object(schema.Members{"number": eth.Quantity, "hash": eth.Hash}, nil),
				"state": historySchema, "tx": historySchema, "logs": historySchema, "receipts": historySchema, "blocks": historySchema, "stateproofs": historySchema,
			}, nil)),
			Cost: jsonrpc.Light(1), Concerns: jsonrpc.NoContract, Handler: a.capabilities,
		},
	}
}

// head returns the header of the chain's head, for methods without parameters.
func (a *API) head(ctx context.Context, params []byte) (*archive.Header, error) {
	if args := parameter.Read(params, 0, 0); args.Err != nil {
		return nil, args.Err
	}
	view, err := a.chain.View()
	if err != nil {
		return nil, err
	}
	return view.Header(ctx, view.Head().Number)
}

// rules are the rules of one fork, as defined in EIP-7910.
type rules struct {
	ActivationTime  uint64                    `json:"activationTime"`
	BlobSchedule    *params.BlobConfig        `json:"blobSchedule"`
	ChainID         *hexutil.Big              `json:"chainId"`
	ForkID          hexutil.Bytes             `json:"forkId"`
	Precompiles     map[string]common.Address `json:"precompiles"`
	SystemContracts map[string]common.Address `json:"systemContracts"`
}

// forkConfig answers eth_config (EIP-7910): the current rules, those of the next scheduled
// fork, and those of the last fork.
func (a *API) forkConfig(ctx context.Context, params, out []byte) ([]byte, error) {
	head, err := a.head(ctx, params)
	if err != nil {
		return out, err
	}
	view, err := a.chain.View()
	if err != nil {
		return out, err
	}
	genesis, err := view.Header(ctx, 0)
	if err != nil {
		return out, err
	}
	return appendJSON(out, forksAt(a.chain.Executor().Config(), genesis.Header, head.Time))
}

// forkRules are the rules of the current fork, those of the next scheduled one, and those of the
// last one, nil without a next.
type forkRules struct {
	Current *rules `json:"current"`
	Next    *rules `json:"next"`
	Last    *rules `json:"last"`
}

// forksAt returns the rules around a time. Forks follow each other by their times: in the order
// of go-ethereum's names all BPO forks come before Amsterdam, whenever they are scheduled.
func forksAt(config *params.ChainConfig, genesis *types.Header, time uint64) forkRules {
	var current, next, last *uint64
	for fork := forks.Shanghai; fork <= forks.Bogota; fork++ {
		switch at := config.Timestamp(fork); {
		case at == nil:
		case *at <= time:
			current = later(current, at)
		case next == nil || *at < *next:
			next, last = at, later(last, at)
		default:
			last = later(last, at)
		}
	}
	return forkRules{rulesAt(config, genesis, current), rulesAt(config, genesis, next), rulesAt(config, genesis, last)}
}

// later returns the later of two times, the first of which may be nil.
func later(a, b *uint64) *uint64 {
	if a != nil && *a > *b {
		return a
	}
	return b
}

// blobsAt returns the schedule of blobs that is in force at a time, nil before Cancun.
func blobsAt(config *params.ChainConfig, time uint64) (blobs *params.BlobConfig) {
	for fork := forks.Cancun; fork <= forks.BPO5; fork++ {
		if at := config.Timestamp(fork); at != nil && *at <= time {
			blobs = config.BlobConfig(fork)
		}
	}
	return blobs
}

// rulesAt returns the rules of the fork at a time, or nil if at is nil.
func rulesAt(config *params.ChainConfig, genesis *types.Header, at *uint64) *rules {
	if at == nil {
		return nil
	}
	id := forkid.NewID(config, types.NewBlockWithHeader(genesis), ^uint64(0), *at).Hash
	r := &rules{
		ActivationTime:  *at,
		BlobSchedule:    blobsAt(config, *at),
		ChainID:         (*hexutil.Big)(config.ChainID),
		ForkID:          id[:],
		Precompiles:     make(map[string]common.Address),
		SystemContracts: config.ActiveSystemContracts(*at),
	}
	if genesis.Time >= *at {
		r.ActivationTime = 0
	}
	for address, contract := range vm.ActivePrecompiledContracts(config.Rules(config.LondonBlock, true, *at)) {
		r.Precompiles[contract.Name()] = address
	}
	return r
}

// history is the first block of a kind of history.
type history struct {
	Disabled    bool           `json:"disabled"`
	OldestBlock hexutil.Uint64 `json:"oldestBlock"`
}

// capabilities answers eth_capabilities. An archive that began with the genesis has all
// history of every block.
func (a *API) capabilities(ctx context.Context, params, out []byte) ([]byte, error) {
	if args := parameter.Read(params, 0, 0); args.Err != nil {
		return out, args.Err
	}
	view, err := a.chain.View()
	if err != nil {
		return out, err
	}
	head, err := view.Header(ctx, view.Head().Number)
	if err != nil {
		return out, err
	}
	type ref struct {
		Number *hexutil.Big `json:"number"`
		Hash   common.Hash  `json:"hash"`
	}
	extent := view.Extent()
	since := func(first uint64) history { return history{OldestBlock: hexutil.Uint64(first)} }
	blocks := since(extent.Blocks)
	return appendJSON(out, struct {
		Head     ref     `json:"head"`
		State    history `json:"state"`
		Tx       history `json:"tx"`
		Logs     history `json:"logs"`
		Receipts history `json:"receipts"`
		Blocks   history `json:"blocks"`
		Proofs   history `json:"stateproofs"`
	}{
		Head:  ref{(*hexutil.Big)(head.Number), head.Hash},
		State: since(extent.State), Tx: blocks, Logs: blocks, Receipts: blocks, Blocks: blocks, Proofs: since(extent.Tries),
	})
}

// appendJSON appends a value encoded by encoding/json.
func appendJSON(out []byte, value any) ([]byte, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return out, fmt.Errorf("encode answer: %w", err)
	}
	return append(out, encoded...), nil
}
