package jsonrpc

import "unicode/utf8"

// RequestID returns the id of a single request, as raw JSON, from the beginning of its body,
// or nil: for refusals of requests that are not read. It is nil if the body is a batch, has
// no valid id, or was cut off before its id ends.
func RequestID(beginning []byte) (id []byte) {
	s := scanner{data: beginning}
	if s.space() != '{' {
		return nil
	}
	s.pos++
	for {
		name, ok := s.name()
		from := s.pos
		if !ok || !s.value(1) {
			return id
		}
		value := s.data[from:s.pos]
		more, ok := s.comma('}') // without which a number may be cut off
		if ok && Name(unquoted(name)).Is("id") {
			if id = nil; isID(value) && utf8.Valid(value) {
				id = value
			}
		}
		if !more {
			return id
		}
	}
}

// isID reports whether a value is a string, a number or null.
func isID(raw []byte) bool {
	return raw[0] == '"' || raw[0] == '-' || isDigit(raw[0]) || IsNull(raw)
}
