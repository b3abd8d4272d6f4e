package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"ashlar/starknet"
	"ashlar/starknet/source/node/nodetest"
)

// After any temporary misbehaviour of a node, its chain is copied completely.
func TestTemporaryErrorsAreRetried(t *testing.T) {
	blocks := makeChain(nil, 0, 12, 1)
	for _, test := range slices.Concat(brokenAnswers(), falseBlocks(blocks, makeChain(nil, 0, 12, 2)), refusals()) {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			fake := nodetest.New(t, 10, blocks)
			fake.Mischief = func(w http.ResponseWriter, q nodetest.Question, good []byte) bool {
				if q.Nth > 40 || q.Nth%3 != 0 || q.Method == "starknet_chainId" {
					return false
				}
				test.do(w, q, good)
				return true
			}
			options := optionsFor(fake)
			options.AnswerBytes = 64 << 10
			if test.name == "is slow" {
				options.Timeout = slowTimeout
			}
			options.Check = func(b *starknet.Block) error {
				if b.Number >= 12 || b.Hash != blocks[b.Number].Hash {
					return fmt.Errorf("block %d is not %s", b.Number, b.Hash)
				}
				return nil
			}
			followTo(t, newNode(t, options), 0, nil, blocks)
		})
	}
}

// mischief is what a node does in place of an answer.
type mischief struct {
	name string
	do   func(w http.ResponseWriter, q nodetest.Question, good []byte)
}

// slowTimeout is the timeout of the requests to a slow node; on a busy machine good answers take a part of it.
const slowTimeout = time.Second / 2

func replaced(good []byte, old, new string) []byte {
	return []byte(strings.Replace(string(good), old, new, 1))
}

// brokenAnswers are answers that are not those of the request.
func brokenAnswers() []mischief {
	return []mischief{
		{"drops the connection", func(w http.ResponseWriter, q nodetest.Question, good []byte) { panic(http.ErrAbortHandler) }},
		{"truncates", func(w http.ResponseWriter, q nodetest.Question, good []byte) { w.Write(good[:len(good)/2]) }},
		{"drops in the middle", func(w http.ResponseWriter, q nodetest.Question, good []byte) {
			w.Header().Set("Content-Length", fmt.Sprint(len(good)))
			w.Write(good[:len(good)/2])
		}},
		{"answers nothing", func(w http.ResponseWriter, q nodetest.Question, good []byte) {}},
		{"answers in HTML", func(w http.ResponseWriter, q nodetest.Question, good []byte) {
			io.WriteString(w, "<html>Welcome</html>")
		}},
		{"sends data after the end", func(w http.ResponseWriter, q nodetest.Question, good []byte) { w.Write(append(good, good...)) }},
		{"has no result", func(w http.ResponseWriter, q nodetest.Question, good []byte) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":null}`, q.ID)
		}},
		{"answers another request", func(w http.ResponseWriter, q nodetest.Question, good []byte) {
			w.Write(replaced(good, `"id":1`, `"id":2`))
		}},
	}
}

// falseBlocks are answers with other blocks than the one that was asked for, of a chain or another one.
func falseBlocks(blocks, other []*starknet.Block) []mischief {
	return []mischief{
		{"repeats another block", func(w http.ResponseWriter, q nodetest.Question, good []byte) {
			text, _ := json.Marshal(nodetest.EncodeBlock(blocks[(q.Number+1)%12], 10, false))
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, text)
		}},
		{"has the block of another chain", func(w http.ResponseWriter, q nodetest.Question, good []byte) {
			text, _ := json.Marshal(nodetest.EncodeBlock(other[q.Number%12], 10, false))
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, text)
		}},
		{"lies about the hash", func(w http.ResponseWriter, q nodetest.Question, good []byte) {
			w.Write(replaced(good, `"block_hash":"0x`, `"block_hash":"0xbad`))
		}},
		{"lies about the parent", func(w http.ResponseWriter, q nodetest.Question, good []byte) {
			w.Write(replaced(good, `"parent_hash":"0x`, `"parent_hash":"0xbad`))
		}},
		{"leaves out an event", func(w http.ResponseWriter, q nodetest.Question, good []byte) {
			w.Write(replaced(good, `"event_count":1`, `"event_count":2`))
		}},
		{"leaves out a transaction", func(w http.ResponseWriter, q nodetest.Question, good []byte) {
			w.Write(replaced(good, `"transaction_count":1`, `"transaction_count":2`))
		}},
		{"has a malformed felt", func(w http.ResponseWriter, q nodetest.Question, good []byte) { w.Write(replaced(good, `"0x`, `"0xg`)) }},
	}
}

// refusals are errors, and answers that do not end.
func refusals() []mischief {
	return []mischief{
		{"has enough for now", func(w http.ResponseWriter, q nodetest.Question, good []byte) {
			w.Header().Set("Retry-After", "1000")
			w.WriteHeader(http.StatusTooManyRequests)
		}},
		{"fails", func(w http.ResponseWriter, q nodetest.Question, good []byte) {
			w.WriteHeader(http.StatusInternalServerError)
		}},
		{"is not behind its gateway", func(w http.ResponseWriter, q nodetest.Question, good []byte) { w.WriteHeader(http.StatusBadGateway) }},
		{"has an internal error", func(w http.ResponseWriter, q nodetest.Question, good []byte) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal error"},"id":%s}`, q.ID)
		}},
		{"does not find its block", func(w http.ResponseWriter, q nodetest.Question, good []byte) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","error":{"code":24,"message":"Block not found"},"id":%s}`, q.ID)
		}},
		{"is slow", func(w http.ResponseWriter, q nodetest.Question, good []byte) {
			w.Write(good[:1])
			w.(http.Flusher).Flush()
			time.Sleep(2 * slowTimeout)
		}},
		{"answers without end", func(w http.ResponseWriter, q nodetest.Question, good []byte) {
			for range 100 {
				if _, err := w.Write(slices.Repeat([]byte{' '}, 1<<10)); err != nil {
					return
				}
			}
		}},
	}
}

