package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"ashlar/chain"
	"ashlar/eth"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/rlp"
)

// Limits of one simulation, the first two as in geth.
const (
	maxSimulatedCallsPerBlock = 5_000
	maxSimulatedCalls         = 10_000
	// maxSimulatedWithdrawals bounds what no gas pays for. A real block has 16 at most.
	maxSimulatedWithdrawals = 10_000
)

// codeVMError is geth's code for a simulated call that failed other than by a revert.
const codeVMError = -32015

// simulateMethods describes the method that simulates blocks.
func (a *API) simulateMethods(d *eth.Description) []jsonrpc.Method {
	errs := append(simulationErrors(
		execute.ErrSimulatedNumber, execute.ErrSimulatedTime, execute.ErrSimulatedBlocks, execute.ErrSimulatedGas, core.ErrNonceTooLow, core.ErrNonceTooHigh,
		core.ErrFeeCapTooLow, core.ErrIntrinsicGas, core.ErrInsufficientFunds), blockErrors...)
	return []jsonrpc.Method{
		d.Method("eth_simulateV1", eth.Own{Handler: a.simulate, Cost: jsonrpc.Heavy(200), Result: schema.Array(simulatedBlockSchema), Errors: errs}),
	}
}

// simulatedBlockSchema is a block of the result of a simulation.
var simulatedBlockSchema = schema.Object(schema.Members{"number": eth.Quantity, "hash": eth.Hash, "calls": schema.Array(schema.Object(
	schema.Members{"returnData": eth.Data, "logs": schema.Array(schema.Object(nil, nil)), "gasUsed": eth.Quantity, "maxUsedGas": eth.Quantity, "status": eth.Quantity},
	schema.Members{"error": schema.Object(schema.Members{"code": schema.Any, "message": schema.String}, schema.Members{"data": schema.String})}))}, nil).
	Named("SimulatedBlock", "A block with what became of its messages.")

// simulation is the parameters of eth_simulateV1.
type simulation struct {
	blocks      []execute.BlockCalls
	calls       counted[execute.Message]
	withdrawals counted[types.Withdrawal]
	options     execute.SimulationOptions
	whole       bool // return whole transactions
}

// parseSimulation decodes the payload of eth_simulateV1.
func parseSimulation(raw []byte) (s simulation, err error) {
	s.calls.parse, s.calls.most = parseMessage, maxSimulatedCalls
	s.withdrawals.parse, s.withdrawals.most = parseWithdrawal, maxSimulatedWithdrawals
	err = parseObject(raw, func(name jsonrpc.Name, value []byte) error {
		switch {
		case name.Is("blockStateCalls"):
			return jsonrpc.Set(&s.blocks, value, parseFirst(execute.MaxSimulatedBlocks+1, s.parseBlockCalls))
		case name.Is("traceTransfers"):
			return jsonrpc.Set(&s.options.Transfers, value, parameter.ParseBool)
		case name.Is("validation"):
			return jsonrpc.Set(&s.options.Validate, value, parameter.ParseBool)
		case name.Is("returnFullTransactions"):
			return jsonrpc.Set(&s.whole, value, parameter.ParseBool)
		}
		return nil
	})
	return s, err
}

// check returns an error if a simulation is empty or too large.
func (s *simulation) check() error {
	for i := range s.blocks {
		if calls := len(s.blocks[i].Calls); calls > maxSimulatedCallsPerBlock {
			return jsonrpc.Errorf(jsonrpc.CodeClientLimit, "too many calls in block: %d > %d", calls, maxSimulatedCallsPerBlock)
		}
	}
	switch {
	case len(s.blocks) == 0:
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "empty input"}
	case len(s.blocks) > execute.MaxSimulatedBlocks:
		return simulationError(execute.ErrSimulatedBlocks)
	}
	if err := s.calls.check("calls"); err != nil {
		return err
	}
	return s.withdrawals.check("withdrawals")
}

// parseBlockCalls decodes a block of calls. As in geth, and unlike elsewhere, unknown
// members of its overrides are errors.
func (s *simulation) parseBlockCalls(raw []byte) (b execute.BlockCalls, err error) {
	err = parseObject(raw, func(name jsonrpc.Name, value []byte) error {
		switch {
		case name.Is("blockOverrides"):
			if jsonrpc.IsNull(value) {
				return nil
			}
			return s.parseOverrides(value, &b)
		case name.Is("stateOverrides"):
			return jsonrpc.Set(&b.State, value, parseSimulatedStates)
		case name.Is("calls"):
			return jsonrpc.Set(&b.Calls, value, parseList(s.calls.next))
		}
		return nil
	})
	return b, err
}

