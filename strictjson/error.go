package strictjson

import (
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// Error says what is wrong with a value, and where.
type Error struct {
	Place  string // like transactions[3].signature[0]; empty for the value as a whole
	Offset int64  // number of bytes read
	Err    error  // what was found and what was expected
	Syntax bool   // the text itself is wrong, rather than a value in it: it is not JSON, cut short, too long, or has a name twice
}

func (e *Error) Error() string {
	if e.Place == "" {
		return fmt.Sprintf("up to byte %d: %v", e.Offset, e.Err)
	}
	return fmt.Sprintf("%s, up to byte %d: %v", e.Place, e.Offset, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Fail returns an [*Error] about the value that was read last.
func (r *Reader) Fail(err error) error {
	return &Error{Place: r.place(r.json.StackPointer()), Offset: r.Offset(), Err: err}
}

// FailAt returns an [*Error] about a part of the value that was read last. The place of
// the part is relative to that value.
func (r *Reader) FailAt(part string, err error) error {
	place := r.place(r.json.StackPointer())
	if place != "" && part != "" && part[0] != '[' {
		place += "."
	}
	return &Error{Place: place + part, Offset: r.Offset(), Err: err}
}

// unreadable returns the [*Error] for an error of the decoder.
func (r *Reader) unreadable(err error) error {
	wrong := &Error{Place: r.place(r.json.StackPointer()), Offset: r.Offset(), Syntax: true}
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		wrong.Place, wrong.Offset = r.place(syntax.JSONPointer), syntax.ByteOffset
		err = syntax.Err
	}
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		wrong.Err = fmt.Errorf("cut short: the input ends inside a value: %w", io.ErrUnexpectedEOF)
	case errors.Is(err, ErrTooLong):
		wrong.Err = fmt.Errorf("%w: a value may have %d bytes", ErrTooLong, r.most)
	case errors.Is(err, jsontext.ErrDuplicateName):
		wrong.Err = errors.New("given twice")
	case syntax != nil:
		wrong.Err = fmt.Errorf("not JSON: %w", err)
	default:
		wrong.Err = err
	}
	return wrong
}

// maxLevels is how many levels of objects and arrays an error's place shows.
const maxLevels = 16

// place writes a pointer to a value as most languages do, with indexes in brackets.
func (r *Reader) place(pointer jsontext.Pointer) string {
	var place []byte
	depth := 0
	for token := range pointer.Tokens() {
		if depth++; depth > maxLevels {
			return string(place) + "…"
		}
		var container jsontext.Kind
		if depth <= r.json.StackDepth() {
			container, _ = r.json.StackIndex(depth)
		}
		switch {
		case container == '[':
			place = append(append(append(place, '['), token...), ']')
		case len(place) > 0:
			place = append(append(place, '.'), shorten(token)...)
		default:
			place = append(place, shorten(token)...)
		}
	}
	return string(place)
}

// shorten returns as much of a text as an error shows.
func shorten(text string) string {
	const most = 80
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}
