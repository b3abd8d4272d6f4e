package consensus

import (
	"ashlar/evm/source/engine"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

const (
	// waitingMost is how many blocks wait: those of half an hour, while ancestors are fetched.
	waitingMost = 150
	// waitingBytes is what they take, as they are sent in their binary form.
	waitingBytes = 128 << 20
	// invalidMost is how many invalid blocks are remembered.
	invalidMost = 512
)

// waiting are blocks whose ancestors are missing. Where there are too many, those
// go that came first: the client will have got further since.
type waiting struct {
	blocks map[common.Hash]*types.Block
	order  []common.Hash // as they came
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
	w.bytes += block.Size()
	for len(w.order) > 1 && (len(w.order) > waitingMost || w.bytes > waitingBytes) {
		w.remove(w.order[0])
	}
}

func (w *waiting) remove(hash common.Hash) {
	block := w.blocks[hash]
	if block == nil {
		return
	}
	delete(w.blocks, hash)
	w.bytes -= block.Size()
	for i := range w.order {
		if w.order[i] == hash {
			w.order = append(w.order[:i], w.order[i+1:]...)
			return
		}
	}
}

// invalids are blocks that are known to be invalid, or to come after one. They are
// not kept through a restart, and where there are too many the first are forgotten:
// such a block would be found to be invalid again.
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
	if i.order = append(i.order, hash); len(i.order) > invalidMost {
		delete(i.status, i.order[0])
		i.order = i.order[1:]
	}
}
