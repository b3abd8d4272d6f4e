package abuse

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// target is the service to attack.
type target struct {
	address string // host and port
	key     string
}

// attacker is a client with its own address.
type attacker struct {
	target
	dialer net.Dialer
	client *http.Client
}

func newAttacker(at target, number int) *attacker {
	a := &attacker{target: at, dialer: net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 2, byte(number))}}}
	a.client = &http.Client{Transport: &http.Transport{DialContext: a.dialer.DialContext, MaxIdleConnsPerHost: 4, DisableCompression: true}}
	return a
}

func (a *attacker) dial(ctx context.Context) (net.Conn, error) {
	return a.dialer.DialContext(ctx, "tcp", a.address)
}

// post returns the status of a request, 0 if the connection was closed.
func (a *attacker) post(ctx context.Context, path string, body io.Reader, headers ...string) int {
	request, err := http.NewRequestWithContext(ctx, "POST", "http://"+a.address+path, body)
	if err != nil {
		return 0
	}
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := a.client.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// raw sends bytes on a new connection and returns the statuses of all responses until the server
// closes it.
func (a *attacker) raw(ctx context.Context, sent string) (statuses []int, err error) {
	conn, err := a.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	go io.WriteString(conn, sent) // ends when conn is closed
	r := bufio.NewReader(conn)
	for {
		response, err := http.ReadResponse(r, nil)
		if err != nil {
			return statuses, nil
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		statuses = append(statuses, response.StatusCode)
		if response.Close {
			return statuses, nil
		}
	}
}

const question = `{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}`

// attack is one way to misuse the service. It returns an error if the service reacts unexpectedly.
type attack struct {
	name string
	run  func(ctx context.Context, a *attacker) error
}

// times calls do n times and returns the first error.
func times(n int, do func(i int) error) error {
	for i := range n {
		if err := do(i); err != nil {
			return err
		}
	}
	return nil
}

func expect(what string, got int, want ...int) error {
	for _, w := range want {
		if got == w {
			return nil
		}
	}
	return fmt.Errorf("%s: status %d, expected one of %v", what, got, want)
}

func attacks() []attack {
	return []attack{
		{"guessed keys", guessKeys},
		{"idle connections", holdConnections},
		{"slow bodies", sendSlowly},
		{"huge headers", sendHugeHeaders},
		{"oversized bodies", sendOversized},
		{"nested JSON", sendNested},
		{"compressed bombs", sendBombs},
		{"smuggled requests", smuggle},
		{"path tricks", trickPaths},
		{"forms of other sites", postForms},
		{"sockets that do not read", floodSockets},
		{"large batches", sendBatches},
	}
}

func guessKeys(ctx context.Context, a *attacker) error {
	limited := 0
	err := times(2000, func(i int) error {
		status := a.post(ctx, fmt.Sprintf("/v3/%032x", i), strings.NewReader(question))
		if status == 429 {
			limited++
		}
		return expect("a guessed key", status, 401, 429)
	})
	if err == nil && limited == 0 {
		err = fmt.Errorf("2000 guesses were never limited")
	}
	return err
}

// holdConnections opens connections, sends part of a request on each, and leaves them open.
func holdConnections(ctx context.Context, a *attacker) error {
	var open []net.Conn
	defer func() {
		for _, conn := range open {
			conn.Close()
		}
	}()
	return times(4000, func(i int) error {
		conn, err := a.dial(ctx)
		if err != nil {
			return err
		}
		open = append(open, conn)
		_, err = io.WriteString(conn, ("POST /v3/" + a.key)[:i%40])
		return err
	})
}

// sendSlowly announces large bodies and sends them slowly.
func sendSlowly(ctx context.Context, a *attacker) error {
	var open []net.Conn
	defer func() {
		for _, conn := range open {
			conn.Close()
		}
	}()
	err := times(500, func(int) error {
		conn, err := a.dial(ctx)
		if err != nil {
			return err
		}
		open = append(open, conn)
		_, err = fmt.Fprintf(conn, "POST /v3/%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 5000000\r\n\r\n[", a.key)
		return err
	})
	for range 20 {
		time.Sleep(100 * time.Millisecond)
		for _, conn := range open {
			_, _ = io.WriteString(conn, " ") // the server is expected to close the connection
		}
	}
	return err
}

func sendHugeHeaders(ctx context.Context, a *attacker) error {
	return times(20, func(int) error {
		statuses, err := a.raw(ctx, "POST /v3/"+a.key+" HTTP/1.1\r\nHost: x\r\nX-Huge: "+strings.Repeat("x", 1<<20)+"\r\n\r\n")
		if err == nil && len(statuses) > 0 { // the connection may be closed before the response is read
			err = expect("a huge header", statuses[0], 431)
		}
		return err
	})
}

func sendOversized(ctx context.Context, a *attacker) error {
	return times(50, func(int) error {
		return expect("an oversized body", a.post(ctx, "/v3/"+a.key, strings.NewReader(strings.Repeat(" ", 6<<20))), 413, 0)
	})
}

func sendNested(ctx context.Context, a *attacker) error {
	return times(100, func(i int) error {
		body := strings.Repeat([]string{"[", `{"a":`, `[{"a":`}[i%3], 100_000)
		return expect("nested JSON", a.post(ctx, "/v3/"+a.key, strings.NewReader(body)), 200)
	})
}

func sendBombs(ctx context.Context, a *attacker) error {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	if _, err := z.Write(make([]byte, 100<<20)); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return times(50, func(int) error {
		return expect("a bomb", a.post(ctx, "/v3/"+a.key, bytes.NewReader(bomb.Bytes()), "Content-Encoding", "gzip"), 413, 0)
	})
}

// smuggle sends requests of ambiguous length. Each must be rejected, or be treated as a single
// request after which the connection is closed.
func smuggle(ctx context.Context, a *attacker) error {
	head := "POST /v3/" + a.key + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
	inner := "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
	cases := []string{
		head + "Content-Length: 4\r\nContent-Length: 40\r\n\r\n" + inner,
		head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + inner,
		head + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + inner,
		head + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + inner,
		head + "Content-Length: +4\r\n\r\n" + inner,
		head + "Content-Length: 0x10\r\n\r\n" + inner,
		"POST /v3/" + a.key + " HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n" + inner,
	}
	return times(len(cases), func(i int) error {
		statuses, err := a.raw(ctx, cases[i])
		if err == nil && (len(statuses) != 1 || statuses[0] < 400) {
			err = fmt.Errorf("case %d: statuses %v, expected one refusal", i, statuses)
		}
		return err
	})
}

// trickPaths tries paths that could lead outside of the served ones.
func trickPaths(ctx context.Context, a *attacker) error {
	paths := []string{
		"/v3/", "//v3/" + a.key, "/./v3/" + a.key, "/demo/../v3/" + a.key, "/v3/../v3/" + a.key, "/v3//" + a.key,
		"/v3/" + a.key + "%00", "/v3/" + a.key + "/..", "/v3/%2e%2e/" + a.key, "/DEMO/v3/" + a.key, "/v3\\" + a.key,
		"/metrics", "/debug/pprof/", "/.git/config", "/v3/" + a.key + ";x", "/nowhere/v3/" + a.key, "/ws/v3/" + a.key,
		"/v3/" + a.key[:31] + "%0a", "/" + strings.Repeat("a/", 5000),
	}
	return times(len(paths), func(i int) error {
		statuses, err := a.raw(ctx, "POST "+paths[i]+" HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: "+
			fmt.Sprint(len(question))+"\r\n\r\n"+question)
		if err == nil && (len(statuses) != 1 || statuses[0] < 400 || statuses[0] >= 500) {
			err = fmt.Errorf("%.60s: statuses %v, expected a refusal", paths[i], statuses)
		}
		return err
	})
}

// postForms sends requests that a page of another site can make a browser send without preflight.
func postForms(ctx context.Context, a *attacker) error {
	types := []string{"application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain"}
	return times(len(types), func(i int) error {
		return expect("a form", a.post(ctx, "/v3/"+a.key, strings.NewReader(question), "Content-Type", types[i], "Origin", "https://evil.test"), 415)
	})
}

// floodSockets sends many requests over WebSockets without reading responses.
func floodSockets(ctx context.Context, a *attacker) error {
	request := []byte(`{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["latest",true]}`)
	var open []*websocket.Conn
	defer func() {
		for _, conn := range open {
			conn.CloseNow()
		}
	}()
	return times(50, func(int) error {
		conn, _, err := websocket.Dial(ctx, "ws://"+a.address+"/ws/v3/"+a.key, &websocket.DialOptions{HTTPClient: a.client})
		if err != nil {
			return err
		}
		open = append(open, conn)
		for range 2000 {
			write, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			err := conn.Write(write, websocket.MessageText, request)
			cancel()
			if err != nil {
				break // the server has stopped reading, as it should
			}
		}
		return nil
	})
}

func sendBatches(ctx context.Context, a *attacker) error {
	batch := "[" + strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["latest",true]},`, 999) + question + "]"
	return times(20, func(int) error {
		return expect("a large batch", a.post(ctx, "/v3/"+a.key, strings.NewReader(batch)), 200, 429, 503)
	})
}
