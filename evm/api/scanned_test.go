package api_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// scannedFrame is a frame of trace_block with its text.
type scannedFrame struct {
	Type   string
	Error  string
	Action struct {
		From, To, Address, RefundAddress, Author *common.Address
	}
	Result *struct{ Address *common.Address }

	TraceAddress        []int
	BlockNumber         uint64
	TransactionHash     *common.Hash
	TransactionPosition *uint64
	text                json.RawMessage
}

// from and to return the addresses that trace_filter matches; nil for none.
func (f *scannedFrame) from() *common.Address {
	if f.Type == "suicide" {
		return f.Action.Address
	}
	return f.Action.From
}

func (f *scannedFrame) to() *common.Address {
	switch f.Type {
	case "create":
		if f.Result == nil {
			return nil
		}
		return f.Result.Address
	case "suicide":
		return f.Action.RefundAddress
	case "reward":
		return f.Action.Author
	}
	return f.Action.To
}

func (f *scannedFrame) is(address common.Address) bool {
	for _, other := range []*common.Address{f.from(), f.to()} {
		if other != nil && *other == address {
			return true
		}
	}
	return false
}

// scanned are all frames of a chain, in order.
type scanned []scannedFrame

// scan asks for the frames of every block.
func scan(t *testing.T, s *service) (all scanned) {
	t.Helper()
	var head hexutil.Uint64
	s.ask(t, &head, "eth_blockNumber")
	for number := range uint64(head) {
		var texts []json.RawMessage
		s.ask(t, &texts, "trace_block", hexutil.Uint64(number+1))
		for _, text := range texts {
			frame := scannedFrame{text: text}
			if err := json.Unmarshal(text, &frame); err != nil {
				t.Fatal(err)
			}
			all = append(all, frame)
		}
	}
	return all
}

// addresses returns all addresses of the frames, and one that is in none.
func (s scanned) addresses() []common.Address {
	all := []common.Address{{0xff}, {}}
	for i := range s {
		for _, address := range []*common.Address{s[i].from(), s[i].to()} {
			if address != nil && !slices.Contains(all, *address) {
				all = append(all, *address)
			}
		}
	}
	return all
}

// kinds returns which kinds of frames and errors the chain has, and whether a contract is
// created again.
func (s scanned) kinds() map[string]bool {
	seen, created := make(map[string]bool), make(map[common.Address]bool)
	for i := range s {
		seen[s[i].Type], seen[s[i].Error] = true, true
		if to := s[i].to(); s[i].Type == "create" && to != nil && s.stands(i) {
			if created[*to] {
				seen["created again"] = true
			}
			created[*to] = true
		}
	}
	return seen
}

// stands reports whether neither the frame nor one around it failed.
func (s scanned) stands(i int) bool {
	if s[i].Error != "" {
		return false
	}
	for j := i - 1; j >= 0 && s[j].TransactionHash != nil && *s[j].TransactionHash == *s[i].TransactionHash; j-- {
		if s[j].Error != "" && len(s[j].TraceAddress) < len(s[i].TraceAddress) && slices.Equal(s[j].TraceAddress, s[i].TraceAddress[:len(s[j].TraceAddress)]) {
			return false
		}
	}
	return true
}

func selects(f *scannedFrame, senders, receivers []common.Address, both bool) bool {
	in := func(address *common.Address, list []common.Address) bool {
		return address != nil && slices.Contains(list, *address)
	}
	switch sent, received := in(f.from(), senders), in(f.to(), receivers); {
	case len(senders) == 0 && len(receivers) == 0:
		return true
	case both:
		return (sent || len(senders) == 0) && (received || len(receivers) == 0)
	default:
		return sent || received
	}
}
