package consensus

import (
	"ashlar/evm/source/engine"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

const (
	// maxWaiting is the maximum number of waiting blocks: those of half an hour, while ancestors are fetched.
	maxWaiting = 150
	// waitingBytes bounds their encoded size.
	waitingBytes = 128 << 20
	// maxInvalid is the maximum number of invalid blocks that are remembered.
	maxInvalid = 512
	// maxDeep is the maximum number of blocks on branches below the settled block that are remembered.
	maxDeep = 4096
)

// waiting are blocks whose ancestors are missing. If there are too many, the oldest are
// evicted: the client has moved on since.
type waiting struct {
	blocks map[common.Hash]*types.Block
	order  []common.Hash // oldest first
	bytes  uint64
}

func newWaiting() *waiting { return &waiting{blocks: make(map[common.Hash]*types.Block)} }

func (w *waiting) find(hash common.Hash) *types.Block { return w.blocks[hash] }

func (w *waiting) put(block *types.Block) {
	hash := block.Hash()
	if w.blocks[hash] != nil {
		return
	}
	w.blocks[hash] = block
	w.order = append(w.order, hash)
	w.bytes += encodedSize(block)
	for len(w.order) > 1 && (len(w.order) > maxWaiting || w.bytes > waitingBytes) {
		w.remove(w.order[0])
	}
}

func (w *waiting) remove(hash common.Hash) {
	block := w.blocks[hash]
	if block == nil {
		return
	}
	delete(w.blocks, hash)
	w.bytes -= encodedSize(block)
	for i := range w.order {
		if w.order[i] == hash {
			w.order = append(w.order[:i], w.order[i+1:]...)
			return
		}
	}
}

// encodedSize is the size of a block with its access list.
func encodedSize(block *types.Block) uint64 {
	size := block.Size()
	if list := block.AccessList(); list != nil {
		if encoded, err := rlp.EncodeToBytes(list); err == nil { // it has been decoded
			size += uint64(len(encoded))
		}
	}
	return size
}

// invalids holds blocks that are known to be invalid, or to descend from an invalid one. It
// is bounded and not stored: a forgotten block would be found invalid again.
type invalids struct {
	status map[common.Hash]engine.Status
	order  []common.Hash
}

func newInvalids() *invalids { return &invalids{status: make(map[common.Hash]engine.Status)} }

func (i *invalids) find(hash common.Hash) (engine.Status, bool) {
	status, ok := i.status[hash]
	return status, ok
}

func (i *invalids) put(hash common.Hash, status engine.Status) {
	if _, known := i.status[hash]; known {
		return
	}
	i.status[hash] = status
	if i.order = append(i.order, hash); len(i.order) > maxInvalid {
		delete(i.status, i.order[0])
		i.order = i.order[1:]
	}
}

// deep holds the hashes of blocks that branch off below the settled block, so that their descendants
// are recognized without them. It is bounded and not stored. Blocks mostly come parents first, so a
// branch of any length is recognized to its end.
type deep = lru.BasicLRU[common.Hash, struct{}]

func newDeep() *deep { return new(lru.NewBasicLRU[common.Hash, struct{}](maxDeep)) }
