package proven

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"

	"ashlar/evm"
	"ashlar/evm/keccak"

	"github.com/ethereum/go-ethereum/common"
)

const (
	// prefixNibbles is the length of the longest prefix of a key for which a preimage is sought:
	// one of 16^5 numbers has it, and one nibble more takes 16 times as long.
	prefixNibbles = 5
	// mostTried is how many numbers are tried in all. That some prefix is still missing then has a
	// probability of 10^-8.
	mostTried = 1 << 25
	// triedAtOnce is how many numbers are tried together, between two looks at the context: 0.4 ms.
	triedAtOnce = 1 << 10
)

// preimages finds addresses, or slots, whose keccak256 begins with given nibbles. eth_getProof
// for one of them brings the trie nodes at these nibbles, and those above. It counts up and keeps
// the first number with each prefix, so all searches together hash mostTried numbers at most. It
// is safe for concurrent use.
type preimages struct {
	length int // of a preimage in bytes

	mu    sync.Mutex
	tried uint32   // numbers below were tried; guarded by mu
	first []uint32 // by prefix: the first number with it, plus one; guarded by mu; nil: no search yet
}

func newPreimages(length int) *preimages { return &preimages{length: length} }

// find returns the preimage of a key that begins with prefix, of at most prefixNibbles nibbles.
func (p *preimages) find(ctx context.Context, prefix []byte) ([]byte, error) {
	from, width := 0, 1
	for i := range prefixNibbles {
		from *= 16
		if i < len(prefix) {
			from += int(prefix[i])
		} else {
			width *= 16
		}
	}
	for ctx.Err() == nil {
		number, ok, err := p.search(from, from+width)
		if err != nil {
			return nil, fmt.Errorf("prefix %x: %w", prefix, err)
		}
		if ok {
			return p.preimage(number), nil
		}
	}
	return nil, ctx.Err()
}

// search returns a number whose prefix is in a range. If there is none yet, it tries some more.
func (p *preimages) search(from, to int) (number uint32, ok bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.first == nil {
		p.first = make([]uint32, 1<<(4*prefixNibbles))
	}
	for _, after := range p.first[from:to] {
		if after > 0 {
			return after - 1, true, nil
		}
	}
	if p.tried >= mostTried {
		return 0, false, evm.ErrUnnamed
	}
	tried, keys := make([][]byte, triedAtOnce), make([]common.Hash, triedAtOnce)
	numbers := make([]byte, triedAtOnce*p.length)
	for i := range tried {
		tried[i] = p.put(numbers[i*p.length:][:p.length], p.tried+uint32(i))
	}
	keccak.Sum(tried, keys)
	for i := range keys {
		p.tried++
		if at := &p.first[binary.BigEndian.Uint32(keys[i][:])>>(32-4*prefixNibbles)]; *at == 0 {
			*at = p.tried
		}
	}
	return 0, false, nil
}

// preimage returns the address or slot that is a number.
func (p *preimages) preimage(number uint32) []byte {
	return p.put(make([]byte, p.length), number)
}

func (p *preimages) put(preimage []byte, number uint32) []byte {
	binary.BigEndian.PutUint32(preimage[p.length-4:], number)
	return preimage
}
