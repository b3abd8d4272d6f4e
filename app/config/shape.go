package config

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

const (
	// maxConfigBytes is larger than any configuration written by hand.
	maxConfigBytes = 1 << 20
	// maxConfigDepth is the maximum nesting depth, because the parser's work is quadratic
	// in it. Actual entries have at most four levels.
	maxConfigDepth = 16
)

// checkShape rejects, before parsing: anchors and aliases, with which a short file can
// expand to any size; deep nesting; a second document, which would be ignored; and texts that
// the parser would split. The error names the line.
func checkShape(path string, text []byte) error {
	if len(text) > maxConfigBytes {
		return fmt.Errorf("%s: %d bytes, expected a configuration of at most %d", path, len(text), maxConfigBytes)
	}
	brackets, line, inLine := 0, 0, 0
	begun, ended := false, false // of the document
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
		if text, split := splitText(t); split && brackets > 0 {
			return fmt.Errorf("%s:%d: %s has a colon: expected quotes around such a text inside brackets, as in [\"%s\"]", path, line, text, text)
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
				inLine++ // each begins a level on this line
			}
		}
		if max(brackets, inLine, indentation(t)/2) > maxConfigDepth {
			return fmt.Errorf("%s:%d: entries are nested deeper than %d levels, which no entry needs", path, line, maxConfigDepth)
		}
	}
	return nil
}

// splitText returns the text that the parser takes for an entry and its value, such as
// ws://10.0.0.5:8546 in {source: [ws://10.0.0.5:8546]}, and whether colon is the place where it does so. In YAML it is one
// text, since no space follows the colon. The rest of a URL or a path is left out of the text, because it may hold a key.
func splitText(colon *token.Token) (text string, split bool) {
	before, after := colon.Prev, colon.Next
	if colon.Type != token.MappingValueType || before == nil || after == nil || !strings.ContainsAny(before.Value, "./") {
		return "", false
	}
	quoted := before.Type == token.SingleQuoteType || before.Type == token.DoubleQuoteType
	adjacent := after.Position.Line == colon.Position.Line && after.Position.Column == colon.Position.Column+1
	text = before.Value + ":" + after.Value
	if scheme, _, isURL := strings.Cut(text, "://"); isURL {
		text = scheme + "://..."
	} else if host, _, hasPath := strings.Cut(text, "/"); hasPath {
		text = host + "/..."
	}
	return text, adjacent && !quoted
}

// indentation returns the column at which a token's line begins.
func indentation(t *token.Token) int {
	if t.Prev != nil && t.Prev.Position.Line == t.Position.Line {
		return 0
	}
	return t.Position.Column - 1
}