// parseOverrides decodes the overrides of a simulated block.
func (s *simulation) parseOverrides(raw []byte, b *execute.BlockCalls) error {
	rest := []byte{'{'} // members that calls also accept
	err := parseObject(raw, func(name jsonrpc.Name, value []byte) error {
		switch {
		case name.Is("beaconRoot"):
			return jsonrpc.SetOptional(&b.BeaconRoot, value, parameter.ParseHash)
		case name.Is("withdrawals"):
			return jsonrpc.Set((*[]*types.Withdrawal)(&b.Withdrawals), value, parseList(s.withdrawals.next))
		case name.Is("number"), name.Is("difficulty"), name.Is("time"), name.Is("gasLimit"), name.Is("feeRecipient"),
			name.Is("prevRandao"), name.Is("baseFeePerGas"), name.Is("blobBaseFee"):
			if len(rest) > 1 {
				rest = append(rest, ',')
			}
			rest = append(jsonrpc.AppendString(rest, string(name)), ':')
			rest = append(rest, value...)
			return nil
		}
		return errors.New("unknown block override")
	})
	if err != nil {
		return err
	}
	b.Block, err = parseBlockOverrides(append(rest, '}'))
	return err
}

func parseWithdrawal(raw []byte) (*types.Withdrawal, error) {
	w := new(types.Withdrawal)
	return w, parseObject(raw, func(name jsonrpc.Name, value []byte) error {
		switch {
		case name.Is("index"):
			return jsonrpc.Set(&w.Index, value, parameter.ParseUint64)
		case name.Is("validatorIndex"):
			return jsonrpc.Set(&w.Validator, value, parameter.ParseUint64)
		case name.Is("address"):
			return jsonrpc.Set(&w.Address, value, parameter.ParseAddress)
		case name.Is("amount"):
			return jsonrpc.Set(&w.Amount, value, parameter.ParseUint64)
		}
		return nil
	})
}

// simulate answers eth_simulateV1.
func (a *API) simulate(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 2, 1)
	wanted, id := parameter.Decode(&args, 0, parseSimulation), args.Block(1)
	if args.Err != nil {
		return out, args.Err
	}
	if err := wanted.check(); err != nil {
		return out, err
	}
	view, number, err := a.at(ctx, id)
	if err != nil {
		return out, err
	}
	room := jsonrpc.RoomFor(ctx, out)
	made := append(out, '[')
	err = view.SimulateBlocks(ctx, number, wanted.blocks, wanted.options, func(simulated *execute.SimulatedBlock) (err error) {
		if len(made) > len(out)+1 {
			made = append(made, ',')
		}
		if made, err = a.appendSimulated(made, simulated, wanted.whole, room); err != nil {
			return err
		}
		return room.Check(len(made))
	})
	if err != nil {
		return out, simulationError(callError(ctx, err, out))
	}
	return append(made, ']'), nil
}

// appendSimulated appends a block with the results of its calls.
func (a *API) appendSimulated(out []byte, simulated *execute.SimulatedBlock, whole bool, room jsonrpc.Room) ([]byte, error) {
	b, err := a.newBlock(simulated.Block, simulated.Senders)
	if err != nil {
		return out, err
	}
	defer b.release()
	if out, err = b.appendBlock(out, whole, room); err != nil {
		return out, err
	}
	out = append(out[:len(out)-1], `,"calls":`...)
	out, err = room.AppendArray(out, len(simulated.Calls), func(out []byte, i int) ([]byte, error) {
		return appendSimulatedCall(out, &simulated.Calls[i]), nil
	})
	return append(out, '}'), err
}

// newBlock prepares a block that is not on the chain for encoding. Its hash may be that of a block on the
// chain with another body, so its transactions are hashed here.
func (a *API) newBlock(made *types.Block, senders []common.Address) (*block, error) {
	header := made.Header()
	encoded, err := rlp.EncodeToBytes(header)
	if err != nil {
		return nil, err
	}
	b := &block{
		Header: &archive.Header{Header: header, Hash: made.Hash(), Size: made.Size(), RLP: encoded},
		hashes: hashesOf(made.Transactions()),
		api:    a, workspace: a.workspaces.take(),
	}
	if header.BaseFee != nil {
		b.fee.SetFromBig(header.BaseFee)
		b.baseFee = &b.fee
	}
	if b.body, err = archive.NewBody(made, senders); err != nil {
		b.release()
		return nil, err
	}
	return b, nil
}

