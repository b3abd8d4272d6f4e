package jsonrpc

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"unicode/utf8"
)

// MaxDepth is the maximum nesting depth of arrays and objects in a request, including its
// envelope and batch. The deepest request of any known method needs six.
const MaxDepth = 64

// scanner steps over JSON text. It checks the complete syntax except the encoding, which is
// cheaper to check for a whole document at once (see [utf8.Valid]). Its methods return
// false at the first fault, and record it in want and pos.
//
// Package strictjson, for files and other nodes, would be slower here: its jsontext reads
// one call as fast, but a batch of 100 calls in 116 µs instead of 88 µs, and a call with 22
// KB of data in 53 µs instead of 21 µs.
type scanner struct {
	data []byte
	pos  int
	want string // what was expected at pos, after a fault
	deep bool   // the fault is the nesting depth, not the syntax
}

func (s *scanner) fail(want string) bool {
	s.want = want
	return false
}

// fault describes the fault, for the data of an error.
func (s *scanner) fault() string {
	where := "at byte " + strconv.Itoa(s.pos)
	if s.pos >= len(s.data) {
		where = "at the end"
	}
	return where + ": expected " + s.want
}

// space moves to the next byte that is not white space and returns it, or 0 at the end. A
// literal 0 byte is invalid everywhere, so callers need not distinguish the two.
func (s *scanner) space() byte {
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// value steps over the value at pos, nested in depth arrays and objects.
func (s *scanner) value(depth int) bool {
	if s.pos >= len(s.data) {
		return s.fail("a value")
	}
	switch c := s.data[s.pos]; c {
	case '"':
		return s.string()
	case '{':
		return s.object(depth + 1)
	case '[':
		return s.array(depth + 1)
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		if c == '-' || isDigit(c) {
			return s.number()
		}
		return s.fail("a value")
	}
}

// enter steps over the opening bracket of nesting level depth.
func (s *scanner) enter(depth int) bool {
	if depth > MaxDepth {
		s.deep = true
		return s.fail("at most " + strconv.Itoa(MaxDepth) + " levels of arrays and objects")
	}
	s.pos++
	return true
}

func (s *scanner) array(depth int) bool {
	if !s.enter(depth) {
		return false
	}
	if s.space() == ']' {
		s.pos++
		return true
	}
	for {
		s.space()
		if !s.value(depth) {
			return false
		}
		if more, ok := s.comma(']'); !more {
			return ok
		}
	}
}

func (s *scanner) object(depth int) bool {
	if !s.enter(depth) {
		return false
	}
	if s.space() == '}' {
		s.pos++
		return true
	}
	for {
		if _, ok := s.name(); !ok || !s.value(depth) {
			return false
		}
		if more, ok := s.comma('}'); !more {
			return ok
		}
	}
}

// name steps over a member's name and the colon, to the start of its value. It returns the
// name between the quotes, still escaped.
func (s *scanner) name() ([]byte, bool) {
	if s.space() != '"' {
		return nil, s.fail("a member's name in quotes")
	}
	from := s.pos + 1
	if !s.string() {
		return nil, false
	}
	name := s.data[from : s.pos-1]
	if s.space() != ':' {
		return nil, s.fail("a colon")
	}
	s.pos++
	s.space()
	return name, true
}

// comma steps over the byte after an element. It returns more=true for a comma, and
// more=false, ok=true for the closing bracket.
func (s *scanner) comma(end byte) (more, ok bool) {
	switch s.space() {
	case ',':
		s.pos++
		return true, true
	case end:
		s.pos++
		return false, true
	}
	if end == ']' {
		return false, s.fail("a comma or ]")
	}
	return false, s.fail("a comma or }")
}

// string steps over a string, from quote to quote.
func (s *scanner) string() bool {
	data := s.data
	for i := s.pos + 1 + plain(data[s.pos+1:]); i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			s.pos = i + 1
			return true
		case c == '\\':
			n := escapeLen(data[i:])
			if n == 0 {
				s.pos = i
				return s.fail("an escape of JSON")
			}
			i += n - 1
		case c < ' ':
			s.pos = i
			return s.fail("a control character to be escaped")
		}
	}
	s.pos = len(data)
	return s.fail("a closing quote")
}

