package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
)

// generator is a load generator for WebSocket, which wrk does not support, and for HTTP, so
// that both are compared with the same generator. Each connection has one request in flight.
type generator struct {
	url    *url.URL // with the scheme http or ws
	frames [][]byte // encoded requests
}

func newGenerator(target, file string) (*generator, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	g := &generator{url: u}
	for line := range bytes.SplitSeq(bytes.TrimSpace(raw), []byte("\n")) {
		if u.Scheme == "ws" {
			g.frames = append(g.frames, frame(opText, line))
			continue
		}
		head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", u.RequestURI(), u.Host, len(line))
		g.frames = append(g.frames, append([]byte(head), line...))
	}
	return g, nil
}

// run sends requests for the given time and waits for all answers, or until ctx is done.
func (g *generator) run(ctx context.Context, connections int, length time.Duration) (load, error) {
	opened := make([]*wire, connections)
	for i := range opened {
		w, err := g.dial(ctx)
		if err != nil {
			return load{}, err
		}
		defer w.Close()
		opened[i] = w
	}
	group, ctx := errgroup.WithContext(ctx)
	defer context.AfterFunc(ctx, func() { // for servers that do not answer
		for _, w := range opened {
			w.Close()
		}
	})()
	took := make([][]time.Duration, connections)
	sizes, refused := make([]int, connections), make([]int, connections)
	begun := time.Now()
	for i, w := range opened {
		group.Go(func() (err error) {
			for at := i * len(g.frames) / connections; time.Since(begun) < length && ctx.Err() == nil; at++ {
				asked := time.Now()
				answer, err := w.ask(g.frames[at%len(g.frames)])
				if err != nil && ctx.Err() != nil {
					return ctx.Err() // it closed the connection
				} else if err != nil {
					return err
				}
				took[i], sizes[i] = append(took[i], time.Since(asked)), sizes[i]+answer.size
				if answer.refused {
					refused[i]++
				}
			}
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return load{}, err
	}
	seconds := time.Since(begun).Seconds()
	all := slices.Concat(took...)
	slices.Sort(all)
	if len(all) == 0 {
		return load{}, errors.New("the server answered no request")
	}
	total, errorAnswers := 0, 0
	for i, size := range sizes {
		total, errorAnswers = total+size, errorAnswers+refused[i]
	}
	micros := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
	return load{
		Requests: len(all), Refused: errorAnswers, Seconds: seconds, AnswerSize: float64(total) / float64(len(all)),
		P50Micros: micros(all[len(all)/2]), P99Micros: micros(all[len(all)*99/100]),
	}, nil
}

// wire is a connection with at most one request in flight.
type wire struct {
	net.Conn
	in     *bufio.Reader
	socket bool
}

func (g *generator) dial(ctx context.Context) (*wire, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", g.url.Host)
	if err != nil {
		return nil, err
	}
	w := &wire{Conn: conn, in: bufio.NewReaderSize(conn, 64<<10), socket: g.url.Scheme == "ws"}
	if w.socket {
		err = w.shakeHands(g.url)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return w, nil
}

func (w *wire) shakeHands(u *url.URL) error {
	_, err := fmt.Fprintf(w, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", u.RequestURI(), u.Host)
	if err != nil {
		return err
	}
	response, err := http.ReadResponse(w.in, nil)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		return fmt.Errorf("WebSocket handshake: %s", response.Status)
	}
	return nil
}

// answered is what the generator needs to know about an answer.
type answered struct {
	size    int
	begun   bool
	refused bool // an error, as the answer to a single request
}

// take reads part bytes of an answer, and then skips behind bytes.
func (a *answered) take(in *bufio.Reader, part, behind int) error {
	if !a.begun {
		const beginning = 64 // enough to tell a result from an error
		head, err := in.Peek(min(part, beginning))
		if err != nil {
			return err
		}
		before, _, found := bytes.Cut(head, []byte(`"error"`))
		a.begun, a.refused = true, found && head[0] == '{' && !bytes.Contains(before, []byte(`"result"`))
	}
	n, err := in.Discard(part + behind)
	a.size += n
	return err
}

// ask sends a request and reads the whole answer.
func (w *wire) ask(request []byte) (answered, error) {
	if _, err := w.Write(request); err != nil {
		return answered{}, err
	}
	if w.socket {
		return w.readMessage()
	}
	return w.readResponse()
}

// readResponse reads an HTTP response and parses as little of it as possible: net/http's
// client would use more of the machine than the server that is measured.
func (w *wire) readResponse() (answer answered, err error) {
	length := -1
	for first := true; ; first = false {
		line, err := w.in.ReadSlice('\n')
		if err != nil {
			return answer, err
		}
		answer.size += len(line)
		line = bytes.TrimRight(line, "\r\n")
		if first && !bytes.Contains(line, []byte(" 200 ")) {
			return answer, fmt.Errorf("the server answered %q", line)
		}
		if len(line) == 0 {
			break
		}
		if name, value, _ := bytes.Cut(line, []byte(":")); bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return answer, err
			}
		}
	}
	if length >= 0 {
		return answer, answer.take(w.in, length, 0)
	}
	for { // chunks
		line, err := w.in.ReadSlice('\n')
		if err != nil {
			return answer, err
		}
		answer.size += len(line)
		chunk, err := strconv.ParseInt(string(bytes.TrimRight(line, "\r\n")), 16, 32)
		if err != nil {
			return answer, err
		}
		if err := answer.take(w.in, int(chunk), len("\r\n")); err != nil || chunk == 0 {
			return answer, err
		}
	}
}

// WebSocket opcodes and header bits (RFC 6455, section 5.2).
const (
	opText  = 1
	opClose = 8
	opPing  = 9
	opPong  = 10
	final   = 0x80
	masked  = 0x80
)

// frame returns a client's frame. Clients must mask their frames; this one is masked with zeros.
func frame(op byte, payload []byte) []byte {
	out := []byte{final | op}
	switch {
	case len(payload) < 126:
		out = append(out, masked|byte(len(payload)))
	case len(payload) < 1<<16:
		out = binary.BigEndian.AppendUint16(append(out, masked|126), uint16(len(payload)))
	default:
		out = binary.BigEndian.AppendUint64(append(out, masked|127), uint64(len(payload)))
	}
	return append(append(out, 0, 0, 0, 0), payload...)
}

// readMessage reads a message, which may have several frames.
func (w *wire) readMessage() (answer answered, err error) {
	for {
		var head [8]byte
		if _, err := io.ReadFull(w.in, head[:2]); err != nil {
			return answer, err
		}
		first, length := head[0], int(head[1])
		switch length {
		case 126:
			_, err = io.ReadFull(w.in, head[:2])
			length = int(binary.BigEndian.Uint16(head[:2]))
		case 127:
			_, err = io.ReadFull(w.in, head[:8])
			length = int(binary.BigEndian.Uint64(head[:8]))
		}
		if err != nil {
			return answer, err
		}
		switch op := first &^ final; op {
		case opClose:
			return answer, errors.New("the server closed the WebSocket")
		case opPing:
			payload := make([]byte, length)
			if _, err := io.ReadFull(w.in, payload); err != nil {
				return answer, err
			}
			if _, err := w.Write(frame(opPong, payload)); err != nil {
				return answer, err
			}
			continue
		}
		answer.size += 2
		if err := answer.take(w.in, length, 0); err != nil || first&final != 0 {
			return answer, err
		}
	}
}
