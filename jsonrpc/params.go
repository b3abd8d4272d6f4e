package jsonrpc

import "fmt"

// Arguments cuts positional params into their raw elements: args[i] becomes the
// i-th, a slice of params, or nil when it is missing or null. The length of args
// is the most that the method takes, required how many it cannot do without.
//
//	var args [2][]byte
//	if err := jsonrpc.Arguments(params, args[:], 1); err != nil {
//		return out, err
//	}
//
// The error, if any, is an [*Error] worded as geth words it.
func Arguments(params []byte, args [][]byte, required int) error {
	clear(args)
	n := 0
	if len(params) > 0 && !IsNull(params) {
		elements, ok := Array(params)
		if !ok {
			return errNonArray()
		}
		for ; elements.Next(); n++ {
			if n == len(args) {
				return &Error{Code: CodeInvalidParams, Message: fmt.Sprintf("too many arguments, want at most %d", n)}
			}
			if !IsNull(elements.Value()) {
				args[n] = elements.Value()
			}
		}
		if elements.Err() != nil {
			return elements.Err()
		}
	}
	for i := range required {
		if args[i] == nil {
			return &Error{Code: CodeInvalidParams, Message: fmt.Sprintf("missing value for required argument %d", i)}
		}
	}
	return nil
}

func errNonArray() *Error { return &Error{Code: CodeInvalidParams, Message: "non-array args"} }

// IsNull says whether raw is the JSON null, without white space around it.
func IsNull(raw []byte) bool { return string(raw) == "null" }

// String returns what a JSON string holds, and false if raw is no string. It is a
// slice of raw unless there were escapes in it.
func String(raw []byte) ([]byte, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return nil, false
	}
	s := scanner{data: raw}
	if !s.string() || s.pos != len(raw) {
		return nil, false
	}
	return text(raw), true
}

// Set decodes raw, a member's value, into *dst. null makes it what it is where nothing
// is given. So of members with one name the last counts, whatever it is, where an
// object is decoded in the order in which its members stand.
func Set[T any](dst *T, raw []byte, parse func([]byte) (T, error)) (err error) {
	if IsNull(raw) {
		var none T
		*dst = none
		return nil
	}
	*dst, err = parse(raw)
	return err
}

// SetOptional is [Set] for a member of which it matters whether it is given: *dst is
// nil where it is not.
func SetOptional[T any](dst **T, raw []byte, parse func([]byte) (T, error)) error {
	return Set(dst, raw, func(raw []byte) (*T, error) {
		value, err := parse(raw)
		return &value, err
	})
}

// Cursor steps through the elements of an array or the members of an object in
// the order in which they stand.
//
//	members, ok := jsonrpc.Object(raw)
//	for members.Next() {
//		switch string(members.Name()) { ... members.Value() ... }
//	}
//	if err := members.Err(); err != nil { ... }
//
// Over the params of a [Handler], or any part of them, Err is nil: they were
// checked before the method was called.
type Cursor struct {
	s       scanner
	end     byte
	started bool
	done    bool
	name    []byte
	value   []byte
}

// Array returns a cursor over the elements of raw, and false if raw is no array.
func Array(raw []byte) (Cursor, bool) { return cursor(raw, '[', ']') }

// Object returns a cursor over the members of raw, and false if raw is no object.
func Object(raw []byte) (Cursor, bool) { return cursor(raw, '{', '}') }

func cursor(raw []byte, open, end byte) (Cursor, bool) {
	c := Cursor{s: scanner{data: raw}, end: end}
	if c.s.space() != open {
		c.done = true
		return c, false
	}
	c.s.pos++
	return c, true
}

// Next moves to the next element and says whether there is one.
func (c *Cursor) Next() bool {
	if c.done {
		return false
	}
	if !c.started {
		c.started = true
		if c.s.space() == c.end {
			c.s.pos++
			return c.finish()
		}
	} else if more, _ := c.s.comma(c.end); !more {
		return c.finish()
	}
	if c.end == '}' {
		name, ok := c.s.name()
		if !ok {
			return c.finish()
		}
		c.name = unquoted(name)
	}
	c.s.space()
	from := c.s.pos
	if !c.s.value(1) {
		return c.finish()
	}
	c.value = c.s.data[from:c.s.pos]
	return true
}

func (c *Cursor) finish() bool {
	c.done, c.name, c.value = true, nil, nil
	if c.s.want != "" {
		return false
	}
	if c.s.space(); c.s.pos < len(c.s.data) {
		c.s.fail("nothing more")
	}
	return false
}

// Name is the current member's name, its escapes resolved; nil in an array.
func (c *Cursor) Name() []byte { return c.name }

// Value is the current element's raw JSON.
func (c *Cursor) Value() []byte { return c.value }

// Err is nil, or what ended the cursor before the end: an [*Error].
func (c *Cursor) Err() error {
	if c.s.want == "" {
		return nil
	}
	return &Error{Code: CodeInvalidParams, Message: "invalid params", Data: c.s.fault()}
}
