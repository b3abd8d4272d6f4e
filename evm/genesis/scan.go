package genesis

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"ashlar/strictjson"
)

// FieldError says which field of a genesis file is not accepted, and why.
type FieldError struct {
	Path string // as in config.cancunTime or alloc[0x…].balance; empty for the file as a whole
	Line int    // from 1; 0 when unknown
	Err  error  // what was found and what was expected
}

func (e *FieldError) Error() string {
	var place strings.Builder
	if e.Line > 0 {
		fmt.Fprintf(&place, "line %d: ", e.Line)
	}
	if e.Path != "" {
		fmt.Fprintf(&place, "%s: ", e.Path)
	}
	return place.String() + e.Err.Error()
}

func (e *FieldError) Unwrap() error { return e.Err }

// rule reads one JSON value and judges it.
type rule func(s *scanner, path string) error

// field is a member that an object may have, or must have.
type field struct {
	rule     rule
	required bool
}

// fields are the members of an object by their names in lower case: go-ethereum's
// decoder takes a name in any case, and Besu writes some in its own.
type fields map[string]field

// maxWarnings bounds the warnings about a file.
const maxWarnings = 100

// stranger reads and judges a member that an object is not known to have.
type stranger func(s *scanner, path, name string) error

// scanner walks a genesis file value by value, beside the decoding proper. The
// decoder of encoding/json passes over unknown names and lets the last of several
// win; the scanner refuses both by name, or warns of them.
type scanner struct {
	data     []byte
	json     *strictjson.Reader
	lines    map[string]int // of all members but those of alloc
	warnings []string
	warned   map[string]bool // by what they are about
}

func scan(data []byte, file rule) (*scanner, error) {
	const end = 1 // where the reader meets the end of the file
	s := &scanner{
		data: data, json: strictjson.NewReader(bytes.NewReader(data), int64(len(data))+end),
		lines: make(map[string]int), warned: make(map[string]bool),
	}
	err := s.json.Next()
	switch {
	case err == io.EOF:
		return nil, s.fault("", errors.New("the file is empty"))
	case err == nil:
		err = file(s, "")
	}
	if err != nil {
		return nil, s.located("", err)
	}
	if rest := bytes.TrimLeft(data[s.json.Offset():], " \t\r\n"); len(rest) > 0 {
		line := s.lineAt(int64(len(data) - len(rest)))
		return nil, &FieldError{Line: line, Err: errors.New("there is more after the end of the genesis object")}
	}
	return s, nil
}

// located turns an error of the reader into a [*FieldError] of the field at path, or of
// the place that it names if the text itself is wrong there. Other errors stay as they are.
func (s *scanner) located(path string, err error) error {
	var wrong *strictjson.Error
	if !errors.As(err, &wrong) {
		return err
	}
	if wrong.Syntax {
		path = wrong.Place
	}
	return &FieldError{Path: path, Line: s.lineAt(wrong.Offset), Err: wrong.Err}
}

// fault is an error at the token that was read last.
func (s *scanner) fault(path string, err error) error {
	return &FieldError{Path: path, Line: s.line(), Err: err}
}

// at is an error in a field that has been passed already, or is absent: then the
// line is that of the object that should have it.
func (s *scanner) at(path string, format string, args ...any) error {
	line, owner := s.lines[lowerName(path)], path
	for i := strings.LastIndexByte(owner, '.'); line == 0 && i > 0; i = strings.LastIndexByte(owner, '.') {
		owner = owner[:i]
		line = s.lines[lowerName(owner)]
	}
	return &FieldError{Path: path, Line: line, Err: fmt.Errorf(format, args...)}
}

// line is that of the token that was read last.
func (s *scanner) line() int { return s.lineAt(s.json.Offset()) }

func (s *scanner) lineAt(offset int64) int {
	return 1 + bytes.Count(s.data[:offset], []byte("\n"))
}

// object accepts an object with these members; of others, unknown says what to do. A
// member that is null counts as absent, as geth writes it.
func object(known map[string]field, unknown stranger) rule {
	members := make(fields, len(known))
	for name, f := range known {
		members[strings.ToLower(name)] = f
	}
	return func(s *scanner, path string) error {
		seen := make(map[string]bool, len(members))
		err := s.json.Object(func(name string) error {
			member, lower := join(path, name), strings.ToLower(name)
			if seen[lower] {
				return s.fault(member, errors.New("given twice"))
			}
			seen[lower] = true
			f, ok := members[lower]
			if ok && !strings.Contains(member, "[") {
				s.lines[lowerName(member)] = s.line()
			}
			null, err := s.json.Null()
			switch {
			case err != nil:
				return err
			case null && f.required:
				return s.fault(member, errors.New("is null, and must have a value"))
			case null:
				return nil
			case !ok:
				return unknown(s, path, name)
			}
			return f.rule(s, member)
		})
		if err != nil {
			return s.located(path, err)
		}
		for _, name := range slices.Sorted(maps.Keys(known)) {
			if known[name].required && !seen[strings.ToLower(name)] {
				return s.fault(join(path, name), errors.New("is missing"))
			}
		}
		return nil
	}
}

// lowerName is the key of a path in the scanner's lines.
func lowerName(path string) string { return strings.ToLower(path) }

// refuse is for objects whose members all have a meaning.
func refuse(s *scanner, path, name string) error {
	return s.fault(join(path, name), errors.New("unknown field; remove it if it means nothing to this chain"))
}

// warn passes over a member. It warns once of members of that name, however many
// accounts have one.
func warn(s *scanner, path, name string) error {
	return s.ignoreWith("unknown field; it is ignored", path, name)
}

// ignoreWith passes over a member with a warning.
func (s *scanner) ignoreWith(why, path, name string) error {
	pattern := join(path, name)
	if open := strings.IndexByte(pattern, '['); open >= 0 {
		pattern = pattern[:open] + "[…]" + pattern[strings.LastIndexByte(pattern, ']')+1:]
	}
	if key := lowerName(pattern); !s.warned[key] && len(s.warnings) < maxWarnings {
		s.warned[key] = true
		s.warnings = append(s.warnings, fmt.Sprintf("line %d: %s: %s", s.line(), pattern, why))
	}
	return ignored(s, pattern)
}

// mapping accepts an object whose names are data: key returns the one spelling
// of a name, by which the same name given twice is found.
func mapping(key func(name string) (string, error), value rule) rule {
	return func(s *scanner, path string) error {
		seen := make(map[string]bool)
		err := s.json.Object(func(name string) error {
			canonical, err := key(name)
			if err != nil {
				return s.fault(path+"["+shorten(name)+"]", err)
			}
			member := path + "[" + canonical + "]"
			if seen[canonical] {
				return s.fault(member, errors.New("given twice"))
			}
			seen[canonical] = true
			return value(s, member)
		})
		return s.located(path, err)
	}
}

// ignored accepts any value.
func ignored(s *scanner, path string) error { return s.located(path, s.json.Skip()) }

// scalar accepts a string or a number whose text check finds in order.
func scalar(want string, check func(text string, isString bool) bool) rule {
	return func(s *scanner, path string) error { return s.located(path, s.json.Scalar(want, check)) }
}

func boolean(s *scanner, path string) error {
	_, err := s.json.Bool()
	return s.located(path, err)
}

func join(path, name string) string {
	if path == "" {
		return shorten(name)
	}
	return path + "." + shorten(name)
}

// shorten keeps an error readable whatever the file holds.
func shorten(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
