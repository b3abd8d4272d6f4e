// Package retention says how much history a network keeps: as it is configured, as it is removed, and as the status
// shows it.
package retention

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Window is how much history a network keeps, back from its last settled block. The zero value keeps all.
type Window struct {
	Proofs  Span `yaml:"proofs" json:"proofs"`   // trie nodes, of which proofs and state roots of simulations are made
	State   Span `yaml:"state" json:"state"`     // states, with calls and traces
	History Span `yaml:"history" json:"history"` // blocks, receipts, logs
}

// All reports whether a window keeps all history.
func (w Window) All() bool { return w == Window{} }

// Check returns an error if a window cannot be kept.
func (w Window) Check() error {
	if w.History > 0 && (w.State == 0 || w.State > w.History) {
		return fmt.Errorf("history is %d blocks and state is %s: a state needs its block (want a state of at most %d)", w.History, w.State.blocks(), w.History)
	}
	if w.Proofs > 0 && w.State > 0 && w.Proofs > w.State {
		return fmt.Errorf("state is %d blocks and proofs are %d blocks: a proof needs its state (want proofs of at most %d blocks)", w.State, w.Proofs, w.State)
	}
	return nil
}

// Span is how many blocks back from the last settled one something is kept: a number, or all
// of them, which is 0.
type Span uint64

// Expected describes what a Span looks like.
const Expected = "a number of blocks from 1 on, or all"

// Parse parses a Span as it is written in the configuration.
func Parse(text string) (Span, error) {
	if text == "all" {
		return 0, nil
	}
	n, err := strconv.ParseUint(strings.ReplaceAll(text, "_", ""), 10, 64)
	if err != nil || n == 0 {
		return 0, errors.New("expected " + Expected)
	}
	return Span(n), nil
}

// UnmarshalYAML implements yaml.BytesUnmarshaler.
func (s *Span) UnmarshalYAML(text []byte) error { return s.Set(strings.TrimSpace(string(text))) }

// Set implements the Value of a flag.
func (s *Span) Set(text string) (err error) {
	*s, err = Parse(text)
	return err
}

// Type implements the Value of a flag.
func (*Span) Type() string { return "N" }

// String is the text in the configuration.
func (s Span) String() string {
	if s == 0 {
		return "all"
	}
	return strconv.FormatUint(uint64(s), 10)
}

func (s Span) blocks() string {
	if s == 0 {
		return "all"
	}
	return s.String() + " blocks"
}
