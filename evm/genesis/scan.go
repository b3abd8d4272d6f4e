package genesis

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
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

// rule judges one JSON value, of which it is given the first token.
type rule func(s *scanner, path string, first json.Token) error

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

// stranger judges a member that an object is not known to have.
type stranger func(s *scanner, path, name string, first json.Token) error

// scanner walks a genesis file token by token, beside the decoding proper. The
// decoder of encoding/json passes over unknown names and lets the last of several
// win; the scanner refuses both by name, or warns of them.
type scanner struct {
	data     []byte
	json     *json.Decoder
	lines    map[string]int // of all members but those of alloc
	warnings []string
	warned   map[string]bool // by what they are about
}

func scan(data []byte, file rule) (*scanner, error) {
	s := &scanner{data: data, json: json.NewDecoder(bytes.NewReader(data)), lines: make(map[string]int), warned: make(map[string]bool)}
	s.json.UseNumber()
	first, err := s.token()
	if err == nil {
		err = file(s, "", first)
	}
	if err != nil {
		return nil, err
	}
	if _, err := s.json.Token(); err != io.EOF {
		return nil, s.fault("", errors.New("there is more after the end of the genesis object"))
	}
	return s, nil
}

// token returns the next token, where the text must not end yet.
func (s *scanner) token() (json.Token, error) {
	t, err := s.json.Token()
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil, s.fault("", errors.New("not a whole JSON object: the text ends inside of it"))
	}
	if err != nil {
		return nil, s.fault("", fmt.Errorf("not JSON: %w", err))
	}
	return t, nil
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
func (s *scanner) line() int {
	return 1 + bytes.Count(s.data[:s.json.InputOffset()], []byte("\n"))
}

// object accepts an object with these members; of others, unknown says what to do. A
// member that is null counts as absent, as geth writes it.
func object(known map[string]field, unknown stranger) rule {
	members := make(fields, len(known))
	for name, f := range known {
		members[strings.ToLower(name)] = f
	}
	return func(s *scanner, path string, first json.Token) error {
		seen := make(map[string]bool, len(members))
		err := s.members(path, first, func(name string) error {
			member, lower := join(path, name), strings.ToLower(name)
			if seen[lower] {
				return s.fault(member, errors.New("given twice"))
			}
			seen[lower] = true
			f, ok := members[lower]
			if ok && !strings.Contains(member, "[") {
				s.lines[lowerName(member)] = s.line()
			}
			value, err := s.token()
			switch {
			case err != nil:
				return err
			case value == nil && f.required:
				return s.fault(member, errors.New("is null, and must have a value"))
			case value == nil:
				return nil
			case !ok:
				return unknown(s, path, name, value)
			}
			return f.rule(s, member, value)
		})
		if err != nil {
			return err
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
func refuse(s *scanner, path, name string, _ json.Token) error {
	return s.fault(join(path, name), errors.New("unknown field; remove it if it means nothing to this chain"))
}

// warn passes over a member. It warns once of members of that name, however many
// accounts have one.
func warn(s *scanner, path, name string, first json.Token) error {
	return s.ignoreWith("unknown field; it is ignored", path, name, first)
}

// ignoreWith passes over a member with a warning.
func (s *scanner) ignoreWith(why, path, name string, first json.Token) error {
	pattern := join(path, name)
	if open := strings.IndexByte(pattern, '['); open >= 0 {
		pattern = pattern[:open] + "[…]" + pattern[strings.LastIndexByte(pattern, ']')+1:]
	}
	if key := lowerName(pattern); !s.warned[key] && len(s.warnings) < maxWarnings {
		s.warned[key] = true
		s.warnings = append(s.warnings, fmt.Sprintf("line %d: %s: %s", s.line(), pattern, why))
	}
	return ignored(s, pattern, first)
}

// mapping accepts an object whose names are data: key returns the one spelling
// of a name, by which the same name given twice is found.
func mapping(key func(name string) (string, error), value rule) rule {
	return func(s *scanner, path string, first json.Token) error {
		seen := make(map[string]bool)
		return s.members(path, first, func(name string) error {
			canonical, err := key(name)
			if err != nil {
				return s.fault(path+"["+shorten(name)+"]", err)
			}
			member := path + "[" + canonical + "]"
			if seen[canonical] {
				return s.fault(member, errors.New("given twice"))
			}
			seen[canonical] = true
			first, err := s.token()
			if err != nil {
				return err
			}
			return value(s, member, first)
		})
	}
}

// members walks the members of an object, each of which visit has to consume.
func (s *scanner) members(path string, first json.Token, visit func(name string) error) error {
	if first != json.Delim('{') {
		return s.fault(path, fmt.Errorf("want an object, found %s", describe(first)))
	}
	for {
		t, err := s.token()
		if err != nil {
			return err
		}
		name, isName := t.(string)
		if !isName {
			return nil // the closing brace; the decoder allows nothing else here
		}
		if err := visit(name); err != nil {
			return err
		}
	}
}

// ignored accepts any value.
func ignored(s *scanner, _ string, first json.Token) error {
	depth := 0
	for t := first; ; {
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
		var err error
		if t, err = s.token(); err != nil {
			return err
		}
	}
}

// scalar accepts a string or a number whose text check finds in order.
func scalar(want string, check func(text string, isString bool) bool) rule {
	return func(s *scanner, path string, first json.Token) error {
		ok := false
		switch value := first.(type) {
		case string:
			ok = check(value, true)
		case json.Number:
			ok = check(value.String(), false)
		}
		if !ok {
			return s.fault(path, fmt.Errorf("want %s, found %s", want, describe(first)))
		}
		return nil
	}
}

func boolean(s *scanner, path string, first json.Token) error {
	if _, ok := first.(bool); !ok {
		return s.fault(path, fmt.Errorf("want true or false, found %s", describe(first)))
	}
	return nil
}

func join(path, name string) string {
	if path == "" {
		return shorten(name)
	}
	return path + "." + shorten(name)
}

func describe(value json.Token) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case string:
		return fmt.Sprintf("the string %q", shorten(v))
	case json.Number:
		return "the number " + shorten(v.String())
	case bool:
		return fmt.Sprint(v)
	case json.Delim:
		if v == '[' {
			return "an array"
		}
	}
	return "an object"
}

// shorten keeps an error readable whatever the file holds.
func shorten(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
