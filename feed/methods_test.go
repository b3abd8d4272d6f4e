package feed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
)

// A method that reads a filter concerns the contracts for which the filter was installed.
func TestConcernOfFilters(t *testing.T) {
	f := NewFilters[string](Limits{}.WithDefaults(), time.Now)
	contracts := []common.Address{{1}, {2}}
	concerns := f.Concerning(func(query string) ([]common.Address, bool) {
		return map[string][]common.Address{"logs of two": contracts}[query], query != "blocks"
	})
	named := func(query string) string { return fmt.Sprintf("[%q]", mustAdd(t, f, "", query, 1)) }
	for _, c := range []struct {
		name, params string
		none         bool
		about        []common.Address
	}{
		{"logs of two contracts", named("logs of two"), false, contracts},
		{"logs of any contract", named("logs"), false, nil},
		{"blocks", named("blocks"), true, nil},
		{"no such filter", `["0x1"]`, true, nil},
	} {
		concern, err := concerns(t.Context(), []byte(c.params))
		var about []common.Address
		for _, contract := range concern.Contracts() {
			about = append(about, common.BytesToAddress([]byte(contract)))
		}
		if err != nil || concern.IsNone() != c.none || !slices.Equal(about, c.about) {
			t.Errorf("%s: %v, none %t, %v; expected %v, none %t", c.name, about, concern.IsNone(), err, c.about, c.none)
		}
	}
	if _, err := concerns(t.Context(), []byte(`[]`)); err == nil || !strings.Contains(err.Error(), "this call cannot be read") {
		t.Errorf("without a filter: %v", err)
	}
}

// A filter that has fallen behind, or cannot go on, is removed; one that fails otherwise, or lacks room only now, stays.
func TestChanges(t *testing.T) {
	tooLarge := &jsonrpc.Error{Code: jsonrpc.CodeTooLarge, Message: "response too large"}
	for name, c := range map[string]struct {
		err   error
		stays bool
	}{
		"something new":   {nil, true},
		"fallen behind":   {fmt.Errorf("read: %w", ErrFilterNotFound), false},
		"never fits":      {tooLarge, false},
		"another failure": {errors.New("no store"), true},
	} {
		f := NewFilters[string](Limits{}.WithDefaults(), time.Now)
		id := mustAdd(t, f, "", "a filter", 1)
		read := f.Changes(func(query string, _ jsonrpc.Room, out []byte) ([]byte, error) { return append(out, query...), c.err })
		out, err := read(t.Context(), fmt.Appendf(nil, "[%q]", id), []byte("> "))
		if !errors.Is(err, c.err) || string(out) != "> a filter" {
			t.Errorf("%s: %q, %v", name, out, err)
		}
		if _, ok := f.Use("", id); ok != c.stays {
			t.Errorf("%s: the filter is there: %t", name, ok)
		}
	}
	unread := NewFilters[string](Limits{}.WithDefaults(), time.Now).Changes(func(string, jsonrpc.Room, []byte) ([]byte, error) {
		t.Error("a filter that does not exist was read")
		return nil, nil
	})
	if _, err := unread(context.Background(), []byte(`["0x1"]`), nil); !errors.Is(err, ErrFilterNotFound) {
		t.Errorf("without a filter: %v", err)
	}
}
