package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/sync/errgroup"
)

// client is a client with an address of its own and the keys of one account.
type client struct {
	host   string
	keys   []string
	dialer net.Dialer
	http   *http.Client

	asked, refused atomic.Int64 // counted of the hostile account
}

// way is one way to misuse the service. run goes on until ctx is done.
type way struct {
	name      string
	neighbour bool // it comes from the address of an honest client
	run       func(ctx context.Context, c *client) error
}

func ways() []way {
	return []way{
		{"does nothing", false, func(ctx context.Context, _ *client) error { <-ctx.Done(); return nil }},
		{"fills the queue of heavy calls: 16 WebSockets of two keys", false, fillQueue},
		{"makes filters of 5,000 addresses", false, makeFilters},
		{"sends 5 MiB of `[0,0,...` in 5 KB of gzip", false, sendZipped("[" + strings.Repeat("0,", 2_600_000) + "0]")},
		{"sends 5 MiB of parameters in 5 KB of gzip", false, sendZipped(request("eth_call", strings.Repeat("0,", 2_600_000)+"0"))},
		{"guesses keys from another's address", true, guessKeys},
		{"holds 4,000 idle connections", false, holdConnections},
		{"has 1,000 subscriptions and reads nothing", false, subscribe},
		{"asks for whole blocks and reads nothing", false, readNothing},
	}
}

// parallel runs something n times at once, each again and again until ctx is done.
func parallel(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for i := range n {
		group.Go(func() error {
			for ctx.Err() == nil {
				if err := do(ctx, i); err != nil && ctx.Err() == nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// repeat posts a request again and again over some connections at once.
func (c *client) repeat(ctx context.Context, connections int, key func(i int) string, body []byte, headers ...string) error {
	return parallel(ctx, connections, func(ctx context.Context, i int) error {
		status, answer, err := c.post(ctx, key(i), bytes.NewReader(body), headers...)
		if err != nil {
			return err
		}
		c.asked.Add(1)
		if status != http.StatusOK || bytes.Contains(answer, []byte(`"error":`)) {
			c.refused.Add(1)
		}
		return nil
	})
}

func (c *client) own(i int) string { return c.keys[i%len(c.keys)] }

func (c *client) dial(ctx context.Context, i int) (*websocket.Conn, error) {
	conn, _, err := websocket.Dial(ctx, "ws://"+c.host+"/ws/v3/"+c.own(i), &websocket.DialOptions{HTTPClient: c.http})
	if err == nil {
		conn.SetReadLimit(-1)
	}
	return conn, err
}

// fillQueue sends calls that run until their gas is used up, as many as may be in flight.
func fillQueue(ctx context.Context, c *client) error {
	loop := []byte(request("eth_call", `{"data":"0x5b600056","gas":"0x2faf080"}`, `"latest"`))
	return parallel(ctx, 16, func(ctx context.Context, i int) error {
		conn, err := c.dial(ctx, i)
		if err != nil {
			return err
		}
		defer conn.CloseNow()
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error {
			for ctx.Err() == nil {
				if err := conn.Write(ctx, websocket.MessageText, loop); err != nil {
					return err
				}
			}
			return nil
		})
		group.Go(func() error {
			for {
				_, answer, err := conn.Read(ctx)
				if err != nil {
					return err
				}
				c.asked.Add(1)
				if bytes.Contains(answer, []byte("-32005")) {
					c.refused.Add(1)
				}
			}
		})
		return group.Wait()
	})
}

func makeFilters(ctx context.Context, c *client) error {
	addresses := make([]string, 5000)
	for i := range addresses {
		addresses[i] = fmt.Sprintf(`"0x%040x"`, i)
	}
	return c.repeat(ctx, 4, c.own, []byte(request("eth_newFilter", `{"address":[`+strings.Join(addresses, ",")+`]}`)))
}

func sendZipped(text string) func(ctx context.Context, c *client) error {
	return func(ctx context.Context, c *client) error {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write([]byte(text)); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		return c.repeat(ctx, 4, c.own, b.Bytes(), "Content-Encoding", "gzip")
	}
}

func guessKeys(ctx context.Context, c *client) error {
	return c.repeat(ctx, 4, func(i int) string { return fmt.Sprintf("%032x", i) }, []byte(request("eth_chainId")))
}

func holdConnections(ctx context.Context, c *client) error {
	for range 4000 {
		conn, err := c.dialer.DialContext(ctx, "tcp", c.host)
		if err != nil {
			return err
		}
		defer conn.Close()
	}
	<-ctx.Done()
	return nil
}

// subscribe asks for all that happens, a hundred times on each of ten connections.
func subscribe(ctx context.Context, c *client) error {
	for i := range 10 {
		conn, err := c.dial(ctx, i)
		if err != nil {
			return err
		}
		defer conn.CloseNow()
		for range 100 {
			if err := conn.Write(ctx, websocket.MessageText, []byte(request("eth_subscribe", `"logs"`, `{}`))); err != nil {
				break // the server has closed the connection
			}
			c.asked.Add(1)
		}
	}
	<-ctx.Done()
	return nil
}

// readNothing sends questions with long answers for as long as they are read.
func readNothing(ctx context.Context, c *client) error {
	question := []byte(request("eth_getBlockByNumber", `"latest"`, `true`))
	for i := range 50 {
		conn, err := c.dial(ctx, i)
		if err != nil {
			return err
		}
		defer conn.CloseNow()
		for range 2000 {
			write, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
			err := conn.Write(write, websocket.MessageText, question)
			cancel()
			if err != nil {
				break // the server reads no more
			}
			c.asked.Add(1)
		}
	}
	<-ctx.Done()
	return nil
}
