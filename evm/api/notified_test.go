package api_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/evm/api"
	"ashlar/evm/ingest"
	"ashlar/internal/jsondiff"

	"github.com/ethereum/go-ethereum/core/types"
)

// notifiedCase runs a conversation of testdata/notified, line by line:
//
//	block NAME PARENT LOGS    builds a block and brings it in; genesis is the first
//	head NAME                 makes a block the head
//	pending NAME              lets a transaction come into the pool, with $NAME as its hash
//	behind N / caught up      says how far the network is behind
//	wait 5m                   lets time pass for the filters
//	ws> REQUEST               sends a request by the WebSocket of the first key
//	http> REQUEST             sends a request over HTTP with the first key
//	other> REQUEST            the same with the second key
//	< MESSAGE                 the next answer to the last sender: all of these
//	                          members must have these values
//	notified MESSAGE          the next notification of the WebSocket
//
// In messages, "?name" takes any value and keeps it; in what follows $name is that.
// $name of a block is its hash.
type notifiedCase struct {
	t       *testing.T
	live    *live
	made    *branches
	clock   *clock
	sync    *syncing
	socket  *liveSocket
	blocks  map[string]*types.Block
	names   map[string]string
	answers []string // over HTTP, that were not looked at yet
}

func TestNotifications(t *testing.T) {
	files, err := filepath.Glob("testdata/notified/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no conversations in testdata/notified", err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			c := &notifiedCase{t: t, made: newBranches(t), clock: &clock{now: time.Unix(1e9, 0)}, sync: new(syncing)}
			c.live = serveLive(t, ingest.DefaultDepths(), api.Config{Syncing: c.sync.status, Now: c.clock.Now})
			c.socket = c.live.dial(firstKey)
			c.blocks = map[string]*types.Block{"genesis": c.made.genesis}
			c.names = map[string]string{"genesis": c.made.genesis.Hash().Hex(), "logger": hexOf(logger)}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(strings.NewReader(string(text)))
			for n := 1; lines.Scan(); n++ {
				if line := lines.Text(); line != "" && !strings.HasPrefix(line, "//") && !c.run(line) {
					t.Fatalf("%s:%d: %s", path, n, line)
				}
			}
		})
	}
}

// run runs one line, and reports whether it held.
func (c *notifiedCase) run(line string) bool {
	verb, rest, _ := strings.Cut(line, " ")
	words := strings.Fields(rest)
	switch verb {
	case "block":
		logs := 0
		if _, err := fmt.Sscan(words[2], &logs); err != nil {
			c.t.Fatal(err)
		}
		block := c.made.block(c.blocks[words[1]], logs)
		c.blocks[words[0]], c.names[words[0]] = block, block.Hash().Hex()
		c.live.add(block)
	case "head":
		return c.live.setHead(c.blocks[words[0]])
	case "pending":
		c.names[words[0]] = c.live.sendTransaction()
	case "behind", "caught":
		var highest uint64
		_, _ = fmt.Sscan(rest, &highest)
		c.sync.highest.Store(highest)
	case "wait":
		by, err := time.ParseDuration(rest)
		if err != nil {
			c.t.Fatal(err)
		}
		c.clock.advance(by)
	case "ws>":
		c.socket.send(c.named(rest))
		c.answers = nil
	case "http>":
		c.answers = append(c.answers, c.live.post(firstKey, c.named(rest)))
	case "other>":
		c.answers = append(c.answers, c.live.post(secondKey, c.named(rest)))
	case "<":
		if len(c.answers) > 0 {
			got := c.answers[0]
			c.answers = c.answers[1:]
			return c.expect(rest, got)
		}
		return c.expect(rest, c.socket.receive())
	case "notified":
		return c.expect(rest, c.socket.receive())
	default:
		c.t.Fatalf("%s is no verb of a conversation", verb)
	}
	return true
}

// named puts values in place of $names, the longest name first.
func (c *notifiedCase) named(text string) string {
	for name, value := range c.names {
		text = strings.ReplaceAll(text, `"$`+name+`"`, `"`+value+`"`)
	}
	return text
}

func (c *notifiedCase) expect(want, got string) bool {
	c.t.Helper()
	a, err := jsondiff.Decode([]byte(c.named(want)))
	if err != nil {
		c.t.Fatal(err)
	}
	b, err := jsondiff.Decode([]byte(got))
	if err != nil {
		c.t.Fatal(err)
	}
	if !c.within(a, b) {
		c.t.Errorf("got  %.2000s\nwant %s", got, c.named(want))
		return false
	}
	return true
}

// within reports whether all of want is in got.
func (c *notifiedCase) within(want, got any) bool {
	switch want := want.(type) {
	case map[string]any:
		members, ok := got.(map[string]any)
		for name, value := range want {
			if ok = ok && c.within(value, members[name]); !ok {
				break
			}
		}
		return ok
	case []any:
		elements, ok := got.([]any)
		ok = ok && len(elements) == len(want)
		for i := 0; ok && i < len(want); i++ {
			ok = c.within(want[i], elements[i])
		}
		return ok
	case string:
		if name, ok := strings.CutPrefix(want, "?"); ok {
			c.names[name] = fmt.Sprint(got)
			return true
		}
	}
	return want == got
}

// syncing is how far the network is behind, as the test says it.
type syncing struct{ highest atomic.Uint64 } // 0 at the head

func (s *syncing) status() (api.Sync, bool) {
	highest := s.highest.Load()
	return api.Sync{Starting: 1, Current: 2, Highest: highest}, highest > 0
}
