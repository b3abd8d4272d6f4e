package http1

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// running is a Server with an http.Server behind it, as in package gateway.
type running struct {
	*Server
	address string
	handed  atomic.Int32 // connections handed over
	log     *bytes.Buffer
}

// oneListener is a listener of connections that are passed to it.
type oneListener struct {
	net.Listener
	conns chan net.Conn
}

func (l *oneListener) Accept() (net.Conn, error) {
	if conn, ok := <-l.conns; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

type replayed struct {
	net.Conn
	input io.Reader
}

func (c *replayed) Read(p []byte) (int, error) { return c.input.Read(p) }

// start starts a server on a port of the loopback interface.
func start(t *testing.T, h http.Handler, change func(*Config)) *running {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &running{address: listener.Addr().String(), log: new(bytes.Buffer)}
	handed := &oneListener{listener, make(chan net.Conn)}
	full := &http.Server{Handler: h}
	config := Config{
		Handler: h,
		Accepts: func(path string) bool { return path != "/full" },
		HandOver: func(conn net.Conn, read []byte) {
			r.handed.Add(1)
			handed.conns <- &replayed{conn, io.MultiReader(bytes.NewReader(bytes.Clone(read)), conn)}
		},
		Context:  func(net.Conn) context.Context { return t.Context() },
		Log:      slog.New(slog.NewTextHandler(r.log, nil)),
		HeadTime: time.Minute, BodyTime: time.Minute, WriteTime: time.Minute,
		IdleTime: func(net.Conn) time.Duration { return time.Minute },
	}
	if change != nil {
		change(&config)
	}
	r.Server = New(config)
	served, servedFull := make(chan error, 1), make(chan error, 1)
	go func() { served <- r.Serve(listener) }()
	go func() { servedFull <- full.Serve(handed) }()
	t.Cleanup(func() {
		_ = listener.Close()
		r.Close()
		if err := <-served; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Serve: %v", err)
		}
		if err := r.Shutdown(context.Background()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		close(handed.conns)
		_ = full.Close()
		<-servedFull
	})
	return r
}

// startFull starts net/http alone.
func startFull(t *testing.T, h http.Handler) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: h, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
	})
	return listener.Addr().String()
}

// client is one connection of a client.
type client struct {
	t *testing.T
	*net.TCPConn
	answers *bufio.Reader
	// mayReset means that a reset is an end of the connection, as EOF is.
	mayReset bool
}

