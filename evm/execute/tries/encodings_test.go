package tries

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

func TestEncodings(t *testing.T) {
	const segments, size = 3, 300
	e := newEncodings(segments * segmentBytes)
	hash := func(i int) (h common.Hash) {
		binary.BigEndian.PutUint64(h[:], uint64(i)*0x9e3779b97f4a7c15)
		return h
	}
	encoded := func(i int) []byte {
		return bytes.Repeat(binary.BigEndian.AppendUint32(nil, uint32(i)), size/4)
	}
	const count = 2 * segments * segmentBytes / size
	for i := range count {
		e.add(hash(i), encoded(i))
		if h := hash(i); i%5 == 0 && !bytes.Equal(e.take(h[:]), encoded(i)) {
			t.Fatalf("encoding %d was not kept", i)
		}
	}
	kept := 0
	for i := range count {
		h := hash(i)
		found := bytes.Clone(e.find(h[:]))
		if found == nil {
			continue
		}
		if kept++; i%5 == 0 || !bytes.Equal(found, encoded(i)) {
			t.Fatalf("encoding %d is kept as %x", i, found)
		}
		if !bytes.Equal(e.take(h[:]), found) || e.find(h[:]) != nil {
			t.Fatalf("encoding %d could not be taken, or stayed", i)
		}
	}
	// Of five encodings in a segment four are still wanted; the oldest segment was emptied.
	if most := segments * segmentBytes / (size + encodingHead); kept > most || kept < most*4/5*(segments-1)/segments {
		t.Errorf("%d encodings of %d bytes were kept in %d bytes", kept, size, segments*segmentBytes)
	}
	if len(e.places) > 0 {
		t.Errorf("%d places are left after all encodings were taken", len(e.places))
	}
}

// Of two hashes that begin with the same bytes, one is kept, and it is not taken for the other.
func TestEncodingsWithSimilarHashes(t *testing.T) {
	e := newEncodings(2 * segmentBytes)
	a, b := common.Hash{1, 31: 1}, common.Hash{1, 31: 2}
	e.add(a, []byte("a"))
	if e.find(b[:]) != nil {
		t.Error("another encoding was found")
	}
	e.add(b, []byte("b"))
	if e.take(a[:]) != nil || string(e.take(b[:])) != "b" {
		t.Error("the later encoding was not kept, or taken for the earlier one")
	}
}

// With little memory none are kept.
func TestNoEncodings(t *testing.T) {
	e := newEncodings(2*segmentBytes - 1)
	e.add(common.Hash{1}, []byte("a"))
	if h := (common.Hash{1}); e != nil || e.find(h[:]) != nil || e.take(h[:]) != nil {
		t.Error("an encoding was kept")
	}
}
