package jsonrpc

// List is an array in a result, under construction. A copy of it is a snapshot.
type List struct {
	out   []byte
	room  Room
	count int // entries
}

// NewList returns an array without entries in a buffer that ends with its opening bracket.
func NewList(out []byte, room Room) List { return List{out: out, room: room} }

// Len returns the number of entries.
func (l *List) Len() int { return l.count }

// Bytes returns the buffer, in which the array has no end yet.
func (l *List) Bytes() []byte { return l.out }

// Next returns the buffer to which the next entry is to be appended.
func (l *List) Next() []byte {
	if l.count > 0 {
		return append(l.out, ',')
	}
	return l.out
}

// Add takes that buffer with the entry. It returns an error if the entry does not fit.
func (l *List) Add(out []byte) error {
	l.out = out
	l.count++
	return l.room.Check(len(out) + len("]"))
}

// End ends the array. tooLarge is the error of an entry that did not fit, if any: the
// entry is left for the next call, unless it would have been the first.
func (l *List) End(tooLarge error) ([]byte, error) {
	if tooLarge != nil && l.count == 0 {
		return l.out, tooLarge
	}
	return append(l.out, ']'), nil
}
