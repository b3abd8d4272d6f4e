package query

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"ashlar/chain"
	"ashlar/forwarded"
	"ashlar/jsonrpc"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
)

// A node can be on another branch than the view, or lag behind the head that it has named, as one of several behind a proxy
// does. Asked for a block by its hash, it says that it does not have the block. Otherwise its answer is about its own branch:
//
//	view   18 - 19 - 20         with logs in 20
//	node   18 - 19 - 20'        without logs in 20': its logs of 18 to 20 lack those of 20

// unsettled is how many of the newest blocks nodes may disagree about while they name heads with the same number.
const unsettled = 8

// ErrOtherBranch means that the nodes that have a transaction have it in a block beside the view.
var ErrOtherBranch = fmt.Errorf("the node is on another branch: %w", upstream.Unfit("its block is not on the chain"))

// ErrLate means that the nodes do not have a transaction which is in a block of the view.
var ErrLate = fmt.Errorf("the node is late: %w", upstream.Unfit("it does not have a transaction of the chain"))

// TransactionCheck is PlaceCheck for the answer about the transaction with a hash. If one of the newest blocks has it, neither null
// nor that it is pending is an answer: a node that lags behind its own head says so.
func TransactionCheck(view *forwarded.View, hash common.Hash) func(json.RawMessage) error {
	ofPlace := PlaceCheck(view)
	return func(result json.RawMessage) error {
		if _, placed := placeOf(result); !placed && names(view, hash) {
			return ErrLate
		}
		return ofPlace(result)
	}
}

// searchedBytes bounds the memory that is searched for a transaction. Clients ask again and again for one that is pending.
const searchedBytes = 1 << 20

// names reports whether one of the newest blocks, as nodes sent them, names a hash.
func names(view *forwarded.View, hash common.Hash) bool {
	// With the x before it, bytes.Contains compares once for each hash; with digits alone at one byte of sixteen.
	named, left := fmt.Appendf(nil, "x%x", hash), searchedBytes
	blocks := view.Blocks()
	for _, b := range slices.Backward(blocks[len(blocks)-min(len(blocks), upstream.Shallow):]) {
		if left -= len(b.JSON); left < 0 {
			return false
		}
		if bytes.Contains(b.JSON, named) {
			return true
		}
	}
	return false
}

// PlaceCheck returns a check that a transaction or a receipt is not of a block beside the view.
func PlaceCheck(view *forwarded.View) func(json.RawMessage) error {
	return func(result json.RawMessage) error {
		place, ok := placeOf(result)
		if b, known := view.At(place.Number); ok && known && b.Hash != place.Hash {
			return ErrOtherBranch
		}
		return nil
	}
}

// placeOf returns the block of a transaction or a receipt, and false if it does not say which.
func placeOf(result json.RawMessage) (place chain.Ref, ok bool) {
	members, _ := jsonrpc.Object(result)
	number, hash := errors.New("missing"), errors.New("missing")
	for members.Next() {
		switch name := members.Name(); {
		case name.Is("blockNumber"):
			place.Number, number = decodeQuantity(members.Value())
		case name.Is("blockHash"):
			hash = decodeBytes(members.Value(), place.Hash[:])
		}
	}
	return place, number == nil && hash == nil
}

// partOf asks for the logs of some blocks, as logsOf does. The newest ones are asked for by their hashes, too: those above the last
// log of the answer, which shows the branch of its node, unless a bloom filter excludes logs. If the nodes take no hash there, their
// answer counts as it is.
func (c *Chain) partOf(ctx context.Context, view *forwarded.View, f *Filter, from, to uint64) ([]Log, error) {
	newest := func(number uint64) *Filter {
		b, ok := view.At(number)
		if !ok || view.IsFinal(number) || view.Head().Number-number >= unsettled {
			return nil
		}
		return f.ofBlock(b.Hash)
	}
	if single := newest(to); single != nil && from == to {
		if logs, err := c.logsOf(ctx, view, single, to, to); !takesNoHash(err) {
			return logs, err
		}
	}
	logs, err := c.logsOf(ctx, view, f, from, to)
	if err != nil || from == to {
		return logs, err
	}
	first := max(from, view.Head().Number-min(view.Head().Number, unsettled-1))
	if len(logs) > 0 {
		first = max(first, logs[len(logs)-1].Block+1)
	}
	for number := first; number <= to; number++ {
		single := newest(number)
		if b, _ := view.At(number); single == nil || b.Bloom != nil && !f.mayMatch(*b.Bloom) {
			continue
		}
		more, err := c.logsOf(ctx, view, single, number, number)
		if takesNoHash(err) {
			break
		}
		if err != nil {
			return nil, err
		}
		logs = append(logs, more...)
	}
	return logs, nil
}

// takesNoHash reports whether a node refuses a call for the logs of a block by its hash, and not because of the block.
func takesNoHash(err error) bool {
	var node *upstream.NodeError
	if !errors.As(err, &node) {
		return false
	}
	meaning := upstream.Meaning(node)
	return meaning == upstream.MeansUnsupported || meaning == upstream.MeansAnswer && !upstream.IsTooMuch(node)
}

// ofBlock returns the filter for the logs of the block with a hash.
func (f *Filter) ofBlock(hash common.Hash) *Filter {
	one := *f
	one.Hash = &hash
	return &one
}
