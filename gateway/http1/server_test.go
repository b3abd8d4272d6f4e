package http1

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
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
	return &client{t, conn.(*net.TCPConn), bufio.NewReader(conn)}
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
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
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

// answering is a handler with a path for each way of answering.
func answering() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprintf(w, "%s %s %d %x %v %v", r.Method, r.Host, r.ContentLength, sha256.Sum256(body), err, r.Header)
	})
	mux.HandleFunc("/full", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprintf(w, "%s answered in full", r.Method)
	})
	mux.HandleFunc("/refuse", func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"], w.Header()["X-Lines"] = []string{"text/plain"}, []string{"a\r\nb: c", "d"}
		w.WriteHeader(http.StatusTooManyRequests)
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, "no")
	})
	mux.HandleFunc("/close", func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"], w.Header()["Connection"] = []string{"text/plain"}, []string{"close"}
		_, _ = io.WriteString(w, "bye")
	})
	mux.HandleFunc("/long", func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		size, _ := strconv.Atoi(string(text))
		long := bytes.Repeat([]byte("0123456789"), size/10)
		w.Header()["Content-Type"], w.Header()["Content-Length"] = []string{"text/plain"}, []string{strconv.Itoa(size)}
		for _, part := range [][]byte{long[:size/5], long[size/5 : size/2], long[size/2:]} {
			_, _ = w.Write(part)
		}
		_ = http.NewResponseController(w).Flush()
	})
	mux.HandleFunc("/empty", func(w http.ResponseWriter, _ *http.Request) { w.Header()["Content-Type"] = []string{"text/plain"} })
	mux.HandleFunc("/panic", func(http.ResponseWriter, *http.Request) { panic("a bug") })
	mux.HandleFunc("/abort", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	mux.HandleFunc("/fields", func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"], w.Header()["X-Long"] = []string{"text/plain"}, []string{strings.Repeat("x", 2000)}
		_, _ = io.WriteString(w, "many")
	})
	return mux
}

// TestAnswersAsNetHTTPDoes holds conversations with this package and with net/http alone.
func TestAnswersAsNetHTTPDoes(t *testing.T) {
	get := "GET /full HTTP/1.1\r\nHost: test\r\n\r\n"
	chunked := "POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
	for _, c := range []struct {
		name   string
		input  string
		handed int32
	}{
		{"one request", request("/echo", "hello"), 0},
		{"requests in a row", request("/echo", "hello") + request("/empty", "") + request("/echo", "again"), 0},
		{"unread bodies", request("/refuse", "hello") + request("/empty", strings.Repeat("x", 100<<10)) + request("/echo", "again"), 0},
		{"a long body", request("/echo", strings.Repeat("hello", 1<<18)) + request("/echo", "again"), 0},
		{"a body that is not read and too long to be discarded", request("/refuse", strings.Repeat("x", 1<<20)), 0},
		{"long answers", request("/long", "4090") + request("/long", "4100") + request("/long", "5000000") + request("/long", "10"), 0},
		{"many fields", request("/fields", "") + request("/echo", "again"), 0},
		{"the handler closes", request("/close", "hello") + request("/echo", "again"), 0},
		{"a panic", request("/panic", "hello") + request("/echo", "again"), 0},
		{"an abort", request("/abort", "hello"), 0},
		{"another path", request("/full", "") + request("/echo", "again"), 1},
		{"another method", get + request("/echo", "again"), 1},
		{"another method later", request("/echo", "hello") + get + request("/echo", "again"), 1},
		{"chunks", request("/echo", "hello") + chunked + request("/echo", "again"), 1},
		{"nonsense", request("/echo", "hello") + "nonsense\r\n\r\n", 1},
		{"a head that is too long for the buffer", "POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\nAccept: " + strings.Repeat("x", 5000) + "\r\n\r\n", 1},
		{"HTTP/1.0", "POST /echo HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello", 1},
		{"Expect", "POST /echo HTTP/1.1\r\nHost: test\r\nExpect: something\r\nContent-Length: 5\r\n\r\nhello", 1},
	} {
		for _, piece := range []int{len(c.input), 1000, 7} {
			if len(c.input)/piece > 5000 {
				continue
			}
			t.Run(fmt.Sprintf("%s in pieces of %d", c.name, piece), func(t *testing.T) {
				h := answering()
				server := start(t, h, nil)
				got, want := conversation(t, server.address, c.input, piece), conversation(t, startFull(t, h), c.input, piece)
				if got != want {
					t.Errorf("got:\n%.2000s\nnet/http:\n%.2000s", got, want)
				}
				if handed := server.handed.Load(); handed != c.handed {
					t.Errorf("handed over %d connections, want %d", handed, c.handed)
				}
			})
		}
	}
}

// conversation sends the input in pieces, and returns all answers up to the end of the
// connection.
func conversation(t *testing.T, address, input string, piece int) string {
	c := dial(t, address)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for rest := input; rest != ""; {
			n := min(piece, len(rest))
			if _, err := io.WriteString(c, rest[:n]); err != nil {
				return // the server has closed the connection
			}
			rest = rest[n:]
			if len(input)/piece < 300 {
				time.Sleep(50 * time.Microsecond) // so that pieces arrive one by one; it does not matter if they do not
			}
		}
		_ = c.CloseWrite()
	}()
	defer func() { <-sent }()
	var all strings.Builder
	for {
		answer := c.answer()
		fmt.Fprintf(&all, "%s\n--\n", answer)
		if answer == "closed" || strings.Contains(answer, ", then ") {
			return all.String()
		}
	}
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

// TestSlowReader tests that a client that does not read does not hold its handler for ever.
func TestSlowReader(t *testing.T) {
	written := make(chan error, 1)
	s := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Length"] = []string{strconv.Itoa(1 << 30)}
		part := make([]byte, 1<<20)
		for {
			if _, err := w.Write(part); err != nil {
				written <- err
				return
			}
		}
	}), func(c *Config) { c.WriteTime = 10 * time.Millisecond })
	dial(t, s.address).send(request("/", ""))
	if err := <-written; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("error %v", err)
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

func TestWrongAnswers(t *testing.T) {
	for _, c := range []struct {
		declared string
		bytes    int
		written  error
		err      error
	}{
		{"10", 11, errBeyond, errBeyond},
		{"10", 9, nil, errShort},
		{"100000", 9999, nil, errShort},
		{"", maxUndeclared + 1, errUndeclared, errUndeclared},
	} {
		t.Run(c.err.Error(), func(t *testing.T) {
			s := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if c.declared != "" {
					w.Header().Set("Content-Length", c.declared)
				}
				if _, err := w.Write(make([]byte, c.bytes)); err != c.written {
					t.Errorf("error %v, want %v", err, c.written)
				}
			}), nil)
			conn := dial(t, s.address)
			conn.send(request("/", "") + request("/", ""))
			if answer := conn.answer(); answer != "closed" && !strings.Contains(answer, ", then unexpected EOF") {
				t.Errorf("got %s", answer)
			}
			if answer := conn.answer(); answer != "closed" {
				t.Errorf("got %s", answer)
			}
			if err := s.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			if log := s.log.String(); !strings.Contains(log, c.err.Error()) {
				t.Errorf("log: %s", log)
			}
		})
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
