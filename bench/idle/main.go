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
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"ashlar/internal/node"
)

const perAddress = 5000 // connections from one client address

func main() {
	data := flag.String("data", "", "data directory")
	network := flag.String("network", "", "network in it")
	connections := flag.Int("connections", 10_000, "connections to open")
	wait := flag.Duration("wait", 40*time.Second, "how long the connections stay idle; the server pings every 30 s")
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
	for _, after := range []time.Duration{time.Second, wait} {
		time.Sleep(after)
		now, err := service.ResidentBytes()
		if err != nil {
			return err
		}
		if err := stillOpen(open); err != nil {
			return err
		}
		fmt.Printf("after %-5v %.1f MB more memory, %.1f kB for each\n", after,
			float64(now-before)/1e6, float64(now-before)/1e3/float64(connections))
	}
	for _, conn := range open {
		_ = conn.Close()
	}
	return service.Stop()
}

// stillOpen returns an error if the service has closed a connection, as it does if a ping stays
// unanswered for 30 s: no ping is answered here.
func stillOpen(conns []net.Conn) error {
	for i, conn := range conns {
		if err := conn.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, conn); !errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("connection %d of %d is closed (want a -wait of less than a minute): %w", i+1, len(conns), cmp.Or(err, io.EOF))
		}
	}
	return nil
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
