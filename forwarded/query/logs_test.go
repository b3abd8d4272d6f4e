package query

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"ashlar/chain"
	"ashlar/forwarded"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
)

// viewOf returns a view of blocks from a number on, whose hashes begin with some bytes.
func viewOf(first uint64, hashes ...byte) *forwarded.View {
	var blocks []*forwarded.Block
	for i, hash := range hashes {
		b := &forwarded.Block{Ref: chain.Ref{Number: first + uint64(i), Hash: common.Hash{hash}}}
		if i > 0 {
			b.Parent = blocks[i-1].Hash
		}
		blocks = append(blocks, b)
	}
	return forwarded.NewView(blocks, 0, 0)
}

// Logs that a node sends are those of the filter, in order, and of the blocks that are asked for.
func TestLogsOfANode(t *testing.T) {
	view := viewOf(10, 0xa, 0xb)
	wanted, hash := common.Address{1}, common.Hash{0xa}
	log := func(block uint64, hash, address byte, index int) string {
		return fmt.Sprintf(`{"blockNumber":"%#x","blockHash":"%s","logIndex":"%#x","address":"%s","topics":[]}`, block, common.Hash{hash}, index, common.Address{address})
	}
	inRange, ofBlock := &Filter{Addresses: []common.Address{wanted}}, &Filter{Hash: &hash}
	const lies, unfit = "the node's answer is false", "the answer cannot be used"
	for _, c := range []struct {
		name   string
		filter *Filter
		logs   []string
		want   string // why they are refused; empty: they are not
	}{
		{"in order", inRange, []string{log(9, 9, 1, 7), log(10, 0xa, 1, 0), log(10, 0xa, 1, 1), log(11, 0xb, 1, 0)}, ""},
		{"of another contract", inRange, []string{log(10, 0xa, 2, 0)}, lies},
		{"below the range", inRange, []string{log(8, 8, 1, 0)}, lies},
		{"above the range", inRange, []string{log(12, 0xc, 1, 0)}, lies},
		{"blocks out of order", inRange, []string{log(11, 0xb, 1, 0), log(10, 0xa, 1, 0)}, lies},
		{"out of order in a block", inRange, []string{log(10, 0xa, 1, 1), log(10, 0xa, 1, 0)}, lies},
		{"one twice", inRange, []string{log(10, 0xa, 1, 1), log(10, 0xa, 1, 1)}, lies},
		{"of another branch", inRange, []string{log(11, 0xd, 1, 0)}, unfit},
		{"of the block", ofBlock, []string{log(10, 0xa, 1, 0), log(10, 0xa, 2, 1)}, ""},
		{"of another block", ofBlock, []string{log(10, 0xb, 1, 0)}, lies},
		{"without a place", inRange, []string{`{"blockNumber":"0xa"}`}, unfit},
	} {
		got, err := c.filter.decode([]byte("["+strings.Join(c.logs, ",")+"]"), view, 9, 11)
		switch {
		case c.want == "" && (err != nil || len(got) != len(c.logs)):
			t.Errorf("%s: %d logs, %v", c.name, len(got), err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, upstream.ErrLie) != (c.want == lies)):
			t.Errorf("%s: %d logs, %v, expected that %s", c.name, len(got), err, c.want)
		}
	}
}

