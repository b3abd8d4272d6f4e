package query

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"ashlar/chain"
	"ashlar/forwarded"
	"ashlar/jsonrpc"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// Filter selects logs.
type Filter struct {
	Addresses []common.Address
	Topics    [][]common.Hash // by position; empty for any
	From, To  uint64
	Hash      *common.Hash // of the only block; then From and To do not count
}

// Log is a log as a node sent it.
type Log struct {
	Block       uint64
	BlockHash   common.Hash
	Index       uint64
	Address     common.Address
	Topics      []common.Hash
	Transaction common.Hash
	JSON        json.RawMessage // all members
}

const (
	firstSpan = 10_000    // blocks of the first request
	maxSpan   = 1_000_000 // blocks of any request
	growAfter = 8         // requests that succeed, after which the span is doubled
	guessSpan = 100       // blocks of the request that follows a refusal in unknown words
)

// span is how many blocks a request for logs may have, as the nodes' answers have shown.
type span struct {
	mu     sync.Mutex
	blocks uint64 // guarded by mu; 0: not known yet
	good   int    // guarded by mu: requests that succeeded in a row
}

func (s *span) get() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blocks == 0 {
		s.blocks = firstSpan
	}
	return s.blocks
}

// refused lowers the span to what the nodes allow.
func (s *span) refused(allowed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.good, s.blocks = 0, max(1, min(s.blocks, allowed))
}

// worked raises the span now and then, so that a limit that was lifted is noticed. A request
// for fewer blocks says nothing.
func (s *span) worked(blocks uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if blocks < s.blocks {
		return
	}
	if s.good++; s.good >= growAfter {
		s.good, s.blocks = 0, min(maxSpan, 2*s.blocks)
	}
}

// Logs calls found with the logs that a filter selects, in their order, of which there are
// at most limit. The range is asked for in parts that the nodes allow. If a part is refused in words that may be about its
// length, a short one is tried. If that is refused, too, Logs returns the error; else the parts grow again, up to half of
// the refused one.
func (c *Chain) Logs(ctx context.Context, view *forwarded.View, f *Filter, limit int, found func(*Log) error) error {
	switch {
	case f.Hash != nil:
		return c.logsOfBlock(ctx, view, f, limit, found)
	case c.checked:
		return c.checkedLogs(ctx, view, f, limit, found)
	}
	count, most, atOnce := 0, uint64(maxSpan), uint64(maxSpan)
	guessed := false // that the last part was refused because it was too long
	for from := f.From; from <= f.To; {
		to := min(f.To, from+min(most, c.span.get())-1)
		if final, ok := view.Finalized(); ok && from <= final && to > final {
			to = final // so that the first part can be kept
		}
		logs, err := c.partOf(ctx, view, f, from, to)
		if refusal := (*upstream.NodeError)(nil); errors.As(err, &refusal) {
			switch excess := upstream.ExcessOf(refusal); {
			case from == to && upstream.IsTooMuch(refusal):
				return tooManyAt(f, from, limit)
			case from < to && excess == upstream.SurelyExcess:
				most = c.shorten(refusal, from, to)
				continue
			case from < to && excess == upstream.PerhapsExcess && !guessed:
				guessed = true
				atOnce = (to - from + 1) / 2
				most = min(guessSpan, atOnce, cmp.Or(allowed(refusal, from, to), guessSpan))
				continue
			}
		}
		if upstream.IsTooLarge(err) && from < to {
			most = (to - from + 1) / 2
			atOnce = most // a longer part would be sent in vain again
			continue
		}
		if err != nil {
			return err
		}
		c.span.worked(to - from + 1)
		most, guessed = min(atOnce, 2*most), false
		if count += len(logs); count > limit {
			first := logs[len(logs)-(count-limit)] // that does not fit
			return tooManyAt(f, first.Block, limit)
		}
		if err := each(logs, found); err != nil {
			return err
		}
		from = to + 1
	}
	return nil
}