// plain returns how many bytes at the start of text need no escaping or checking. It tests
// words of eight bytes, so the result may be up to seven too low. Most strings are long and
// plain: data of calls, and transactions.
func plain(text []byte) (n int) {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	// less sets the highest bit of each byte of word that is below than. The borrow of the
	// subtraction may also set it in higher bytes, but only if a lower byte is below than,
	// so a nonzero result is always right; the caller then checks byte by byte.
	less := func(word, than uint64) uint64 { return (word - ones*than) &^ word & highs }
	for ; len(text) >= n+8; n += 8 {
		word := binary.LittleEndian.Uint64(text[n:])
		if less(word, ' ')|less(word^ones*'"', 1)|less(word^ones*'\\', 1) != 0 {
			break
		}
	}
	return n
}

// escapeLen returns the length of the escape that data starts with, or 0 if it is invalid.
func escapeLen(data []byte) int {
	if len(data) < 2 {
		return 0
	}
	switch data[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(data) < 6 {
			return 0
		}
		for _, c := range data[2:6] {
			if hexDigit(c) < 0 {
				return 0
			}
		}
		return 6
	}
	return 0
}

func (s *scanner) literal(word string) bool {
	end := s.pos + len(word)
	if end > len(s.data) || string(s.data[s.pos:end]) != word {
		return s.fail(word)
	}
	s.pos = end
	return true
}

// number steps over a number: an integer without leading zeros, then an optional fraction
// and exponent.
func (s *scanner) number() bool {
	if s.data[s.pos] == '-' {
		s.pos++
	}
	if s.pos < len(s.data) && s.data[s.pos] == '0' {
		s.pos++
	} else if !s.digits() {
		return false
	}
	if s.pos < len(s.data) && s.data[s.pos] == '.' {
		s.pos++
		if !s.digits() {
			return false
		}
	}
	if s.pos < len(s.data) && (s.data[s.pos] == 'e' || s.data[s.pos] == 'E') {
		s.pos++
		if s.pos < len(s.data) && (s.data[s.pos] == '+' || s.data[s.pos] == '-') {
			s.pos++
		}
		return s.digits()
	}
	return true
}

// digits steps over one or more digits.
func (s *scanner) digits() bool {
	from := s.pos
	for s.pos < len(s.data) && isDigit(s.data[s.pos]) {
		s.pos++
	}
	return s.pos > from || s.fail("a digit")
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// hexDigit returns the value of a hexadecimal digit, or -1.
func hexDigit(c byte) rune {
	switch {
	case isDigit(c):
		return rune(c - '0')
	case 'a' <= c && c <= 'f':
		return rune(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return rune(c-'A') + 10
	}
	return -1
}

// unquoted resolves the escapes in the text between the quotes of a valid string. It
// returns its argument if there are none.
func unquoted(text []byte) []byte {
	first := bytes.IndexByte(text, '\\')
	if first < 0 {
		return text
	}
	out := append(make([]byte, 0, len(text)), text[:first]...)
	for i := first; i < len(text); {
		if text[i] != '\\' {
			out = append(out, text[i])
			i++
			continue
		}
		var n int
		out, n = appendEscaped(out, text[i:])
		i += n
	}
	return out
}

// appendEscaped appends the character that the escape at the start of text represents, and
// returns the escape's length. An unpaired surrogate becomes U+FFFD.
func appendEscaped(out, text []byte) ([]byte, int) {
	switch text[1] {
	case 'b':
		return append(out, '\b'), 2
	case 'f':
		return append(out, '\f'), 2
	case 'n':
		return append(out, '\n'), 2
	case 'r':
		return append(out, '\r'), 2
	case 't':
		return append(out, '\t'), 2
	case 'u':
		r, n := hex4(text), 6
		if 0xD800 <= r && r < 0xDC00 && len(text) >= 12 && text[6] == '\\' && text[7] == 'u' {
			if low := hex4(text[6:]); 0xDC00 <= low && low < 0xE000 {
				r, n = 0x10000+(r-0xD800)<<10+(low-0xDC00), 12
			}
		}
		return utf8.AppendRune(out, r), n
	}
	return append(out, text[1]), 2
}

// hex4 returns the value of the four digits of a \uXXXX escape.
func hex4(escape []byte) (r rune) {
	for _, c := range escape[2:6] {
		r = r<<4 | hexDigit(c)
	}
	return r
}
