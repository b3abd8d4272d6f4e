package execute

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
)

var (
	// transferTopic is keccak256("Transfer(address,address,uint256)").
	transferTopic = common.HexToHash("0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef")
	// etherAddress stands for ether where an address of a token is expected (ERC-7528).
	etherAddress = common.HexToAddress("0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE")
)

// simulatedLogs collects the logs of simulated calls, with transfers of ether among them
// if these are wanted.
type simulatedLogs struct {
	transfers bool
	header    *types.Header
	tx        common.Hash
	txIndex   int
	count     int            // of logs in the block so far
	frames    [][]*types.Log // of the frames that are open; a frame that fails has none
}

func newSimulatedLogs(transfers bool, header *types.Header) *simulatedLogs {
	return &simulatedLogs{transfers: transfers, header: header}
}

// begin starts with a transaction.
func (l *simulatedLogs) begin(tx common.Hash, index int) { l.frames, l.tx, l.txIndex = nil, tx, index }

// taken returns the logs of the transaction.
func (l *simulatedLogs) taken() []*types.Log {
	if len(l.frames) == 0 {
		return nil
	}
	return l.frames[0]
}

func (l *simulatedLogs) hooks() *tracing.Hooks {
	return &tracing.Hooks{OnEnter: l.enter, OnExit: l.exit}
}

// simulatedState is the state with the logs of a simulated block.
type simulatedState struct {
	warmState
	logs   *simulatedLogs
	memory *memoryMeter
}

// Snapshot implements vm.StateDB. It ends a run that is canceled.
func (s *simulatedState) Snapshot() int {
	s.memory.endCanceled()
	return s.warmState.Snapshot()
}

// AddPreimage implements vm.StateDB. Preimages are not kept. It ends a run that is canceled.
func (s *simulatedState) AddPreimage(common.Hash, []byte) { s.memory.endCanceled() }

// AddLog implements vm.StateDB.
func (s *simulatedState) AddLog(log *types.Log) {
	if !s.memory.write(logBytes + len(log.Data)) {
		return
	}
	s.StateDB.AddLog(log)
	s.logs.add(log.Address, log.Topics, log.Data)
}

func (l *simulatedLogs) enter(_ int, kind byte, from, to common.Address, _ []byte, _ uint64, value *big.Int) {
	l.frames = append(l.frames, nil)
	if op := vm.OpCode(kind); l.transfers && op != vm.DELEGATECALL && op != vm.CALLCODE && value != nil && value.Sign() > 0 {
		l.add(etherAddress, []common.Hash{transferTopic, common.BytesToHash(from[:]), common.BytesToHash(to[:])}, common.BigToHash(value).Bytes())
	}
}

func (l *simulatedLogs) exit(depth int, _ []byte, _ uint64, _ error, reverted bool) {
	last := len(l.frames) - 1
	if reverted {
		l.frames[last] = nil // their positions stay empty, as the recordings of execution-apis have it
	}
	if depth > 0 && last > 0 {
		l.frames[last-1] = append(l.frames[last-1], l.frames[last]...)
		l.frames = l.frames[:last]
	}
}

func (l *simulatedLogs) add(address common.Address, topics []common.Hash, data []byte) {
	last := len(l.frames) - 1
	if last < 0 {
		return // a system call
	}
	l.frames[last] = append(l.frames[last], &types.Log{
		Address: address, Topics: topics, Data: data, BlockNumber: l.header.Number.Uint64(), BlockTimestamp: l.header.Time,
		TxHash: l.tx, TxIndex: uint(l.txIndex), Index: uint(l.count),
	})
	l.count++
}