// The words of nodes and providers say how many blocks a request may have. The length of the one that was refused does not.
func TestAllowedBlocks(t *testing.T) {
	const last = 0x10 + 99_998 // of the refused range
	for text, want := range map[string]uint64{
		"eth_getLogs is limited to a 10,000 range":                                                10_000,
		"You can make eth_getLogs requests with up to a 500 block range.":                         500,
		"up to a 2K block range":                                                                  2000,
		"range 47440 exceeds limit of 10000":                                                      10_000,
		"maximum [from, to] blocks distance: 2000":                                                2000,
		"requested too many blocks from 50331648 to 51380224, maximum is set to 2048":             2048,
		"too wide blocks range, the limit is 100":                                                 100,
		"query exceeds range, retry smaller (max block range 5000, got 16777216)":                 5000,
		"block range greater than 10000 max":                                                      10_000,
		"block range too large, max range: 10000":                                                 10_000,
		"Maximum allowed number of requested blocks is 3000":                                      3000,
		"logs matched by query exceeds limit of 10000":                                            0,
		"query returned more than 10000 results. Try with this block range [0x10, 0x1f].":         16,
		"query returned more than 10000 results. Try with this block range [0x11, 0x1f].":         0,
		"GetLogs query must be smaller than size 1024":                                            0,
		"block range 99999 exceeds maximum of 1000":                                               1000,
		"range 99999 exceeds maximum of 1000":                                                     1000,
		"query block range (99999) exceeds server limit (1000)":                                   1000,
		"99999 blocks requested, up to 1000 blocks are allowed":                                   1000,
		"requested a range of 99999 blocks":                                                       0,
		"requested a range of 99998 blocks":                                                       0,
		"block range limit: 60000":                                                                0, // half of it is less
		"block range 40 exceeds the allowed one":                                                  0,
		"eth_getLogs is limited to 0 - 50 blocks range":                                           50,
		"block range is too wide (maximum 1024)":                                                  1024,
		"block range is larger than max block range, block range = 99999, max block range = 5000": 5000,
		"eth_getLogs block range too large, range: 99999, max: 3500":                              3500,
		"Block range too large: maximum allowed is 20000 blocks":                                  20_000,
		"block range too large (99999), maximum allowed is 2000 blocks":                           2000,
		"query block range exceeds server limit, narrow your filter: 5.":                          5,
		"query exceeds max block range 5000":                                                      5000,
		"Invalid eth_getLogs request. 'fromBlock'-'toBlock' range too large. Max range: 800":      800,
		"exceed maximum block range: 10000":                                                       10_000,
		"query exceeds max results 20000, retry with the range 16-47":                             32,
		"query exceeds max results 20000, retry with the range 16-100014":                         0, // the refused one
		"query exceeds max results 20000, retry with the range 17-47":                             0,
		"query returned more than 10000 results":                                                  0,
		"Block range limit exceeded. See more details at https://docs.chainstack.com/docs/limits": 0,
		"Under the Free tier plan, you can make eth_getLogs requests with up to a 10 block range": 10,
		"block range too large, max: 10k blocks":                                                  10_000,
		"block range is too wide (maximum 2K blocks)":                                             2000,
		"block range too large, range: 99999, max: 2k":                                            2000,
		"execution took too long, max: 5s. Try a smaller range":                                   0,
		"narrow the range: the query ran too long (maximum 10s)":                                  0,
		"the result is too large (max: 10 MB)":                                                    0,
		"block range exceeds max allowed (maximum 10 requests per second)":                        0,
		"exceeds max addresses (maximum 20)":                                                      0,
		"log count exceeds max: 2000, please use a smaller range":                                 0,
		"Block range limit exceeded. 24/7 support":                                                0,
		"limit exceeded": 0,
	} {
		if got := allowed(&upstream.NodeError{Message: text}, 0x10, last); got != want {
			t.Errorf("%s: %d blocks, expected %d", text, got, want)
		}
	}
	erpc := &upstream.NodeError{Message: "getLogs request exceeded max allowed range", Data: json.RawMessage(`{"requestRange":99999,"maxAllowedRange":1000}`)}
	if got := allowed(erpc, 0x10, last); got != 1000 {
		t.Errorf("%s: %d blocks, expected 1000", erpc.Data, got)
	}
	ronin := &upstream.NodeError{Message: "Invalid params", Data: json.RawMessage(`"requested block range 16777217 exceeds the limit of 200; narrow your fromBlock/toBlock"`)}
	if got := allowed(ronin, 0x10, last); got != 200 {
		t.Errorf("%s: %d blocks, expected 200", ronin.Data, got)
	}
}
