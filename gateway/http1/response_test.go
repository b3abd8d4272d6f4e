package http1

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

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
		{"an empty line after a body", request("/echo", "hello") + "\r\n" + request("/echo", "again"), 0},
		{"line feeds after a body", request("/echo", "hello") + "\n\n\n\n" + request("/echo", "again") + "\n" + get, 1},
		{"too many empty lines after a body", request("/echo", "hello") + "\r\n\r\n\r\n", 1},
		{"an empty line at the end", request("/echo", "hello") + "\r\n", 0},
		{"another path", request("/full", "") + request("/echo", "again"), 1},
		{"another method", get + request("/echo", "again"), 1},
		{"another method later", request("/echo", "hello") + get + request("/echo", "again"), 1},
		{"chunks", request("/echo", "hello") + chunked + request("/echo", "again"), 1},
		{"nonsense", request("/echo", "hello") + "nonsense\r\n\r\n", 1},
		{"a head that is too long for the buffer", "POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\nAccept: " + strings.Repeat("x", 5000) + "\r\n\r\n", 1},
		{"lines that end with line feeds alone", "POST /echo HTTP/1.1\nHost: test\nContent-Length: 5\n\nhello", 1},
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
				full := dial(t, startFull(t, h))
				full.mayReset = true // net/http closes a connection without reading what still arrives
				got, want := dial(t, server.address).conversation(c.input, piece), full.conversation(c.input, piece)
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
func (c *client) conversation(input string, piece int) string {
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

// TestBodyThatEndsEarly tests that the handler can tell a body that was cut off from a whole one.
func TestBodyThatEndsEarly(t *testing.T) {
	c := dial(t, start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		fmt.Fprint(w, err)
	}), nil).address)
	c.send(strings.TrimSuffix(request("/", "hello"), "lo"))
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if answer := c.answer(); !strings.HasSuffix(answer, "\n"+io.ErrUnexpectedEOF.Error()) {
		t.Errorf("got %s", answer)
	}
}

// TestFlushWithoutLength tests that nothing is sent before the length of the answer is known.
func TestFlushWithoutLength(t *testing.T) {
	c := dial(t, start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{"text/plain"}
		for _, part := range []string{"in ", "parts"} {
			_, _ = io.WriteString(w, part)
			_ = http.NewResponseController(w).Flush()
		}
	}), nil).address)
	c.send(request("/", ""))
	if answer, want := c.answer(), "200 OK\nContent-Length: 8\r\nContent-Type: text/plain\r\nclose: false\nin parts"; answer != want {
		t.Errorf("got %q, want %q", answer, want)
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
		{"0", 1, errBeyond, errBeyond},
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
