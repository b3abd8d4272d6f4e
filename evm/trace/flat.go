package trace

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"ashlar/evm/execute"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// Frame is a call, a creation, a self-destruction or a block reward in Parity's format. A
// transaction is a tree of frames, listed in order. TraceAddress is the path from the root:
// [] is the transaction itself, [0,2] the third child of its first child.
type Frame struct {
	Action       json.RawMessage `json:"action"`
	BlockHash    *common.Hash    `json:"blockHash,omitempty"`
	BlockNumber  *uint64         `json:"blockNumber,omitempty"`
	Error        string          `json:"error,omitempty"`
	Result       json.RawMessage `json:"result,omitempty"`
	Subtraces    int             `json:"subtraces"`
	TraceAddress []int           `json:"traceAddress"`
	TxHash       *common.Hash    `json:"transactionHash,omitempty"`
	TxPosition   *uint64         `json:"transactionPosition,omitempty"`
	Type         string          `json:"type"`
}

// Who returns the addresses of a frame as trace_filter matches them: from calls, creates or
// is destroyed; to is called, created or paid. A reward has no from, and a creation that
// failed no to; they are nil.
func (f *Frame) Who() (from, to *common.Address, err error) {
	var action struct {
		From, To, Address, RefundAddress, Author *common.Address
	}
	if err := json.Unmarshal(f.Action, &action); err != nil {
		return from, to, err
	}
	to = cmp.Or(action.To, action.RefundAddress, action.Author)
	if f.Type == "create" && len(f.Result) > 0 {
		var result struct{ Address *common.Address }
		if err := json.Unmarshal(f.Result, &result); err != nil {
			return from, to, err
		}
		to = result.Address
	}
	return cmp.Or(action.From, action.Address), to, nil
}

// parseFrames decodes the result of flatCallTracer. gas and used are those of the first
// frame; go-ethereum reports the transaction's instead, including its intrinsic gas.
func parseFrames(result json.RawMessage, gas, used uint64) ([]Frame, error) {
	var frames []Frame
	if err := json.Unmarshal(result, &frames); err != nil {
		return nil, err
	}
	if len(frames) == 0 {
		return nil, errors.New("trace: flatCallTracer returned no frame")
	}
	var err error
	if frames[0].Action, err = replaced(frames[0].Action, "gas", gas); err != nil {
		return nil, err
	}
	if len(frames[0].Result) > 0 {
		frames[0].Result, err = replaced(frames[0].Result, "gasUsed", used)
	}
	return frames, err
}

// RewardFrame returns the frame of a block's mining reward.
func RewardFrame(block *types.Block, reward *execute.Reward) Frame {
	kind := "block"
	if reward.Uncle {
		kind = "uncle"
	}
	hash, number := block.Hash(), block.NumberU64()
	return Frame{
		Action:    fmt.Appendf(nil, `{"author":"%#x","rewardType":%q,"value":%q}`, reward.Author, kind, reward.Value.Hex()),
		BlockHash: &hash, BlockNumber: &number, TraceAddress: []int{}, Type: "reward",
	}
}

// Append appends the frame. Members that a reward or a self-destruction lacks are null.
func (f *Frame) Append(out []byte) ([]byte, error) {
	type plain Frame
	var value any = (*plain)(f)
	switch f.Type {
	case "suicide":
		value = struct {
			*plain
			Result any `json:"result"`
		}{plain: (*plain)(f)}
	case "reward":
		value = struct {
			*plain
			Result     any `json:"result"`
			TxHash     any `json:"transactionHash"`
			TxPosition any `json:"transactionPosition"`
		}{plain: (*plain)(f)}
	}
	text, err := json.Marshal(value)
	return append(out, text...), err
}

// replaced returns an object with another number in a member.
func replaced(object json.RawMessage, member string, value uint64) (json.RawMessage, error) {
	members := make(map[string]json.RawMessage)
	if err := json.Unmarshal(object, &members); err != nil {
		return nil, err
	}
	if members == nil {
		return object, nil // null
	}
	text, err := json.Marshal(hexutil.Uint64(value))
	if err != nil {
		return nil, err
	}
	members[member] = text
	return json.Marshal(members)
}
