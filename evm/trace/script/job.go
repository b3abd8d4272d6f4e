package script

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"ashlar/evm/execute"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rlp"
)

// job is what a worker is to trace.
type job struct {
	Chain   json.RawMessage // the chain's configuration
	CallGas uint64          // the most gas of a call
	Config  json.RawMessage // of the trace, as the client sent it

	// Transactions of a block, from First up to but without End, on the block's parent. A
	// call takes the place of the transaction First.
	Parent, Block encoded
	Senders       []common.Address
	Stored        bool // the server has what an earlier execution of the block has left
	First, End    int

	// A call, after the block with a header, or in the block above.
	Header      encoded
	Message     *execute.Message
	CallOptions execute.CallOptions
}

// encoded is the RLP of a header or a block.
type encoded []byte

func encode(value any) (encoded, error) { return rlp.EncodeToBytes(value) }

// into decodes what has been encoded.
func (e encoded) into(value any) error { return rlp.DecodeBytes(e, value) }

// encode returns the job of a question as JSON.
func (q *Question) encode() (text []byte, err error) {
	j := job{CallGas: q.Executor.MaxCallGas(), Config: q.Config.Raw(), First: q.First, End: q.End, Senders: q.Options.Senders, Stored: q.Options.Stored != nil, CallOptions: withCodes(q.CallOptions)}
	if j.Chain, err = json.Marshal(q.Executor.Config()); err != nil {
		return nil, fmt.Errorf("encode chain configuration: %w", err)
	}
	if q.Block != nil {
		j.Parent, j.Block, err = q.encodeBlocks()
	} else {
		j.Header, err = encode(q.At.Header)
	}
	if err != nil {
		return nil, fmt.Errorf("encode block: %w", err)
	}
	if q.Message != nil {
		j.Message = withLists(q.Message)
	}
	return json.Marshal(&j)
}

// encodeBlocks returns the RLP of the header of the block's parent, and of the block.
func (q *Question) encodeBlocks() (parent, block encoded, err error) {
	whole, err := q.Block.Whole()
	if err != nil {
		return nil, nil, err
	}
	if parent, err = encode(q.Parent.Header); err == nil {
		block, err = encode(whole)
	}
	return parent, block, err
}

// withLists returns a message whose access list has lists of slots: the library refuses to
// decode one without.
func withLists(m *execute.Message) *execute.Message {
	copied := *m
	copied.AccessList = slices.Clone(m.AccessList)
	for i := range copied.AccessList {
		if copied.AccessList[i].StorageKeys == nil {
			copied.AccessList[i].StorageKeys = []common.Hash{}
		}
	}
	return &copied
}

// withCodes returns options without nil slices as codes, which override a code with none: as JSON, such an
// override would be left out.
func withCodes(options execute.CallOptions) execute.CallOptions {
	options.State = maps.Clone(options.State)
	for address, account := range options.State {
		if account.Code != nil && *account.Code == nil {
			account.Code = &[]byte{}
			options.State[address] = account
		}
	}
	return options
}

// chainConfig decodes the chain's configuration.
func (j *job) chainConfig() (*params.ChainConfig, error) {
	config := new(params.ChainConfig)
	if err := json.Unmarshal(j.Chain, config); err != nil {
		return nil, fmt.Errorf("decode chain configuration: %w", err)
	}
	return config, nil
}
