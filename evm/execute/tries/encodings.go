package tries

import (
	"encoding/binary"

	"github.com/ethereum/go-ethereum/common"
)

const (
	// segmentBytes is the memory of encodings that is used again at once.
	segmentBytes = 4 << 20
	// encodingHead is the length of what comes before the RLP: the hash, and the RLP's length.
	encodingHead = common.HashLength + 2
)

// encodings keeps the RLP of nodes that were evicted, by hash. A decoded branch takes some 900
// bytes in a dozen words that the collector follows; encoded it takes 100 to 530, and the
// collector looks at none of them.
//
// Encodings are appended to segments, whose number is bounded. When all are full, the oldest one
// is emptied. A node that is taken is in memory again and is appended anew when it is evicted,
// so what goes first is what was not used for the longest time.
type encodings struct {
	segments [][]byte          // each of encodings: hash, length (2 bytes), RLP
	limit    int               // of segments
	last     int               // the segment that is appended to
	places   map[uint64]uint64 // by the first bytes of the hash: segment and offset
}

// newEncodings returns encodings that take about as many bytes; nil if that is less than two segments.
func newEncodings(bytes int) *encodings {
	if bytes < 2*segmentBytes {
		return nil
	}
	return &encodings{limit: bytes / segmentBytes, places: make(map[uint64]uint64)}
}

func abbreviated(hash []byte) uint64 { return binary.BigEndian.Uint64(hash) }

// add keeps an encoding. One of 64 KiB or more is not kept; no node of a state is that long.
func (e *encodings) add(hash common.Hash, encoded []byte) {
	size := encodingHead + len(encoded)
	if e == nil || len(encoded) > 1<<16-1 || size > segmentBytes {
		return
	}
	if len(e.segments) == 0 || len(e.segments[e.last])+size > segmentBytes {
		e.next()
	}
	segment := e.segments[e.last]
	e.places[abbreviated(hash[:])] = uint64(e.last)<<32 | uint64(len(segment))
	segment = binary.BigEndian.AppendUint16(append(segment, hash[:]...), uint16(len(encoded)))
	e.segments[e.last] = append(segment, encoded...)
}

// next begins a segment, in place of the oldest one if there are enough.
func (e *encodings) next() {
	if len(e.segments) < e.limit {
		e.last = len(e.segments)
		e.segments = append(e.segments, make([]byte, 0, segmentBytes))
		return
	}
	e.last = (e.last + 1) % len(e.segments)
	oldest := e.segments[e.last]
	for at := 0; at < len(oldest); {
		short := abbreviated(oldest[at:])
		if e.places[short] == uint64(e.last)<<32|uint64(at) {
			delete(e.places, short)
		}
		at += encodingHead + int(binary.BigEndian.Uint16(oldest[at+common.HashLength:]))
	}
	e.segments[e.last] = oldest[:0]
}

// find returns the encoding with a hash, valid until the next call of add; nil if it is not kept.
func (e *encodings) find(hash []byte) []byte {
	if e == nil {
		return nil
	}
	place, ok := e.places[abbreviated(hash)]
	if !ok {
		return nil
	}
	found := e.segments[place>>32][uint32(place):]
	if string(found[:common.HashLength]) != string(hash) {
		return nil
	}
	return found[encodingHead:][:binary.BigEndian.Uint16(found[common.HashLength:])]
}

// take returns the encoding with a hash and keeps it no longer; nil if it was not kept.
func (e *encodings) take(hash []byte) []byte {
	found := e.find(hash)
	if found == nil {
		return nil
	}
	delete(e.places, abbreviated(hash))
	return append(make([]byte, 0, len(found)), found...)
}
