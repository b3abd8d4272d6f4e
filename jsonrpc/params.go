package jsonrpc

import "fmt"

// Arguments splits positional params into raw elements. args[i] becomes the i-th, a slice
// of params, or nil if it is missing or null. The method takes at most len(args) arguments,
// of which the first required ones must be present.
//
//	var args [2][]byte
//	if err := jsonrpc.Arguments(params, args[:], 1); err != nil {
//		return out, err
//	}
//
// An error is an [*Error] with geth's wording.
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

// IsNull reports whether raw is the JSON null, without surrounding white space.
func IsNull(raw []byte) bool { return string(raw) == "null" }

// String returns the contents of a JSON string, and false if raw is not a string. The
// result is a slice of raw unless the string contains escapes.
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

// Set parses raw, a member's value, into *dst. A null resets *dst to its zero value, as if
// the member were absent. If the members of an object are decoded in order, the last of
// several members with the same name wins.
func Set[T any](dst *T, raw []byte, parse func([]byte) (T, error)) (err error) {
	if IsNull(raw) {
		var none T
		*dst = none
		return nil
	}
	*dst, err = parse(raw)
	return err
}

// SetOptional is [Set] for a member that may be absent: *dst is nil if it is absent or
// null.
func SetOptional[T any](dst **T, raw []byte, parse func([]byte) (T, error)) error {
	return Set(dst, raw, func(raw []byte) (*T, error) {
		value, err := parse(raw)
		return &value, err
	})
}

// Cursor iterates over the elements of an array or the members of an object, in order.
//
//	members, ok := jsonrpc.Object(raw)
//	for members.Next() {
//		switch name := members.Name(); { case name.Is("fromBlock"): ... members.Value() ... }
//	}
//	if err := members.Err(); err != nil { ... }
//
// Err is always nil for the params of a [Handler] and any part of them, because the server
// has checked their syntax.
type Cursor struct {
	s       scanner
	end     byte
	started bool
	done    bool
	name    Name
	value   []byte
}

// Array returns a cursor over the elements of raw, and false if raw is not an array.
func Array(raw []byte) (Cursor, bool) { return cursor(raw, '[', ']') }

// Object returns a cursor over the members of raw, and false if raw is not an object.
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

// Next moves to the next element and reports whether there is one.
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

// Name returns the current member's name, unescaped; nil in an array.
func (c *Cursor) Name() Name { return c.name }

// Value returns the current element's raw JSON.
func (c *Cursor) Value() []byte { return c.value }

// Err returns the error that ended the iteration early, an [*Error], or nil.
func (c *Cursor) Err() error {
	if c.s.want == "" {
		return nil
	}
	return &Error{Code: CodeInvalidParams, Message: "invalid params", Data: c.s.fault()}
}
