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

// opening is how many connections are opened concurrently.
const opening = 32

// listeners are connections that subscribe to heads.
type listeners struct {
	conns    []*websocket.Conn
	reading  sync.WaitGroup
	notified []arrivals // by connection
}

// arrivals holds when a connection was notified of each block.
type arrivals struct {
	mu   sync.Mutex
	when map[common.Hash]time.Time // guarded by mu
}

// subscribeAll opens count connections and subscribes to heads on each.
func subscribeAll(ctx context.Context, url string, count int) (*listeners, error) {
	l := &listeners{conns: make([]*websocket.Conn, count), notified: make([]arrivals, count)}
	var group errgroup.Group
	group.SetLimit(opening)
	for i := range count {
		l.notified[i].when = make(map[common.Hash]time.Time)
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
				err = fmt.Errorf("subscribe: unexpected answer %s", answer)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		l.close()
		return nil, err
	}
	for i, conn := range l.conns {
		l.reading.Go(func() { l.notified[i].listen(ctx, conn) })
	}
	return l, nil
}

// hashMember precedes the hash in a header; the parent's hash has another name.
const hashMember = `"hash":"`

// listen records heads until the connection is closed.
func (a *arrivals) listen(ctx context.Context, conn *websocket.Conn) {
	for {
		_, message, err := conn.Read(ctx)
		now := time.Now()
		if err != nil {
			return
		}
		if _, rest, ok := bytes.Cut(message, []byte(hashMember)); ok && len(rest) > 2+2*common.HashLength {
			a.mu.Lock()
			a.when[common.HexToHash(string(rest[:2+2*common.HashLength]))] = now
			a.mu.Unlock()
		}
	}
}

// patience is how long await waits for the last block to reach the last subscriber.
const patience = time.Minute

// await returns when all connections have been notified of a block.
func (l *listeners) await(ctx context.Context, head common.Hash) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for i := range l.notified {
		for !l.notified[i].knows(head) {
			select {
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
				return fmt.Errorf("subscriber %d of %d: no notification of block %#x: %w", i+1, len(l.notified), head, ctx.Err())
			}
		}
	}
	return nil
}

func (a *arrivals) knows(block common.Hash) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.when[block]
	return ok
}

// first returns, for each block, when the first connection was notified.
func (l *listeners) first() map[common.Hash]time.Time {
	first := make(map[common.Hash]time.Time)
	for i := range l.notified {
		a := &l.notified[i]
		a.mu.Lock()
		for block, at := range a.when {
			if before, ok := first[block]; !ok || at.Before(before) {
				first[block] = at
			}
		}
		a.mu.Unlock()
	}
	return first
}

// since returns the delays of all connections for all blocks, after the given times. It is an
// error if a notification is missing, which no delay would show.
func (l *listeners) since(times map[common.Hash]time.Time) (all []time.Duration, err error) {
	for i := range l.notified {
		late, err := l.notified[i].since(times)
		if err != nil {
			return nil, fmt.Errorf("subscriber %d of %d: %w", i+1, len(l.notified), err)
		}
		all = append(all, late...)
	}
	return all, nil
}

func (a *arrivals) since(times map[common.Hash]time.Time) (all []time.Duration, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for block, from := range times {
		at, ok := a.when[block]
		if !ok {
			return nil, fmt.Errorf("no notification of block %#x", block)
		}
		all = append(all, at.Sub(from))
	}
	return all, nil
}

func (l *listeners) close() {
	for _, conn := range l.conns {
		if conn != nil {
			_ = conn.CloseNow() // the program no longer reads from it
		}
	}
	l.reading.Wait()
}

// ask sends requests on some connections for the given time. It returns how many were
// answered per second, and how long each took, in ascending order.
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