// logsOfBlock is Logs of the block with the hash of a filter.
func (c *Chain) logsOfBlock(ctx context.Context, view *forwarded.View, f *Filter, limit int, found func(*Log) error) (err error) {
	var logs []Log
	if c.checked {
		logs, err = c.checkedLogsOf(ctx, view, f)
	} else {
		logs, err = c.logsOf(ctx, view, f, 0, 0)
	}
	if err != nil {
		return err
	}
	if len(logs) > limit {
		return &chain.TooManyLogs{Limit: limit}
	}
	return each(logs, found)
}

// tooManyAt returns the error for a filter for which a block has more logs than fit. It suggests
// the blocks before.
func tooManyAt(f *Filter, first uint64, limit int) error {
	if first == f.From {
		return &chain.TooManyLogs{Limit: limit}
	}
	return &chain.TooManyLogs{Limit: limit, Fits: true, From: f.From, To: first - 1}
}

func each(logs []Log, found func(*Log) error) error {
	for i := range logs {
		if err := found(&logs[i]); err != nil {
			return err
		}
	}
	return nil
}

// logsOf asks for the logs of some blocks.
func (c *Chain) logsOf(ctx context.Context, view *forwarded.View, f *Filter, from, to uint64) ([]Log, error) {
	block := Block{Number: to, Final: view.IsFinal(to)}
	if f.Hash != nil {
		var err error
		if block, err = Resolve(view, chain.BlockID{Hash: f.Hash}); err != nil {
			return nil, err
		}
	}
	q := Question{Method: "eth_getLogs", Params: f.params(from, to), History: upstream.Blocks, Block: block, Before: to - from, Fixed: true}
	q.Check = func(result json.RawMessage) error {
		_, err := f.decode(result, view, from, to)
		return err
	}
	answer, err := c.Ask(ctx, view, q)
	if err != nil {
		return nil, err
	}
	return f.decode(answer, view, from, to)
}

// params returns the parameters of eth_getLogs.
func (f *Filter) params(from, to uint64) string {
	type object struct {
		From      *hexutil.Uint64  `json:"fromBlock,omitempty"`
		To        *hexutil.Uint64  `json:"toBlock,omitempty"`
		Hash      *common.Hash     `json:"blockHash,omitempty"`
		Addresses []common.Address `json:"address,omitempty"`
		Topics    []any            `json:"topics,omitempty"`
	}
	o := object{Hash: f.Hash, Addresses: f.Addresses}
	if f.Hash == nil {
		o.From, o.To = (*hexutil.Uint64)(&from), (*hexutil.Uint64)(&to)
	}
	for _, allowed := range f.Topics {
		if len(allowed) == 0 {
			o.Topics = append(o.Topics, nil)
		} else {
			o.Topics = append(o.Topics, allowed)
		}
	}
	text, _ := json.Marshal([]object{o}) // cannot fail
	return string(text)
}

// decode decodes logs, and checks that they are in order, match the filter, and are of blocks
// of the view.
func (f *Filter) decode(result json.RawMessage, view *forwarded.View, from, to uint64) ([]Log, error) {
	elements, ok := jsonrpc.Array(result)
	if !ok {
		return nil, upstream.Unfit("expected an array of logs")
	}
	var logs []Log
	for i := 0; elements.Next(); i++ {
		log, err := decodeLog(elements.Value())
		if err != nil {
			return nil, upstream.Unfit(err.Error())
		}
		last := len(logs) - 1
		switch {
		case f.lacksTopics(&log):
			continue
		case !f.Match(&log):
			return nil, fmt.Errorf("%w: log %d does not match the filter", upstream.ErrLie, i)
		case f.Hash != nil && log.BlockHash != *f.Hash, f.Hash == nil && (log.Block < from || log.Block > to):
			return nil, fmt.Errorf("%w: log %d is of another block", upstream.ErrLie, i)
		case last >= 0 && (log.Block < logs[last].Block || log.Block == logs[last].Block && log.Index <= logs[last].Index):
			return nil, fmt.Errorf("%w: log %d is out of order", upstream.ErrLie, i)
		}
		if b, ok := view.At(log.Block); ok && f.Hash == nil && b.Hash != log.BlockHash {
			return nil, upstream.Unfit("the node is on another branch")
		}
		logs = append(logs, log)
	}
	return logs, nil
}

