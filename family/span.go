package family

import (
	"errors"
	"strconv"
	"strings"
)

// Span is how many blocks back from the last settled one something is kept: a number, or all
// of them, which is 0.
type Span uint64

// ExpectedSpan describes what a Span looks like.
const ExpectedSpan = "a number of blocks from 1 on, or all"

// ParseSpan parses a Span as it is written in the configuration.
func ParseSpan(text string) (Span, error) {
	if text == "all" {
		return 0, nil
	}
	n, err := strconv.ParseUint(strings.ReplaceAll(text, "_", ""), 10, 64)
	if err != nil || n == 0 {
		return 0, errors.New("expected " + ExpectedSpan)
	}
	return Span(n), nil
}

// UnmarshalYAML implements yaml.BytesUnmarshaler.
func (s *Span) UnmarshalYAML(text []byte) (err error) {
	*s, err = ParseSpan(strings.TrimSpace(string(text)))
	return err
}

// String is the text in the configuration.
func (s Span) String() string {
	if s == 0 {
		return "all"
	}
	return strconv.FormatUint(uint64(s), 10)
}