// appendSimulatedCall appends the result of a call.
func appendSimulatedCall(out []byte, c *execute.SimulatedCall) []byte {
	out = appendHex(append(out, `{"returnData":`...), c.Output)
	out = append(out, `,"logs":[`...)
	var place logPlace
	for i, log := range c.Logs {
		if i > 0 {
			out = append(out, ',')
		}
		place.enter(chain.Ref{Number: log.BlockNumber, Hash: log.BlockHash}, log.BlockTimestamp)
		place.transactionHash, place.transaction, place.position = log.TxHash[:], uint64(log.TxIndex), uint64(log.Index)
		var topics bytes.Buffer
		for _, topic := range log.Topics {
			topics.Write(topic[:])
		}
		out = appendLog(out, &archive.Log{Address: log.Address, Topics: topics.Bytes(), Data: log.Data}, &place)
	}
	out = appendQuantity(append(out, `],"gasUsed":`...), c.GasUsed)
	out = appendQuantity(append(out, `,"maxUsedGas":`...), c.MaxUsed)
	if c.Err == nil {
		return append(out, `,"status":"0x1"}`...)
	}
	failure := &jsonrpc.Error{Code: codeVMError, Message: c.Err.Error()}
	if reverted := (*execute.RevertError)(nil); errors.As(c.Err, &reverted) {
		failure = &jsonrpc.Error{Code: jsonrpc.CodeReverted, Message: reverted.Error(), Data: hexutil.Encode(reverted.Data)}
	}
	out = append(out, `,"status":"0x0","error":`...)
	out = append(out, fmt.Sprintf(`{"message":%s,"code":%d`, jsonrpc.AppendString(nil, failure.Message), failure.Code)...)
	if data, ok := failure.Data.(string); ok {
		out = jsonrpc.AppendString(append(out, `,"data":`...), data)
	}
	return append(out, "}}"...)
}

// rejections are the errors that end a simulation, with their codes.
var rejections = []struct {
	kind error
	code int
}{
	{execute.ErrSimulatedNumber, jsonrpc.CodeBlockNumber}, {execute.ErrSimulatedTime, jsonrpc.CodeBlockTime}, {execute.ErrSimulatedGas, jsonrpc.CodeBlockGas},
	{execute.ErrSimulatedBlocks, jsonrpc.CodeClientLimit}, {execute.ErrSimulatedWork, jsonrpc.CodeInvalidParams},
	{core.ErrNonceTooHigh, jsonrpc.CodeNonceTooHigh}, {core.ErrNonceTooLow, jsonrpc.CodeNonceTooLow}, {core.ErrSenderNoEOA, jsonrpc.CodeNotEOA},
	{core.ErrFeeCapVeryHigh, jsonrpc.CodeInvalidParams}, {core.ErrTipVeryHigh, jsonrpc.CodeInvalidParams}, {core.ErrTipAboveFeeCap, jsonrpc.CodeInvalidParams},
	{core.ErrFeeCapTooLow, jsonrpc.CodeBaseFee}, {core.ErrInsufficientFunds, jsonrpc.CodeInsufficientFunds}, {core.ErrInsufficientFundsForTransfer, jsonrpc.CodeInsufficientFunds},
	{core.ErrIntrinsicGas, jsonrpc.CodeIntrinsicGas}, {vm.ErrMaxInitCodeSizeExceeded, jsonrpc.CodeInitCode},
}

// simulationErrors is errorsOf for errors of simulations.
func simulationErrors(kinds ...error) []*jsonrpc.Error {
	for i := range kinds {
		kinds[i] = simulationError(kinds[i])
	}
	return errorsOf(kinds...)
}

// simulationError returns the error for a rejected simulation, and any other err as it is. Other methods have no such
// errors: if a transaction of a stored block cannot run again, no client can correct that.
func simulationError(err error) error {
	for _, known := range rejections {
		if errors.Is(err, known.kind) {
			return &jsonrpc.Error{Code: known.code, Message: err.Error()}
		}
	}
	if invalid := (*execute.InvalidCallError)(nil); errors.As(err, &invalid) {
		return &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: invalid.Error()}
	}
	return err
}
