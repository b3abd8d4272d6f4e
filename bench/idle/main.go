// Command idle measures the memory of idle WebSocket connections. It starts the service on an
// imported network, opens connections, waits until they have been pinged, and compares the
// service's memory with that at the start.
//
//	go run ./bench/idle -data DIR -network NAME -connections 10000
//
// Connections are spread over addresses of the loopback network, so that client ports do not
// run out. Each connection needs a file descriptor here and one in the service.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"ashlar/internal/node"
)

const perAddress = 5000 // connections from one client address

func main() {
	data := flag.String("data", "", "data directory")
	network := flag.String("network", "", "network in it")
	connections := flag.Int("connections", 10_000, "connections to open")
	wait := flag.Duration("wait", 40*time.Second, "how long the connections stay idle; the server pings every 30 s, and closes them after 60 s")
	flag.Parse()
	if *data == "" || *network == "" || flag.NArg() > 0 || *connections < 1 {
		log.Fatal("idle: invalid flags (want -data DIR -network NAME and no arguments)")
	}
	if err := measure(context.Background(), *data, *network, *connections, *wait); err != nil {
		log.Fatal(err)
	}
}

func measure(ctx context.Context, data, network string, connections int, wait time.Duration) error {
	dir, err := os.MkdirTemp("", "ashlar-idle-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin, err := node.BuildAshlar(ctx, dir)
	if err != nil {
		return err
	}
	service, client, err := node.Ashlar{Bin: bin, Data: data, Network: network}.Serve(ctx)
	if err != nil {
		return err
	}
	defer service.Kill()
	before, err := service.ResidentBytes()
	if err != nil {
		return err
	}
	at, err := url.Parse(client.URL)
	if err != nil {
		return err
	}
	begun := time.Now()
	open := make([]net.Conn, 0, connections)
	for i := range connections {
		conn, err := handshake(ctx, at, i/perAddress)
		if err != nil {
			return fmt.Errorf("connection %d: %w", i, err)
		}
		open = append(open, conn)
	}
	fmt.Printf("%d connections opened in %v\n", len(open), time.Since(begun).Round(time.Millisecond))
	samples, err := observe(wait, service.ResidentBytes, func() error { return stillOpen(open, sweepTime) })
	if err != nil {
		return err
	}
	for _, one := range samples {
		fmt.Printf("after %-5v %.1f MB more memory, %.1f kB for each\n", one.after.Round(100*time.Millisecond),
			float64(one.bytes-before)/1e6, float64(one.bytes-before)/1e3/float64(connections))
	}
	for _, conn := range open {
		_ = conn.Close()
	}
	return service.Stop()
}

// sample is the memory of the service at a time after the connections were opened.
type sample struct {
	after time.Duration
	bytes int64
}

// observe reads the memory after a second, unless wait is shorter, and after wait. It reads the connections
// only then: that takes seconds, and one that was closed meanwhile is found all the same.
func observe(wait time.Duration, resident func() (int64, error), open func() error) (samples []sample, err error) {
	idle, times := time.Now(), []time.Duration{wait}
	if wait > time.Second {
		times = []time.Duration{time.Second, wait}
	}
	for _, after := range times {
		time.Sleep(time.Until(idle.Add(after)))
		one := sample{after: time.Since(idle)}
		if one.bytes, err = resident(); err != nil {
			return nil, err
		}
		samples = append(samples, one)
	}
	return samples, open()
}

// sweepTime is how long all connections are read. A busy machine needs some seconds to begin with 10,000, and after a
// deadline nothing is read.
const sweepTime = 5 * time.Second

// stillOpen returns an error if the service has closed a connection, as it does if a ping stays
// unanswered for 30 s: no ping is answered here. It reads all connections at once, because one after
// the other they take so long that the service closes them meanwhile.
func stillOpen(conns []net.Conn, within time.Duration) error {
	deadline := time.Now().Add(within)
	failed := make([]error, len(conns))
	var reading sync.WaitGroup
	for i, conn := range conns {
		reading.Go(func() { failed[i] = readUntil(conn, deadline) })
	}
	reading.Wait()
	for i, err := range failed {
		if err != nil {
			return fmt.Errorf("connection %d of %d: %w", i+1, len(conns), err)
		}
	}
	return nil
}

// readUntil drops what a connection receives until a deadline. It returns an error if the connection is closed.
func readUntil(conn net.Conn, deadline time.Time) error {
	if err := conn.SetReadDeadline(deadline); err != nil {
		return err
	}
	if time.Now().After(deadline) {
		return errors.New("it was not read in time: the machine is too busy for so many connections")
	}
	received := make([]byte, 64) // small, as there is one for each connection
	for {
		_, err := conn.Read(received)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		case err != nil:
			return fmt.Errorf("it is closed (want a -wait of less than a minute): %w", err)
		}
	}
}

// handshake opens a WebSocket without a client library, to save memory.
func handshake(ctx context.Context, at *url.URL, group int) (net.Conn, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(group+1))}}
	conn, err := dialer.DialContext(ctx, "tcp", at.Host)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(conn, "GET /ws%s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nUser-Agent: idle\r\n\r\n", at.Path, at.Host)
	if err != nil {
		return nil, err
	}
	response, err := http.ReadResponse(bufio.NewReaderSize(conn, 512), nil)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		return nil, fmt.Errorf("open a WebSocket: status %s", response.Status)
	}
	return conn, nil
}