// decodeLog decodes a log, which is valid JSON.
func decodeLog(raw json.RawMessage) (log Log, err error) {
	members, ok := jsonrpc.Object(raw)
	if !ok {
		return log, errors.New("decode a log: expected an object")
	}
	log.JSON = raw
	var block, index, address bool
	for members.Next() && err == nil {
		value := members.Value()
		switch name := members.Name(); {
		case name.Is("blockNumber"):
			log.Block, err = decodeQuantity(value)
			block = true
		case name.Is("logIndex"):
			log.Index, err = decodeQuantity(value)
			index = true
		case name.Is("blockHash"):
			err = decodeBytes(value, log.BlockHash[:])
		case name.Is("transactionHash"):
			err = decodeBytes(value, log.Transaction[:])
		case name.Is("address"):
			err = decodeBytes(value, log.Address[:])
			address = true
		case name.Is("topics"):
			log.Topics, err = decodeTopics(value)
		}
	}
	if err == nil && !(block && index && address) {
		err = errors.New("it has no block, index or address")
	}
	if err != nil {
		return log, fmt.Errorf("decode a log: %w", err)
	}
	return log, nil
}

func decodeQuantity(raw []byte) (uint64, error) {
	text, ok := jsonrpc.String(raw)
	if !ok || len(text) < 3 || text[0] != '0' || text[1] != 'x' {
		return 0, fmt.Errorf("expected a quantity, got %.40s", raw)
	}
	return strconv.ParseUint(string(text[2:]), 16, 64)
}

// decodeBytes decodes a hexadecimal text of the length of into.
func decodeBytes(raw, into []byte) error {
	text, ok := jsonrpc.String(raw)
	if !ok || len(text) != 2+2*len(into) || text[0] != '0' || text[1] != 'x' {
		return fmt.Errorf("expected %d bytes in hexadecimal, got %.80s", len(into), raw)
	}
	_, err := hex.Decode(into, text[2:])
	return err
}

func decodeTopics(raw []byte) ([]common.Hash, error) {
	elements, ok := jsonrpc.Array(raw)
	if !ok {
		return nil, errors.New("expected an array of topics")
	}
	var topics []common.Hash
	for elements.Next() {
		var topic common.Hash
		if err := decodeBytes(elements.Value(), topic[:]); err != nil {
			return nil, err
		}
		topics = append(topics, topic)
	}
	return topics, nil
}

// lacksTopics reports whether a log has fewer topics than the filter has positions, and the missing
// ones may be any. reth sends such logs, geth does not.
func (f *Filter) lacksTopics(log *Log) bool {
	if len(log.Topics) >= len(f.Topics) {
		return false
	}
	shorter := *f
	shorter.Topics = f.Topics[:len(log.Topics)]
	named := func(allowed []common.Hash) bool { return len(allowed) > 0 }
	return !slices.ContainsFunc(f.Topics[len(log.Topics):], named) && shorter.Match(log)
}

// Match reports whether the filter selects a log by its address and topics.
func (f *Filter) Match(log *Log) bool {
	if len(f.Addresses) > 0 && !slices.Contains(f.Addresses, log.Address) {
		return false
	}
	for i, allowed := range f.Topics {
		if i >= len(log.Topics) || len(allowed) > 0 && !slices.Contains(allowed, log.Topics[i]) {
			return false
		}
	}
	return true
}
