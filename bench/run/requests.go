package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"ashlar/internal/node"
	"ashlar/internal/sample"
)

// maker makes parameters of requests from the keys that occur in a chain.
type maker struct {
	r *rand.Rand
	c *sample.Chain
	*discovery
	// Block numbers are chosen from this range, both ends included.
	first, last uint64
}

type object = map[string]any

func any1[T any](m *maker, from []T) T { return from[m.r.IntN(len(from))] }

func (m *maker) number() uint64 { return m.first + m.r.Uint64N(m.last-m.first+1) }

func (m *maker) block() string { return hexutil.EncodeUint64(m.number()) }

// blocks returns a random range of length blocks, or of all if there are fewer.
func (m *maker) blocks(length uint64) blockRange {
	all := m.last - m.first + 1
	length = min(length, all)
	first := m.first + m.r.Uint64N(all-length+1)
	return blockRange{first, first + length - 1}
}

// chain returns the range of the whole chain without the genesis.
func (m *maker) chain() blockRange { return blockRange{1, m.c.Head()} }

func (m *maker) transfer() common.Hash {
	return crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)"))
}

// blockRange is a range of block numbers, both ends included.
type blockRange struct{ from, to uint64 }

// of adds the range to a filter and returns it.
func (r blockRange) of(filter object) object {
	filter["fromBlock"], filter["toBlock"] = hexutil.Uint64(r.from), hexutil.Uint64(r.to)
	return filter
}

func (m *maker) balanceOf() object {
	who := any1(m, m.c.Accounts)
	return object{"to": any1(m, m.tokens), "data": sample.BalanceOf(who)}
}

// sum100 returns a call that adds 100 balances of at most the given number of tokens. The
// call carries its own code instead of using a deployed contract, as multicalls of clients
// may.
func (m *maker) sum100(tokens int) object {
	asked := make([]sample.Balance, 100)
	for i := range asked {
		asked[i] = sample.Balance{Token: m.tokens[i%min(tokens, len(m.tokens))], Holder: any1(m, m.c.Accounts)}
	}
	return object{"data": hexutil.Bytes(sample.SumBalances(asked))}
}

// replayed returns a transaction of the chain as a call. It has the transaction's gas:
// without it, one that uses up all gas would measure each server's gas cap.
func replayed(tx sample.Tx) object {
	call := object{"from": tx.From, "gas": hexutil.Uint64(tx.Gas()), "input": hexutil.Bytes(tx.Data()), "value": (*hexutil.Big)(tx.Value())}
	if tx.To() != nil {
		call["to"] = tx.To()
	}
	return call
}

func (m *maker) proof(slots int, block string) []any {
	first := any1(m, m.c.Slots)
	if slots == 0 {
		return []any{any1(m, m.c.Accounts), []common.Hash{}, block}
	}
	keys := []common.Hash{first.Key}
	for len(keys) < slots { // of one contract, most of them in use
		if s := any1(m, m.c.Slots); s.Address == first.Address || m.r.IntN(64) == 0 {
			keys = append(keys, s.Key)
		}
	}
	return []any{first.Address, keys, block}
}

// section measures some kinds of request in one way.
type section struct {
	name       string
	has        func(kind) bool
	calls      int // per request
	transports []transport
	spans      []span
	neighbour  bool // another process imports a chain meanwhile
}

// span is a part of the chain, from first to last as fractions of its length.
type span struct {
	name        string
	first, last float64
}

// newestSpan is the span that the others are compared with.
const newestSpan = "newest"

// sections returns all sections by their names in the flag.
func sections() map[string]section {
	whole := []span{{"", 0, 1}}
	return map[string]section{
		"single": {"requests", func(kind) bool { return true }, 1, []transport{byWrk}, whole, false},
		"ages": {"requests by age of the block", func(k kind) bool { return k.is&aged != 0 }, 1, []transport{byWrk},
			[]span{{"oldest", 0, 0.05}, {"middle", 0.475, 0.525}, {newestSpan, 0.95, 1}}, false},
		"batches": {"calls in batches of 100", func(k kind) bool { return k.is&light != 0 }, 100, []transport{byWrk}, whole, false},
		"sockets": {"requests over WebSocket", func(k kind) bool { return k.is&light != 0 }, 1, []transport{byHTTP, bySocket}, whole, false},
		"busy":    {"requests during an import", func(k kind) bool { return k.is&light != 0 }, 1, []transport{byWrk}, whole, true},
	}
}

// requestFile describes a file with the requests of one kind, one per line, and how they
// are sent.
type requestFile struct {
	section, kind, path string
	calls               int
	transport           transport
	neighbour           bool
}

// writeRequests writes the request files of the chosen kinds in a section.
func writeRequests(chain *sample.Chain, o options, s section, chosen *regexp.Regexp, found *discovery) (files []requestFile, err error) {
	if len(chain.Topics[2]) == 0 || len(chain.Reverted) == 0 {
		return nil, errors.New("the chain has no event with three topics, or no transaction that reverted")
	}
	folder := filepath.Join(o.work, "requests", strings.ReplaceAll(s.name, " ", "-"))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	for i, k := range kinds() {
		if !chosen.MatchString(k.name) || !s.has(k) {
			continue
		}
		for j, span := range s.spans {
			path := filepath.Join(folder, fmt.Sprintf("%02d-%d.jsonl", i, j))
			head := float64(chain.Head())
			m := &maker{
				r: rand.New(rand.NewPCG(o.seed, uint64(i))), c: chain, discovery: found,
				first: max(1, uint64(span.first*head)), last: max(1, uint64(span.last*head)),
			}
			if err := writeFile(path, k, m, o.requests, s.calls); err != nil {
				return nil, err
			}
			name := k.name
			if span.name != "" {
				name += ", " + span.name
			}
			for _, transport := range s.transports {
				files = append(files, requestFile{s.name, name + transport.suffix(), path, s.calls, transport, s.neighbour})
			}
		}
	}
	return files, nil
}

// writeFile writes count calls of a kind, in requests of calls calls each, but at least one
// request.
func writeFile(path string, k kind, m *maker, count, calls int) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	w := bufio.NewWriter(file)
	for line := range max(1, count/calls) {
		request := make([][]byte, calls)
		for id := range request {
			if request[id], err = node.Request(line*calls+id, k.method, k.params(m)...); err != nil {
				return err
			}
		}
		text := bytes.Join(request, []byte(","))
		if calls > 1 {
			text = slices.Concat([]byte("["), text, []byte("]"))
		}
		w.Write(append(text, '\n')) // Flush returns the first error
	}
	return w.Flush()
}
