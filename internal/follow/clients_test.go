package follow

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"ashlar/internal/node"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
)

// The ways in which clients receive notifications.
const (
	heads  = "heads"  // a subscription
	logs   = "logs"   // a subscription
	polled = "polled" // a filter for logs, over HTTP
)

// client is a client that receives notifications.
type client struct {
	name         string
	hidesRemoved bool // it does not report removed logs, as ethers
	streams      map[string]*stream
	stop         func() // ends its process; may be called more than once
}

func newClient(name string) *client {
	c := &client{name: name, streams: make(map[string]*stream)}
	for _, way := range []string{heads, logs, polled} {
		c.streams[way] = &stream{name: name + ", " + way}
	}
	return c
}

// subscribe subscribes without a client library, and so receives all notifications from the beginning.
func subscribe(t *testing.T, service *node.Client) *client {
	t.Helper()
	connection, err := rpc.DialContext(t.Context(), node.SocketURL(service.URL))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(connection.Close)
	c := newClient("first")
	newHeads, newLogs := make(chan *types.Header, 64), make(chan types.Log, 64)
	headsTold, err := connection.EthSubscribe(t.Context(), newHeads, "newHeads")
	if err != nil {
		t.Fatal(err)
	}
	logsTold, err := connection.EthSubscribe(t.Context(), newLogs, "logs", map[string]any{"address": counter})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			select {
			case head := <-newHeads:
				c.streams[heads].add(notification{Block: head.Hash(), Number: head.Number.Uint64()})
			case log := <-newLogs:
				c.streams[logs].add(notification{log.BlockHash, log.BlockNumber, log.Topics[0], log.Removed})
			case <-headsTold.Err():
				return
			case <-logsTold.Err():
				return
			}
		}
	}()
	return c
}

// startClients starts the client libraries, each in a process of its own, until the test ends.
func startClients(t *testing.T, service *node.Client) (all []*client) {
	t.Helper()
	dir := libraries(t)
	for _, l := range []struct{ name, program, script string }{
		{"ethers", "node", "ethers.mjs"},
		{"viem", "node", "viem.mjs"},
		{"web3.py", filepath.Join(dir, "venv", "bin", "python"), "web3client.py"},
	} {
		text, err := os.ReadFile(filepath.Join("scripts", l.script))
		if err != nil {
			t.Fatal(err)
		}
		// Scripts find their libraries in the same folder. Each run has a copy: others may use the folder, too.
		file, err := os.CreateTemp(dir, "*-follow-"+l.script)
		if err != nil {
			t.Fatal(err)
		}
		script := file.Name()
		t.Cleanup(func() { _ = os.Remove(script) })
		_, err = file.Write(text)
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
		c := newClient(l.name)
		c.hidesRemoved = l.name == "ethers"
		c.run(t, l.program, script, service.URL, node.SocketURL(service.URL), counter.Hex())
		all = append(all, c)
	}
	return all
}

// run starts a process that prints a line for each notification.
func (c *client) run(t *testing.T, program string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	command := exec.CommandContext(ctx, program, args...)
	var failure bytes.Buffer
	command.Stderr = &failure
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		cancel()
		t.Fatalf("%s: %v", c.name, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			var line struct {
				Stream string
				notification
			}
			if err := json.Unmarshal(lines.Bytes(), &line); err != nil || c.streams[line.Stream] == nil {
				t.Errorf("%s printed %q", c.name, lines.Text())
				break
			}
			c.streams[line.Stream].add(line.notification)
		}
		err := command.Wait()
		if ctx.Err() == nil {
			t.Errorf("%s exited by itself: %v\n%s", c.name, err, &failure)
		}
	}()
	c.stop = func() { cancel(); <-ended }
	t.Cleanup(c.stop)
}

// warmUp sends transactions through the service until all clients receive notifications, and returns how
// many the first client had received by then.
func warmUp(t *testing.T, u *upstream, service *node.Client, first *client, others []*client) (missed map[string]int) {
	t.Helper()
	begun := make(map[string]int) // notifications by client and stream
	defer func() {
		if t.Failed() {
			t.Logf("notifications that clients received: %v", begun)
		}
	}()
	await(t, "clients to begin", func() bool {
		raw, err := u.sign(0, u.nonce(0), 0).MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		before := u.nonce(0)
		call[string](t, service, "eth_sendRawTransaction", hexutil.Bytes(raw))
		await(t, "a block with a transaction that was passed on", func() bool { return u.nonce(0) > before })
		awaitSameHead(t, service, u)
		all := true
		for _, c := range others {
			for name, s := range c.streams {
				_, count := s.last()
				begun[c.name+" "+name] = count
				all = all && count > 0
			}
		}
		return all
	})
	missed = make(map[string]int)
	for way, s := range first.streams {
		_, missed[way] = s.last()
	}
	return missed
}
