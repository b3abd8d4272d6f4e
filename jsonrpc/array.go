package jsonrpc

// AppendArray appends an array of items, each as appendItem appends it. It is for
// arrays that are short; see [Room.AppendArray] for those that may be long.
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

// AppendArray appends an array of so many items, each as appendItem appends the one at
// an index. It ends at the first error, or where the room does.
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
