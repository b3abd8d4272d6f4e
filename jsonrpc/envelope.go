package jsonrpc

import "unicode/utf8"

// call is one request: the parts of its envelope, as slices of the request's bytes.
type call struct {
	id     []byte // raw; nil if absent
	method []byte // without quotes and escapes
	params []byte // raw; nil if absent or null
	fault  string // why the request is invalid; empty if it is valid
}

// notification reports whether the call gets no answer.
func (c *call) notification() bool { return c.fault == "" && c.id == nil }

// message is a whole request document.
type message struct {
	calls []call // only the first ones if the batch is over the limit
	batch bool
	size  int // number of elements of the batch; limit+1 means any larger number
}

// parse reads a document, a request or a batch, into m.calls, whose capacity is reused. An
// element that is not a valid request becomes a call with a fault. If the document is not
// JSON, parse returns an error. It does not read the rest of a batch over the limit.
func (m *message) parse(data []byte, limit int) *Error {
	m.calls, m.batch, m.size = m.calls[:0], false, 0
	if !utf8.Valid(data) {
		return &Error{Code: CodeParse, Message: "parse error", Data: "expected UTF-8"}
	}
	s := scanner{data: data}
	ok := true
	if s.space() == '[' {
		m.batch = true
		ok = m.elements(&s, limit)
	} else {
		m.calls = append(m.calls, call{})
		ok = m.calls[0].parse(&s, 0)
	}
	if ok && m.size <= limit {
		s.space()
		ok = s.pos == len(data) || s.fail("nothing after the request")
	}
	switch {
	case ok:
		return nil
	case s.deep:
		return &Error{Code: CodeInvalidRequest, Message: "invalid request", Data: s.fault()}
	}
	return &Error{Code: CodeParse, Message: "parse error", Data: s.fault()}
}

// elements reads the calls of a batch.
func (m *message) elements(s *scanner, limit int) bool {
	s.enter(1)
	if s.space() == ']' {
		s.pos++
		return true
	}
	for {
		s.space()
		m.size++
		if m.size > limit {
			return true
		}
		m.calls = append(m.calls, call{})
		if !m.calls[m.size-1].parse(s, 1) {
			return false
		}
		if more, ok := s.comma(']'); !more {
			return ok
		}
	}
}

// parse reads one element at s. It returns false if the element is not JSON.
func (c *call) parse(s *scanner, depth int) bool {
	if s.pos >= len(s.data) || s.data[s.pos] != '{' {
		c.fault = "expected an object"
		return s.value(depth)
	}
	if !s.enter(depth + 1) {
		return false
	}
	var version []byte
	if s.space() == '}' {
		s.pos++
		c.check(version)
		return true
	}
	for {
		name, ok := s.name()
		from := s.pos
		if !ok || !s.value(depth+1) {
			return false
		}
		raw := s.data[from:s.pos]
		switch name := Name(unquoted(name)); {
		case name.Is("jsonrpc"):
			version = raw
		case name.Is("method"):
			c.method = text(raw)
		case name.Is("params"):
			c.params = raw
		case name.Is("id"):
			c.id = raw
		}
		if more, ok := s.comma('}'); !more {
			c.check(version)
			return ok
		}
	}
}

// check sets c.fault if what was read is not a valid request.
func (c *call) check(version []byte) {
	if IsNull(c.params) {
		c.params = nil
	}
	if len(c.id) > 0 && !isID(c.id) {
		c.id = nil // the id is not usable in an answer
		c.fault = "expected id to be a string, a number or null"
		return
	}
	if string(text(version)) != "2.0" {
		c.fault = `expected jsonrpc to be "2.0"`
	} else if len(c.method) == 0 {
		c.fault = "expected method to be a name"
	}
}

// text returns the contents of a JSON string, or nil for any other value.
func text(raw []byte) []byte {
	if len(raw) == 0 || raw[0] != '"' {
		return nil
	}
	return unquoted(raw[1 : len(raw)-1])
}
