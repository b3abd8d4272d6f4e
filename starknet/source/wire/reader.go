// Package wire reads the JSON in which feeder gateways and nodes write the
// blocks of Starknet networks: as a stream, strictly, and with the exact place of whatever
// is wrong.
//
// A [Reader] is told what to expect by being asked for it. It never holds more
// of the input than one token, never trusts a length, and reads no further than
// it is allowed to for one value. Members that nobody asks for are passed over,
// since gateways and nodes add some with every version; members given twice are
// refused, since two readers may take either for the right one. How long it takes
// is in proportion to what is read, whatever that is.
package wire

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"ashlar/starknet"

	"github.com/ethereum/go-ethereum/common"
)

// Error says what is wrong with a value, and where.
type Error struct {
	Place  string // like transactions[3].signature[0]; empty for the value as a whole
	Offset int64  // how many bytes had been read
	Err    error  // what was found and what was expected
}

func (e *Error) Error() string {
	if e.Place == "" {
		return fmt.Sprintf("up to byte %d: %v", e.Offset, e.Err)
	}
	return fmt.Sprintf("%s, up to byte %d: %v", e.Place, e.Offset, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// mostMembers is how many members an object may have whose members are read. Each
// is compared with all before it, and the largest, a block, has some twenty.
const mostMembers = 128

// ErrTooLong says that a value has more bytes than one may have.
var ErrTooLong = errors.New("too long")

// Reader reads JSON values that follow each other. It belongs to one goroutine.
type Reader struct {
	input *allowance
	json  *json.Decoder
	most  int64 // bytes of one value

	first   json.Token // of the value to be read, where it was looked at already
	looked  bool       // whether first is one
	path    []step     // to the value that is being read
	members []string   // passed so far, of all the objects that are open
}

// step is one of those that lead to a value: an object's member, or an array's item.
type step struct {
	member string
	item   int // -1 where it is a member
}

// NewReader reads the values of an input, none of which may have more than most bytes.
func NewReader(in io.Reader, most int64) *Reader {
	r := &Reader{input: &allowance{in: in}, most: most}
	r.json = json.NewDecoder(r.input)
	r.json.UseNumber()
	return r
}

// allowance is an input that is read up to an offset and no further.
type allowance struct {
	in    io.Reader
	read  int64
	until int64
}

func (a *allowance) Read(p []byte) (int, error) {
	left := a.until - a.read
	if left <= 0 {
		return 0, ErrTooLong
	}
	n, err := a.in.Read(p[:min(int64(len(p)), left)])
	a.read += int64(n)
	return n, err
}

// Next goes to the next value of the input, which is then to be read. It returns
// io.EOF where the input ends.
func (r *Reader) Next() error {
	r.input.until = r.Offset() + r.most
	first, err := r.json.Token()
	if err == io.EOF {
		return io.EOF
	}
	if err != nil {
		return r.unreadable(err)
	}
	r.lookedAt(first)
	return nil
}

// Offset is how many bytes of the input have been read.
func (r *Reader) Offset() int64 { return r.json.InputOffset() }

// Object reads an object, of which member reads the value of each member, or
// skips it. It fails where a member is given twice, a required one is missing, or
// there are more than any object has.
func (r *Reader) Object(member func(name string) error, required ...string) error {
	if err := r.delimiter('{', "an object"); err != nil {
		return err
	}
	begin := len(r.members)
	for {
		token, err := r.token()
		if err != nil {
			return err
		}
		name, isName := token.(string)
		if !isName { // the end: what else is no name, the decoder has refused
			break
		}
		r.path = append(r.path, step{name, -1})
		if slices.Contains(r.members[begin:], name) {
			return r.Fail(errors.New("given twice"))
		}
		if len(r.members)-begin == mostMembers {
			return r.Fail(fmt.Errorf("too many members: an object may have %d", mostMembers))
		}
		r.members = append(r.members, name)
		if err := member(name); err != nil {
			return err
		}
		r.path = r.path[:len(r.path)-1]
	}
	for _, name := range required {
		if !slices.Contains(r.members[begin:], name) {
			return r.FailAt(name, errors.New("missing"))
		}
	}
	r.members = r.members[:begin]
	return nil
}

// Array reads an array, of which item reads each item, or skips it.
func (r *Reader) Array(item func(index int) error) error {
	if err := r.delimiter('[', "an array"); err != nil {
		return err
	}
	for index := 0; ; index++ {
		r.path = append(r.path, step{"", index})
		token, err := r.token()
		if err != nil {
			return err
		}
		if token == json.Delim(']') {
			r.path = r.path[:len(r.path)-1]
			return nil
		}
		r.lookedAt(token)
		if err := item(index); err != nil {
			return err
		}
		r.path = r.path[:len(r.path)-1]
	}
}

// Felt reads a felt.
func (r *Reader) Felt() (starknet.Felt, error) {
	text, err := r.string("a felt")
	if err != nil {
		return starknet.Felt{}, err
	}
	felt, err := starknet.ParseFelt(text)
	if err != nil {
		return starknet.Felt{}, r.Fail(err)
	}
	return felt, nil
}

// Felts reads an array of felts.
func (r *Reader) Felts() ([]starknet.Felt, error) {
	var felts []starknet.Felt
	err := r.Array(func(int) error {
		felt, err := r.Felt()
		felts = append(felts, felt)
		return err
	})
	return felts, err
}

// Text reads a string.
func (r *Reader) Text() (string, error) { return r.string("a string") }

// Uint64 reads a number that is written in decimal.
func (r *Reader) Uint64() (uint64, error) {
	token, err := r.token()
	if err != nil {
		return 0, err
	}
	const want = "an integer from 0 to 2^64-1"
	digits, ok := token.(json.Number)
	if !ok {
		return 0, r.unexpected(token, want)
	}
	number, err := strconv.ParseUint(digits.String(), 10, 64)
	if err != nil {
		return 0, r.Fail(fmt.Errorf("found %s, expected %s", shortened(digits.String()), want))
	}
	return number, nil
}

// HexUint64 reads a number that is written like a felt.
func (r *Reader) HexUint64() (uint64, error) {
	felt, err := r.Felt()
	if err != nil {
		return 0, err
	}
	if len(felt.Significant()) > 8 {
		return 0, r.Fail(fmt.Errorf("found %s, expected a number below 2^64", felt))
	}
	var number uint64
	for _, b := range felt.Significant() {
		number = number<<8 | uint64(b)
	}
	return number, nil
}

// Int64 reads a number that is written in decimal and may be negative.
func (r *Reader) Int64() (int64, error) {
	token, err := r.token()
	if err != nil {
		return 0, err
	}
	const want = "an integer from -2^63 to 2^63-1"
	digits, ok := token.(json.Number)
	if !ok {
		return 0, r.unexpected(token, want)
	}
	number, err := strconv.ParseInt(digits.String(), 10, 64)
	if err != nil {
		return 0, r.Fail(fmt.Errorf("found %s, expected %s", shortened(digits.String()), want))
	}
	return number, nil
}

// Hash reads a hash of 256 bits, which may be more than a felt holds, written
// like a felt.
func (r *Reader) Hash() (hash common.Hash, err error) {
	text, err := r.string("a hash")
	if err != nil {
		return hash, err
	}
	digits, ok := strings.CutPrefix(text, "0x")
	if !ok || len(digits) == 0 || len(digits) > 2*len(hash) {
		return hash, r.Fail(fmt.Errorf("found %q, expected 0x and 1 to %d hexadecimal digits", shortened(text), 2*len(hash)))
	}
	padded := strings.Repeat("0", 2*len(hash)-len(digits)) + digits
	if _, err := hex.Decode(hash[:], []byte(padded)); err != nil {
		return hash, r.Fail(fmt.Errorf("found %q: %w", text, err))
	}
	return hash, nil
}

// Skip passes over a value of any kind.
func (r *Reader) Skip() error {
	for depth := 0; ; {
		token, err := r.token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// Null says whether the value is null, and passes over it then.
func (r *Reader) Null() (bool, error) {
	token, err := r.token()
	if err != nil || token == nil {
		return err == nil, err
	}
	r.lookedAt(token)
	return false, nil
}

// Fail is an error about the value that was read last.
func (r *Reader) Fail(err error) error {
	return &Error{Place: r.place(), Offset: r.Offset(), Err: err}
}

// FailAt is an error about a part of the value that was read last: the place of
// the part begins at that value.
func (r *Reader) FailAt(part string, err error) error {
	place := r.place()
	if place != "" && part != "" && part[0] != '[' {
		place += "."
	}
	return &Error{Place: place + part, Offset: r.Offset(), Err: err}
}

func (r *Reader) place() string {
	var place []byte
	for _, s := range r.path {
		switch {
		case s.item >= 0:
			place = append(strconv.AppendInt(append(place, '['), int64(s.item), 10), ']')
		case len(place) > 0:
			place = append(append(place, '.'), shortened(s.member)...)
		default:
			place = append(place, shortened(s.member)...)
		}
	}
	return string(place)
}

func (r *Reader) delimiter(want json.Delim, words string) error {
	token, err := r.token()
	if err == nil && token != want {
		err = r.unexpected(token, words)
	}
	return err
}

func (r *Reader) string(words string) (string, error) {
	token, err := r.token()
	if err != nil {
		return "", err
	}
	text, ok := token.(string)
	if !ok {
		return "", r.unexpected(token, words)
	}
	return text, nil
}

// token is the next token of a value that has not ended yet.
func (r *Reader) token() (json.Token, error) {
	if r.looked {
		r.looked = false
		return r.first, nil
	}
	token, err := r.json.Token()
	if err != nil {
		return nil, r.unreadable(err)
	}
	return token, nil
}

// lookedAt makes a token the next one.
func (r *Reader) lookedAt(token json.Token) { r.first, r.looked = token, true }

func (r *Reader) unreadable(err error) error {
	var syntax *json.SyntaxError
	switch {
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		err = fmt.Errorf("cut short: the input ends inside of a value: %w", io.ErrUnexpectedEOF)
	case err == ErrTooLong:
		err = fmt.Errorf("%w: a value may have %d bytes", ErrTooLong, r.most)
	case errors.As(err, &syntax):
		err = fmt.Errorf("not JSON: %w", err)
	}
	return r.Fail(err)
}

func (r *Reader) unexpected(found json.Token, want string) error {
	words := "null"
	switch found := found.(type) {
	case string:
		words = "the string " + strconv.Quote(shortened(found))
	case json.Number:
		words = "the number " + shortened(found.String())
	case bool:
		words = strconv.FormatBool(found)
	case json.Delim:
		words = map[json.Delim]string{'{': "an object", '[': "an array"}[found]
	}
	return r.Fail(fmt.Errorf("found %s, expected %s", words, want))
}

// shortened is as much of a text as an error shows.
func shortened(text string) string {
	const most = 80
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}
