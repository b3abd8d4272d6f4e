// Package strictjson reads JSON as a stream, strictly, and with the exact place of
// whatever is wrong: files and answers of other nodes, which may hold anything.
//
// The caller asks a [Reader] for the value that it expects next. A Reader holds one token
// of the input and the member names of open objects, never trusts a length, and reads no
// more bytes than are allowed for one value. It refuses invalid UTF-8 and member names
// given twice, since two programs may each take another of the members for the right one.
// Members that the caller does not know can be skipped. Reading takes time in proportion
// to the input.
//
// It is built on jsontext. Requests of clients are read by package jsonrpc instead, in
// place and without a copy.
package strictjson

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// ErrTooLong says that a value has more bytes than allowed.
var ErrTooLong = errors.New("too long")

// Reader reads JSON values that follow each other. It belongs to one goroutine.
type Reader struct {
	input *boundedInput
	json  *jsontext.Decoder
	most  int64 // bytes of one value
}

// NewReader returns a reader of an input whose values have at most so many bytes each.
func NewReader(in io.Reader, most int64) *Reader {
	input := &boundedInput{in: in}
	return &Reader{input: input, json: jsontext.NewDecoder(input), most: most}
}

// boundedInput is an input that is read up to an offset and no further.
type boundedInput struct {
	in    io.Reader
	read  int64
	until int64
}

func (b *boundedInput) Read(p []byte) (int, error) {
	left := b.until - b.read
	if left <= 0 {
		return 0, ErrTooLong
	}
	n, err := b.in.Read(p[:min(int64(len(p)), left)])
	b.read += int64(n)
	return n, err
}

// Next goes to the next value of the input, which is to be read then. It returns io.EOF
// at the end of the input.
func (r *Reader) Next() error {
	r.input.until = r.Offset() + r.most
	if r.json.PeekKind() != 0 {
		return nil
	}
	_, err := r.json.ReadToken()
	if err == io.EOF {
		return io.EOF
	}
	return r.unreadable(err)
}

// Offset returns the number of bytes read up to the end of the last token.
func (r *Reader) Offset() int64 { return r.json.InputOffset() }

// Object reads an object. It calls member with each name, which must read or skip the
// value. It fails if a required member, of which there are at most 64, is missing.
func (r *Reader) Object(member func(name string) error, required ...string) error {
	if err := r.begin('{', "an object"); err != nil {
		return err
	}
	var given uint64 // bit i: required[i]
	for r.json.PeekKind() != '}' {
		token, err := r.token()
		if err != nil {
			return err
		}
		name := token.String()
		if i := slices.Index(required, name); i >= 0 {
			given |= 1 << i
		}
		if err := member(name); err != nil {
			return err
		}
	}
	if _, err := r.token(); err != nil {
		return err
	}
	for i, name := range required {
		if given&(1<<i) == 0 {
			return r.FailAt(name, errors.New("missing"))
		}
	}
	return nil
}

// Array reads an array. It calls item for each item, which must read or skip it.
func (r *Reader) Array(item func(index int) error) error {
	if err := r.begin('[', "an array"); err != nil {
		return err
	}
	for index := 0; ; index++ {
		switch r.json.PeekKind() {
		case ']', 0:
			_, err := r.token()
			return err
		}
		if err := item(index); err != nil {
			return err
		}
	}
}

// Text reads a string.
func (r *Reader) Text() (string, error) { return r.TextOf("a string") }

// TextOf reads a string. what describes it in the error for other values, like "a felt".
func (r *Reader) TextOf(what string) (string, error) {
	token, err := r.token()
	if err == nil && token.Kind() != '"' {
		err = r.unexpected(token, what)
	}
	if err != nil {
		return "", err
	}
	return token.String(), nil
}

// Bool reads true or false.
func (r *Reader) Bool() (bool, error) {
	token, err := r.token()
	if err != nil {
		return false, err
	}
	if kind := token.Kind(); kind != 't' && kind != 'f' {
		return false, r.unexpected(token, "true or false")
	}
	return token.Bool(), nil
}

// Scalar reads a string or a number that check accepts. what describes such values in the
// error for others.
func (r *Reader) Scalar(what string, check func(text string, isString bool) bool) error {
	token, err := r.token()
	if err != nil {
		return err
	}
	switch token.Kind() {
	case '"', '0':
		if check(token.String(), token.Kind() == '"') {
			return nil
		}
	}
	return r.unexpected(token, what)
}

// Uint64 reads a number in decimal.
func (r *Reader) Uint64() (uint64, error) {
	return integer(r, "an integer from 0 to 2^64-1", func(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) })
}

// Int64 reads a number in decimal that may be negative.
func (r *Reader) Int64() (int64, error) {
	return integer(r, "an integer from -2^63 to 2^63-1", func(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) })
}

func integer[T any](r *Reader, what string, parse func(string) (T, error)) (number T, err error) {
	token, err := r.token()
	if err != nil {
		return number, err
	}
	if token.Kind() == '0' {
		if number, err = parse(token.String()); err == nil {
			return number, nil
		}
	}
	return number, r.unexpected(token, what)
}

// Skip reads a value of any kind.
func (r *Reader) Skip() error {
	if err := r.json.SkipValue(); err != nil {
		return r.unreadable(err)
	}
	return nil
}

// Raw reads a value of any kind and returns its text, which is valid until the next call.
func (r *Reader) Raw() ([]byte, error) {
	raw, err := r.json.ReadValue()
	if err != nil {
		return nil, r.unreadable(err)
	}
	return raw, nil
}

// Null reports whether the value is null, and reads it in that case.
func (r *Reader) Null() (bool, error) {
	if r.json.PeekKind() != 'n' {
		return false, nil
	}
	_, err := r.token()
	return err == nil, err
}

func (r *Reader) begin(kind jsontext.Kind, what string) error {
	token, err := r.token()
	if err == nil && token.Kind() != kind {
		err = r.unexpected(token, what)
	}
	return err
}

// token returns the next token of a value that has not ended yet.
func (r *Reader) token() (jsontext.Token, error) {
	token, err := r.json.ReadToken()
	if err != nil {
		return token, r.unreadable(err)
	}
	return token, nil
}

func (r *Reader) unexpected(found jsontext.Token, want string) error {
	var words string
	switch found.Kind() {
	case '"':
		words = "the string " + strconv.Quote(shorten(found.String()))
	case '0':
		words = "the number " + shorten(found.String())
	case '{':
		words = "an object"
	case '[':
		words = "an array"
	default:
		words = found.String()
	}
	return r.Fail(fmt.Errorf("found %s, expected %s", words, want))
}
