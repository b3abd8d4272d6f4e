package jsonrpc

// AppendArray appends a short JSON array of items, each encoded by appendItem. For arrays
// that may be long, see [Room.AppendArray].
func AppendArray[T any](out []byte, items []T, appendItem func(out []byte, item T) []byte) []byte {
	out = append(out, '[')
	for i, item := range items {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendItem(out, item)
	}
	return append(out, ']')
}

// AppendArray appends a JSON array of length items; appendItem appends the item at an
// index. It stops at the first error, or when the room is exhausted.
func (r Room) AppendArray(out []byte, length int, appendItem func(out []byte, i int) ([]byte, error)) (_ []byte, err error) {
	out = append(out, '[')
	for i := range length {
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = appendItem(out, i); err != nil {
			return out, err
		}
		if err = r.Check(len(out)); err != nil {
			return out, err
		}
	}
	return append(out, ']'), nil
}