// A block with a wrong parent is not appended, and reverts nothing.
func TestWrongLinkRevertsNothing(t *testing.T) {
	blocks := makeChain(nil, 0, 5, 1)
	lying := slices.Clone(blocks)
	lie := *blocks[3]
	lie.Parent = starknet.FeltOf(666)
	lying[3] = &lie
	fake := nodetest.New(t, 10, lying)
	fake.Mischief = func(_ http.ResponseWriter, q nodetest.Question, _ []byte) bool {
		if q.Nth == 60 {
			fake.Set(blocks)
		}
		return false
	}
	kept := followTo(t, newNode(t, optionsFor(fake)), 0, nil, blocks)
	if len(kept.reverts) > 0 {
		t.Errorf("blocks were reverted to %v", kept.reverts)
	}
}

func TestPermanentErrorsEndFollow(t *testing.T) {
	blocks := makeChain(nil, 0, 3, 1)
	for _, test := range []struct {
		name   string
		status int
		body   string
		want   string
	}{
		{"access denied", http.StatusUnauthorized, "no such key", `status 401 Unauthorized: "no such key"`},
		{"redirected", http.StatusTemporaryRedirect, "", "status 307"},
		{"an unknown method", http.StatusOK, `{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":1}`, `starknet_blockHashAndNumber: the node returned the error "Method not found" (-32601)`},
	} {
		fake := nodetest.New(t, 10, blocks)
		fake.Mischief = func(w http.ResponseWriter, q nodetest.Question, good []byte) bool {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(test.status)
			io.WriteString(w, test.body)
			return true
		}
		err := newNode(t, optionsFor(fake)).Follow(t.Context(), 0, &keptChain{t: t})
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret-key") {
			t.Errorf("%s: Follow returned %v, expected %q without the URL", test.name, err, test.want)
		}
	}
	fake := nodetest.New(t, 10, blocks)
	options := optionsFor(fake)
	options.ChainID = starknet.FeltOf(78)
	if err := newNode(t, options).Follow(t.Context(), 0, &keptChain{t: t}); !errors.Is(err, ErrOtherChain) {
		t.Errorf("another chain ID: Follow returned %v", err)
	}
	held := makeChain(nil, 0, 2, 9)
	if err := newNode(t, optionsFor(fake)).Follow(t.Context(), 0, &keptChain{t: t, blocks: held}); !errors.Is(err, ErrOtherChain) {
		t.Errorf("no common block: Follow returned %v", err)
	}
}

func TestErrorsDoNotContainTheURL(t *testing.T) {
	for _, url := range []string{"", "secret-key", "ftp://x/secret-key", "http:///secret-key", "http://[::1/secret-key"} {
		if _, err := New(Options{URL: url}); err == nil || strings.Contains(err.Error(), "secret-key") {
			t.Errorf("%q: the error is %v", url, err)
		}
	}
	n := newNode(t, Options{URL: "http://127.0.0.1:1/secret-key"})
	err := n.call(t.Context(), "starknet_chainId", nothing(), nil)
	if err == nil || strings.Contains(err.Error(), "secret-key") {
		t.Errorf("no listener: the error is %v", err)
	}
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request){
		"status": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "Cannot POST "+r.URL.Path, http.StatusNotFound)
		},
		"error": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"not for %s"}}`, r.URL.Path)
		},
	} {
		server := httptest.NewServer(http.HandlerFunc(answer))
		err := newNode(t, Options{URL: server.URL + "/secret-key"}).call(t.Context(), "starknet_chainId", nothing(), nil)
		if server.Close(); err == nil || strings.Contains(err.Error(), "secret-key") || !strings.Contains(err.Error(), "…") {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

func TestPausesGrow(t *testing.T) {
	n := newNode(t, Options{URL: "http://127.0.0.1:1", FirstPause: 100 * time.Millisecond, LongestPause: 3 * time.Second})
	p := n.newPause()
	check := func(length time.Duration) {
		t.Helper()
		length *= time.Millisecond
		if got := p.backoff.NextBackOff(); got < length/2 || got > length*3/2+1 {
			t.Errorf("a pause of %s, expected from %s to %s", got, length/2, length*3/2)
		}
	}
	for _, length := range []time.Duration{100, 200, 400, 800, 1600, 3000, 3000} {
		check(length)
	}
	p.reset()
	check(100)
}

// A node cannot fill the log: errors contain only the beginning of what it sent.
func TestErrorsAreShort(t *testing.T) {
	long := strings.Repeat("\u2028", 1<<20)
	for name, answer := range map[string]string{
		"message": `{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"` + long + `"}}`,
		"version": `{"jsonrpc":"2.0","id":1,"result":{"starknet_version":"` + long + `"}}`,
	} {
		fake := nodetest.New(t, 10, makeChain(nil, 0, 3, 1))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		fake.Mischief = func(w http.ResponseWriter, q nodetest.Question, _ []byte) bool {
			if q.Nth > 2 {
				cancel()
			}
			w.Write([]byte(answer))
			return true
		}
		n := newNode(t, optionsFor(fake))
		_, err := n.Block(ctx, 1)
		if problem := n.Status().Problem; err == nil || problem == "" || len(problem) > 2000 {
			t.Errorf("%s: %v, and a problem of %d bytes, want at most 2000", name, err, len(problem))
		}
	}
}
