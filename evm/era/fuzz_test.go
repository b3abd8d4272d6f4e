package era

import (
	"bytes"
	"testing"

	"ashlar/evm/era/eratest"
	"ashlar/internal/memory"
)

// FuzzEntry reads the entries of an e2store file one after the other, and what is in
// them, which reading a file does of well-formed ones only.
func FuzzEntry(f *testing.F) {
	data := encode(f, Era1, eratest.New(f, 0, 2, 2))
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add([]byte{3, 0, 255, 255, 255, 255, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		memory.Within(t, 1<<20+100*25*len(data), func() { checkEntries(t, data) })
	})
}

func checkEntries(t *testing.T, data []byte) {
	store := newE2store(bytes.NewReader(data), int64(len(data)))
	for offset := int64(0); ; {
		e, err := store.at(offset)
		if err != nil {
			return
		}
		if e.end() <= offset || e.end() > store.size {
			t.Fatalf("the entry at %d ends at %d of %d", offset, e.end(), store.size)
		}
		const most = 1 << 20
		var out bytes.Buffer
		if err := store.unzip(&out, e, most); err == nil && out.Len() > most {
			t.Fatalf("%d bytes of an entry that may have %d", out.Len(), most)
		}
		if _, err := store.word(e); err == nil && e.length != 32 {
			t.Fatalf("a word of %d bytes", e.length)
		}
		offset = e.end()
	}
}

// FuzzPeek: the blocks that Peek says are those that Open finds, if it finds any.
func FuzzPeek(f *testing.F) {
	f.Add(encode(f, Era1, eratest.New(f, 0, 2, 2)))
	f.Add(encode(f, ERE, eratest.New(f, 8192, 2, 1)))
	f.Fuzz(func(t *testing.T, data []byte) {
		said, peekErr := Peek(bytes.NewReader(data), int64(len(data)))
		r, err := Open(bytes.NewReader(data), int64(len(data)))
		if err == nil && (peekErr != nil || said != r.Range()) {
			t.Fatalf("Peek says %+v and %v, the file holds %+v", said, peekErr, r.Range())
		}
	})
}
