package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"ashlar/internal/node"

	"golang.org/x/sync/errgroup"
)

// load is how the calls of a row went.
type load struct {
	calls, failed int
	wall          time.Duration
	cpu           time.Duration // of the service; 0 if another server was asked
	took          []time.Duration
}

// ask makes calls, of which request returns the bodies, and records how they went. An answer
// that is an error counts as failed.
func (b *bench) ask(ctx context.Context, to *node.Client, of *node.Process, calls int, request func(i int) []byte) (load, error) {
	l := load{calls: calls, took: make([]time.Duration, calls)}
	cpu := func() (used time.Duration, err error) {
		if of != nil {
			used, err = of.CPU()
		}
		return used, err
	}
	before, err := cpu()
	if err != nil {
		return l, err
	}
	var next, failed atomic.Int64
	begun := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for range b.askers {
		group.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= calls {
					return nil
				}
				asked := time.Now()
				status, answer, err := to.Post(ctx, request(i))
				if err != nil {
					return err
				}
				l.took[i] = time.Since(asked)
				if status != http.StatusOK || !bytes.Contains(answer, []byte(`"result":`)) {
					failed.Add(1)
				}
			}
		})
	}
	if err := group.Wait(); err != nil {
		return l, err
	}
	l.wall, l.failed = time.Since(begun), int(failed.Load())
	after, err := cpu()
	l.cpu = after - before
	slices.Sort(l.took)
	return l, err
}

// answered returns an error if a call failed.
func (l *load) answered() error {
	if l.failed > 0 {
		return fmt.Errorf("%d of %d calls failed", l.failed, l.calls)
	}
	return nil
}

// micros returns the service's processor time for a call in microseconds.
func (l *load) micros() float64 { return float64(l.cpu.Nanoseconds()) / 1e3 / float64(l.calls) }

// quantile returns the time in which a share of the calls was answered.
func (l *load) quantile(share float64) time.Duration {
	return l.took[min(len(l.took)-1, int(share*float64(len(l.took))))].Round(10 * time.Microsecond)
}

// body returns a request.
func body(method, params string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"%s","params":%s}`, method, params)
}

// balance returns a request for the balance of one of many accounts at a block.
func balance(account int, block string) []byte {
	return body("eth_getBalance", fmt.Sprintf(`["0x%040x","%s"]`, account, block))
}
