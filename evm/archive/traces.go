package archive

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"

	"ashlar/evm"
	"ashlar/history/postings"
	"ashlar/history/rows"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
)

// Role is how an address takes part in a trace.
type Role byte

// The roles of the trace index. docs/format.md explains them.
const (
	RoleSender   Role = 0
	RoleReceiver Role = 1
	RoleCreated  Role = 2
	RoleRewarded Role = 3
)

// String implements fmt.Stringer.
func (r Role) String() string {
	names := [...]string{"sender", "receiver", "created", "rewarded"}
	if int(r) < len(names) {
		return names[r]
	}
	return fmt.Sprintf("role %d", byte(r))
}

// stored pairs the roles in a delta with those in the index.
var stored = [...]struct {
	in    evm.Roles
	role  Role
	sends bool // the address is the trace's From, not its To
}{
	{evm.Sender, RoleSender, true},
	{evm.Receiver, RoleReceiver, false},
	{evm.Created, RoleCreated, false},
	{evm.Rewarded, RoleRewarded, false},
}

// Participant is an address in a role. It is a partition of trace_postings.
type Participant [common.AddressLength + 1]byte

// ParticipantOf returns an address in a role.
func ParticipantOf(address common.Address, role Role) (p Participant) {
	copy(p[:], address[:])
	p[common.AddressLength] = byte(role)
	return p
}

// TraceCounts are how many traces a block has. The rewards follow the traces of the
// transactions.
type TraceCounts struct {
	Ends    []int // for each transaction, the position after its last trace
	Rewards int
}

// Total returns the number of traces in the block.
func (c *TraceCounts) Total() int { return c.rewardsFrom() + c.Rewards }

func (c *TraceCounts) rewardsFrom() int {
	if len(c.Ends) == 0 {
		return 0
	}
	return c.Ends[len(c.Ends)-1]
}

// maxTraces is more than the number of traces that any block can have.
const maxTraces = 1 << 30

// PutTraces puts a block's rows of the trace index.
func (h *History) PutTraces(to kv.Putter, number uint64, traces *evm.Traces) {
	block := postings.NewBlock[Participant]()
	for position, trace := range traces.List {
		for _, s := range stored {
			if trace.Roles&s.in == 0 {
				continue
			}
			address := trace.To
			if s.sends {
				address = trace.From
			}
			block.Add(ParticipantOf(address, s.role), uint64(position))
		}
	}
	counts := encodeTraceCounts(traces)
	sum := TraceSum(number, nil, counts)
	for participant, row := range block.Rows() {
		to.Put(tracePostings, participant[:], number, row)
		sum += TraceSum(number, participant[:], row)
	}
	partition := rows.Chunk(number)
	if h.form.changes && traces.Changes != nil {
		row := encodeChanges(traces.Changes)
		to.Put(txChanges, partition[:], number, row)
		sum += TraceSum(number, partition[:], row)
	}
	to.Put(traceCounts, partition[:], number, binary.BigEndian.AppendUint64(counts, sum))
}

// encodeTraceCounts returns the row of a block in trace_counts, without its checksum.
func encodeTraceCounts(traces *evm.Traces) []byte {
	row := binary.AppendUvarint(make([]byte, 0, len(traces.Ends)+16), uint64(len(traces.Ends)))
	begin := 0
	for _, end := range traces.Ends {
		row = binary.AppendUvarint(row, uint64(end-begin))
		begin = end
	}
	return binary.AppendUvarint(row, uint64(len(traces.List)-begin))
}

// TraceSum returns what a row adds to the checksum of its block in the trace index. The
// row of trace_counts has no partition there, and ends before its checksum.
func TraceSum(number uint64, partition, value []byte) uint64 {
	var block [8]byte
	binary.BigEndian.PutUint64(block[:], number)
	hash := fnv.New64a()
	for _, part := range [][]byte{block[:], partition, value} {
		_, _ = hash.Write(part) // never fails
	}
	return hash.Sum64()
}

// ParseTraceCounts decodes a row of trace_counts. unexplained is the block's checksum
// without what this row adds to it: the sum of [TraceSum] over its postings and changes.
func ParseTraceCounts(number uint64, row []byte) (counts *TraceCounts, unexplained uint64, err error) {
	const sumBytes = 8
	if len(row) < sumBytes {
		return nil, 0, fmt.Errorf("%w: trace_counts row: %d bytes (want at least 8)", ErrCorrupt, len(row))
	}
	body, sum := row[:len(row)-sumBytes], row[len(row)-sumBytes:]
	d := rows.Decode(body)
	counts = &TraceCounts{Ends: make([]int, d.Count(1))}
	total := uint64(0)
	for i := range counts.Ends {
		total = min(total+min(d.Uvarint(), maxTraces), maxTraces)
		counts.Ends[i] = int(total)
	}
	rewards := d.Uvarint()
	if err := d.End(traceCounts.Name); err != nil {
		return nil, 0, err
	}
	if total >= maxTraces || rewards >= maxTraces {
		return nil, 0, fmt.Errorf("%w: trace_counts row: a block cannot have that many traces", ErrCorrupt)
	}
	counts.Rewards = int(rewards)
	return counts, binary.BigEndian.Uint64(sum) - TraceSum(number, nil, body), nil
}

// HasTraces reports whether the history has a trace index. If so, deltas must have their
// traces to be encoded.
func (h *History) HasTraces() bool { return h.form.traces }

// putTraces puts a block's rows of the trace index, if there is one.
func (h *History) putTraces(to kv.Putter, delta *evm.Delta) error {
	if !h.form.traces {
		return nil
	}
	if delta.Traces == nil {
		return fmt.Errorf("archive: encode block %s: its traces were not recorded, but the archive indexes them", delta.Ref())
	}
	h.PutTraces(to, delta.Block.NumberU64(), delta.Traces)
	return nil
}

// TraceCounts returns how many traces a block has, or ErrNotFound.
func (h *History) TraceCounts(ctx context.Context, number uint64) (*TraceCounts, error) {
	row, err := rows.OfBlock(ctx, h.ofBlock(number), traceCounts, number, nil)
	if errors.Is(err, ErrNotFound) {
		err = errors.Join(h.CheckTraces(number), err)
	}
	if err != nil {
		return nil, err
	}
	counts, _, err := ParseTraceCounts(number, row)
	return counts, err
}

// TracePostings returns the positions of a participant's traces in a range of blocks.
func (h *History) TracePostings(ctx context.Context, who Participant, from, to uint64) postings.Postings {
	from = max(from, h.firstTraced())
	return postings.Postings{Cursor: h.rows.Scan(ctx, tracePostings, who[:], from, to)}
}

// firstTraced returns the block with which the trace index begins. Rows of earlier ones may be
// there in part, while they are removed.
func (h *History) firstTraced() uint64 {
	if first := h.extent.Load().State; first > 0 {
		return first + 1
	}
	return 0
}

// LastTraces appends the positions of a participant's traces in the last block at or below
// a number to dst; ok is false if there is no such block.
func (h *History) LastTraces(ctx context.Context, who Participant, at uint64, dst []uint32) (block uint64, positions []uint32, ok bool, err error) {
	row, block, err := h.rows.Newest(ctx, tracePostings, who[:], at, nil)
	if errors.Is(err, kv.ErrNotFound) || err == nil && block < h.firstTraced() {
		return 0, dst, false, nil
	}
	if err == nil {
		dst, err = postings.DecodePositions(row, dst)
	}
	return block, dst, err == nil, err
}