func dial(t *testing.T, address string) *client {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return &client{t: t, TCPConn: conn.(*net.TCPConn), answers: bufio.NewReader(conn)}
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

// answer reads an answer: its status, fields and body. It returns "closed" if the server has
// closed the connection.
func (c *client) answer() string {
	c.t.Helper()
	response, err := http.ReadResponse(c.answers, nil)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || c.mayReset && errors.Is(err, syscall.ECONNRESET) {
		return "closed"
	}
	if err != nil {
		c.t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Sprintf("%s, then %v", body, err)
	}
	// net/http refuses nonsense without a date.
	if date, err := http.ParseTime(response.Header.Get("Date")); response.StatusCode != http.StatusBadRequest && (err != nil || time.Since(date).Abs() > time.Minute) {
		c.t.Errorf("date %v, error %v", response.Header, err)
	}
	response.Header.Del("Date")
	fields := new(strings.Builder)
	_ = response.Header.Write(fields)
	return fmt.Sprintf("%s\n%sclose: %v\n%s", response.Status, fields, response.Close, body)
}

// request returns a plain request.
func request(path, body string) string {
	return "POST " + path + " HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

func TestPanicIsLogged(t *testing.T) {
	s := start(t, answering(), nil)
	c := dial(t, s.address)
	c.send(request("/panic", ""))
	if answer := c.answer(); answer != "closed" {
		t.Errorf("got %s", answer)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if log := s.log.String(); !strings.Contains(log, `level=ERROR msg="panic while answering a request"`) || !strings.Contains(log, "a bug") {
		t.Errorf("log: %s", log)
	}
}

// TestDeadlines tests that clients cannot hold a connection without sending anything.
func TestDeadlines(t *testing.T) {
	for _, c := range []struct {
		name, input string
		change      func(*Config)
		answers     int
	}{
		{"before the first head", "", func(c *Config) { c.HeadTime = time.Millisecond }, 0},
		{"in a head", "POST /e", func(c *Config) { c.HeadTime = time.Millisecond }, 0},
		{"between requests", request("/empty", ""), func(c *Config) { c.IdleTime = func(net.Conn) time.Duration { return time.Millisecond } }, 1},
		{"in a body", strings.TrimSuffix(request("/echo", "hello"), "lo"), func(c *Config) { c.BodyTime = time.Millisecond }, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := dial(t, start(t, answering(), c.change).address)
			conn.mayReset = true // the input may arrive after the time for it
			conn.send(c.input)
			for range c.answers {
				if answer := conn.answer(); !strings.HasPrefix(answer, "200") {
					t.Errorf("got %s", answer)
				}
			}
			if answer := conn.answer(); answer != "closed" {
				t.Errorf("got %s", answer)
			}
		})
	}
}

// TestSlowReader tests that a client that does not read does not hold its handler for ever, and that a handler can say for how
// long.
func TestSlowReader(t *testing.T) {
	const short = 10 * time.Millisecond
	for _, c := range []struct{ general, own time.Duration }{{short, 0}, {time.Hour, short}} {
		written := make(chan error, 1)
		s := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if c.own > 0 {
				_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(c.own))
			}
			w.Header()["Content-Length"] = []string{strconv.Itoa(1 << 30)}
			part := make([]byte, 1<<20)
			for {
				if _, err := w.Write(part); err != nil {
					written <- err
					return
				}
			}
		}), func(config *Config) { config.WriteTime = c.general })
		dial(t, s.address).send(request("/", ""))
		if err := <-written; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	}
}

// TestLongBodyIsRefused tests that a client can send a long body that is not read, and gets the
// answer: if the connection ended while it sends, it would get an error instead.
func TestLongBodyIsRefused(t *testing.T) {
	s := start(t, answering(), nil)
	for range 20 {
		c := dial(t, s.address)
		c.send(request("/refuse", strings.Repeat("x", 8<<20)))
		if answer := c.answer(); !strings.HasPrefix(answer, "429") {
			t.Fatalf("got %s", answer)
		}
		_ = c.Close()
	}
}

func TestShutdown(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			close(begun)
			<-release
		}
		_, _ = io.WriteString(w, "done")
	}), nil)
	fresh, idle, busy := dial(t, s.address), dial(t, s.address), dial(t, s.address)
	idle.send(request("/", ""))
	idle.answer()
	busy.send(request("/held", ""))
	<-begun
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Shutdown(stopped); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	for _, c := range []*client{fresh, idle} {
		if answer := c.answer(); answer != "closed" {
			t.Errorf("got %s", answer)
		}
	}
	close(release)
	if answer := busy.answer(); !strings.Contains(answer, "close: true\ndone") {
		t.Errorf("got %s", answer)
	}
	if answer := busy.answer(); answer != "closed" {
		t.Errorf("got %s", answer)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestAllocations counts what a request allocates, besides what its handler does: its context,
// the copy of the request with it, and the text of its head.
func TestAllocations(t *testing.T) {
	s := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }), nil)
	c := dial(t, s.address)
	text, answer := []byte(request("/v3/key", "")), make([]byte, 4096)
	allocations := testing.AllocsPerRun(1000, func() {
		_, err := c.Write(text)
		if err == nil {
			_, err = c.Read(answer)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	if allocations > 4 {
		t.Errorf("%v allocations for a request", allocations)
	}
}
