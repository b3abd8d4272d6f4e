package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"ashlar/internal/node"

	"github.com/coder/websocket"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"golang.org/x/sync/errgroup"
)

// opening is how many connections are opened at once.
const opening = 32

// listeners are connections that are told of heads.
type listeners struct {
	conns   []*websocket.Conn
	reading sync.WaitGroup
	told    []heard // of each connection
}

// heard is when a connection was told of which block.
type heard struct {
	mu   sync.Mutex
	when map[common.Hash]time.Time // guarded by mu
}

// subscribeAll opens connections and subscribes on each.
func subscribeAll(ctx context.Context, url string, count int) (*listeners, error) {
	l := &listeners{conns: make([]*websocket.Conn, count), told: make([]heard, count)}
	var group errgroup.Group
	group.SetLimit(opening)
	for i := range count {
		l.told[i].when = make(map[common.Hash]time.Time)
		group.Go(func() error {
			conn, _, err := websocket.Dial(ctx, url, nil)
			if err != nil {
				return err
			}
			l.conns[i] = conn
			conn.SetReadLimit(1 << 20)
			if err := conn.Write(ctx, websocket.MessageText, []byte(`{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}`)); err != nil {
				return err
			}
			_, answer, err := conn.Read(ctx)
			if err == nil && !bytes.Contains(answer, []byte(`"result"`)) {
				err = fmt.Errorf("eth_subscribe was answered %s", answer)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		l.close()
		return nil, err
	}
	for i, conn := range l.conns {
		l.reading.Go(func() { l.told[i].listen(ctx, conn) })
	}
	return l, nil
}

// hashMember begins the hash in a header; that of its parent is called otherwise.
const hashMember = `"hash":"`

// listen takes note of heads until the connection is closed.
func (h *heard) listen(ctx context.Context, conn *websocket.Conn) {
	for {
		_, message, err := conn.Read(ctx)
		now := time.Now()
		if err != nil {
			return
		}
		if _, rest, ok := bytes.Cut(message, []byte(hashMember)); ok && len(rest) > 2+2*common.HashLength {
			h.mu.Lock()
			h.when[common.HexToHash(string(rest[:2+2*common.HashLength]))] = now
			h.mu.Unlock()
		}
	}
}

// patience is how long the last block may be on its way to the last subscriber.
const patience = time.Minute

// await returns when all have been told of a block.
func (l *listeners) await(ctx context.Context, head common.Hash) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for i := range l.told {
		for !l.told[i].knows(head) {
			select {
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
				return fmt.Errorf("subscriber %d of %d is not told of block %#x: %w", i+1, len(l.told), head, ctx.Err())
			}
		}
	}
	return nil
}

func (h *heard) knows(block common.Hash) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.when[block]
	return ok
}

// first is when the first was told of each block.
func (l *listeners) first() map[common.Hash]time.Time {
	first := make(map[common.Hash]time.Time)
	for i := range l.told {
		h := &l.told[i]
		h.mu.Lock()
		for block, at := range h.when {
			if before, ok := first[block]; !ok || at.Before(before) {
				first[block] = at
			}
		}
		h.mu.Unlock()
	}
	return first
}

// since is how long after some times each was told of each block. All must have been
// told of all of them: one that is never told would not be late in any figure.
func (l *listeners) since(times map[common.Hash]time.Time) (all []time.Duration, err error) {
	for i := range l.told {
		late, err := l.told[i].since(times)
		if err != nil {
			return nil, fmt.Errorf("subscriber %d of %d %w", i+1, len(l.told), err)
		}
		all = append(all, late...)
	}
	return all, nil
}

func (h *heard) since(times map[common.Hash]time.Time) (all []time.Duration, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for block, from := range times {
		at, ok := h.when[block]
		if !ok {
			return nil, fmt.Errorf("was never told of block %#x", block)
		}
		all = append(all, at.Sub(from))
	}
	return all, nil
}

func (l *listeners) close() {
	for _, conn := range l.conns {
		if conn != nil {
			_ = conn.CloseNow() // nobody listens any more
		}
	}
	l.reading.Wait()
}

// ask asks a question on some connections for a while, and returns how many were answered
// a second and how long each took, in ascending order.
func ask(ctx context.Context, client *node.Client, readers int, length time.Duration) (rate float64, took []time.Duration, err error) {
	each := make([][]time.Duration, readers)
	var group errgroup.Group
	begin := time.Now()
	for i := range each {
		group.Go(func() error {
			for time.Since(begin) < length {
				asked := time.Now()
				var balance hexutil.Big
				if err := client.Call(ctx, &balance, "eth_getBalance", common.Address{1}, "latest"); err != nil {
					return err
				}
				each[i] = append(each[i], time.Since(asked))
			}
			return nil
		})
	}
	err = group.Wait()
	seconds := time.Since(begin).Seconds()
	took = slices.Concat(each...)
	slices.Sort(took)
	return float64(len(took)) / seconds, took, err
}
