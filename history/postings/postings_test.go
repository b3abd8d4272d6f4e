package postings

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"ashlar/history/rows"
	"ashlar/internal/memory"
)

func TestPositions(t *testing.T) {
	term := TermOf(0, []byte("a"))
	for _, want := range [][]uint32{{0}, {5}, {0, 1, 2, 3}, {0, 127, 128, 129, 1 << 20}, {1<<32 - 2}} {
		block := NewBlock[Term]()
		for _, position := range want {
			block.Add(term, uint64(position))
			block.Add(term, uint64(position)) // a repetition, as with colliding terms
		}
		if got, err := DecodePositions(block.rows[term].value, nil); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v: got %v, %v", want, got, err)
		}
	}
	for _, row := range [][]byte{{0x80}, binary.AppendUvarint(nil, 1<<32), binary.AppendUvarint(nil, 1<<64-1), append([]byte{1}, binary.AppendUvarint(nil, 1<<64-1)...)} {
		if got, err := DecodePositions(row, nil); !errors.Is(err, rows.ErrCorrupt) {
			t.Errorf("%x: got %v, %v, want ErrCorrupt", row, got, err)
		}
	}
}

// An invalid row is ErrCorrupt or has ascending positions.
func FuzzPositions(f *testing.F) {
	for _, row := range [][]byte{{}, {0}, {5, 0, 0, 200, 1}, {0x80}, {0xff, 0xff, 0xff, 0xff, 0x0f, 0}} {
		f.Add(row)
	}
	f.Fuzz(func(t *testing.T, row []byte) {
		memory.Within(t, memory.Slack+16*len(row), func() { // four bytes per position, in a growing slice
			positions, err := DecodePositions(row, nil)
			if err != nil && !errors.Is(err, rows.ErrCorrupt) {
				t.Fatalf("%v, want ErrCorrupt", err)
			}
			for i := 1; i < len(positions); i++ {
				if positions[i] <= positions[i-1] {
					t.Fatalf("%v do not ascend", positions)
				}
			}
		})
	})
}
