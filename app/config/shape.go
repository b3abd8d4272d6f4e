package config

import (
	"fmt"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

const (
	// maxConfigBytes is more than anybody writes by hand.
	maxConfigBytes = 1 << 20
	// maxConfigDepth is how deep entries may be nested: the parser's work grows
	// with the square of it. The deepest that there are have four levels.
	maxConfigDepth = 16
)

// checkShape refuses what no configuration needs before it is parsed: entries
// that stand for others, with which a short file can unfold to any size, and deep
// nesting, and a second document, whose entries nobody would read. The error says in
// which line.
func checkShape(path string, text []byte) error {
	if len(text) > maxConfigBytes {
		return fmt.Errorf("%s: %d bytes, expected a configuration of at most %d", path, len(text), maxConfigBytes)
	}
	brackets, line, inLine := 0, 0, 0
	begun, ended := false, false // the document
	for _, t := range lexer.Tokenize(string(text)) {
		if t.Position.Line != line {
			line, inLine = t.Position.Line, 0
		}
		switch another := t.Type == token.DocumentHeaderType; {
		case t.Type == token.CommentType || t.Type == token.DirectiveType && !begun:
		case begun && another, ended && t.Type != token.DocumentEndType:
			return fmt.Errorf("%s:%d: a second document begins: expected all entries in one", path, line)
		default:
			begun, ended = true, t.Type == token.DocumentEndType
		}
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType, token.TagType:
			return fmt.Errorf("%s:%d: %q: anchors, aliases and tags are not supported; expected the value itself", path, line, t.Value)
		case token.SequenceStartType, token.MappingStartType:
			brackets++
		case token.SequenceEndType, token.MappingEndType:
			brackets = max(0, brackets-1)
		case token.SequenceEntryType, token.MappingKeyType, token.MappingValueType:
			if brackets == 0 {
				inLine++ // each of them begins a level there
			}
		}
		if max(brackets, inLine, indentation(t)/2) > maxConfigDepth {
			return fmt.Errorf("%s:%d: entries are nested deeper than %d levels, which no entry needs", path, line, maxConfigDepth)
		}
	}
	return nil
}

// indentation is how far from the left a token's line begins.
func indentation(t *token.Token) int {
	if t.Prev != nil && t.Prev.Position.Line == t.Position.Line {
		return 0
	}
	return t.Position.Column - 1
}
