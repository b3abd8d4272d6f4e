package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ashlar/account"
	"ashlar/gateway"
	"ashlar/internal/await"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/jsonrpctest"

	"github.com/coder/websocket"
)

// Answers by WebSocket are the same as over HTTP, byte for byte.
func TestSocketAnswersAsHTTP(t *testing.T) {
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, RPC: jsonrpc.Config{BatchCalls: 3}}, 0)
	c := s.dial(nil)
	for _, request := range []string{
		call("test_name"), call("test_large"), call("test_panic"), call("test_fail"), call("unknown"),
		`{`, ``, `[]`, `[1]`, `"x"`, `{"jsonrpc":"2.0","id":"a","method":"test_echo","params":[1,2]}`,
		"[" + call("test_name") + "," + call("unknown") + "]",
		"[" + strings.Repeat(call("test_name")+",", 3) + call("test_name") + "]",
		strings.Repeat("[", 1000), "\xff",
	} {
		c.send(request)
		if _, want := s.post(request); c.receive() != want {
			t.Errorf("%.60s: another answer than over HTTP, %s", request, want)
		}
	}
	c.send(`{"jsonrpc":"2.0","method":"test_name"}`, call("test_name"))
	if got := c.receive(); !strings.Contains(got, `"id":1`) {
		t.Errorf("a notification is answered: %s", got)
	}
}

func TestSocketByNetwork(t *testing.T) {
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha", "alpha.test"), network("beta")}}, 0)
	for path, host := range map[string]string{"/ws/v3/": "alpha.test", "/alpha/ws/v3/": "other.test"} {
		conn, _, err := websocket.Dial(t.Context(), s.url+path+goodKey, &websocket.DialOptions{Host: host})
		if err != nil {
			t.Errorf("%s at %s: %v", path, host, err)
			continue
		}
		c := &socket{t, conn}
		if c.send(call("test_name")); !strings.Contains(c.receive(), "alpha") {
			t.Errorf("%s at %s: another network", path, host)
		}
		conn.CloseNow()
	}
}

const busyAnswer = `{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"the server is busy: try again later","data":{"backoff_seconds":1}}}`

// A refused WebSocket gets an HTTP error instead of a handshake.
func TestSocketIsRefusedOverHTTP(t *testing.T) {
	s := start(t, gateway.Config{
		Networks: []gateway.Network{network("alpha"), network("beta")},
		Origins:  []string{"https://a.test"}, Sockets: gateway.SocketLimits{Open: 1},
	}, 0)
	held, _, err := websocket.Dial(t.Context(), s.url+"/alpha/ws/v3/"+goodKey, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer held.CloseNow()
	for _, c := range []struct {
		name, path, origin string
		status             int
		answer             string
	}{
		{"no key", "/alpha/ws/v3/", "", 401, refusal("project id required in the url")},
		{"wrong key", "/alpha/ws/v3/" + goodKey[1:], "", 401, refusal("invalid project id")},
		{"no network", "/ws/v3/" + goodKey, "", 404, refusal("no such network: expected the host or the path of a network that is served here")},
		{"other origin", "/alpha/ws/v3/" + goodKey, "https://b.test", 403,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32002,"message":"origin not allowed: this server does not serve pages of this origin"}}`},
		{"too many", "/alpha/ws/v3/" + goodKey, "https://a.test", 503, busyAnswer},
	} {
		response, answer := s.ask("GET", c.path, "", "Connection", "Upgrade", "Upgrade", "websocket", "Origin", c.origin,
			"Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
		if response.StatusCode != c.status || answer != c.answer {
			t.Errorf("%s: %d %s\nwant %d %s", c.name, response.StatusCode, answer, c.status, c.answer)
		}
	}
	if response, answer := s.ask("GET", "/alpha/ws/v3/"+goodKey, ""); response.StatusCode != 426 {
		t.Errorf("no handshake: %d %s", response.StatusCode, answer)
	}
	if response, _ := s.ask("POST", "/alpha/ws/v3/"+goodKey, call("test_name")); response.StatusCode != 405 {
		t.Errorf("POST: %d", response.StatusCode)
	}
}

// A holder (a key, or all keys of an account) cannot take all places, and gets places back
// that it releases.
func TestSocketsOfOneAreBounded(t *testing.T) {
	p := newPeople(t)
	id := p.account("a@example.org", account.Limits{})
	greedy, sibling := p.key(account.NewKey{Owner: id}).APIKey, p.key(account.NewKey{Owner: id}).APIKey
	mine, other := p.key(account.NewKey{}).APIKey, p.key(account.NewKey{}).APIKey
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, Keys: p.keys, Sockets: gateway.SocketLimits{Open: 5, Each: 2}}, 0)
	const tooMany = `{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"too many WebSockets: expected at most 2 at once of one account, or of a key without one",` +
		`"data":{"backoff_seconds":1}}}`
	refused := func(key string, status int, want string) {
		t.Helper()
		response, answer := s.ask("GET", "/ws/v3/"+key, "", "Connection", "Upgrade", "Upgrade", "websocket",
			"Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
		if response.StatusCode != status || response.Header.Get("Retry-After") != "1" || answer != want {
			t.Errorf("%d %s\nwant %d %s", response.StatusCode, answer, status, want)
		}
	}
	first := s.dialWith(greedy, nil)
	s.dialWith(sibling, nil)
	refused(greedy, 429, tooMany)
	refused(sibling, 429, tooMany)
	s.dialWith(mine, nil)
	s.dialWith(mine, nil)
	refused(mine, 429, tooMany)
	s.dialWith(other, nil)
	refused(other, 503, busyAnswer)
	first.conn.CloseNow()
	await.Until(t, "the place of a connection that has ended", func() bool {
		conn, _, err := websocket.Dial(t.Context(), s.url+"/ws/v3/"+greedy, nil)
		if err == nil {
			t.Cleanup(func() { conn.CloseNow() })
		}
		return err == nil
	})
}

// held returns a network whose test_held signals its start and waits until released.
func held(begun chan<- struct{}, release <-chan struct{}) gateway.Network {
	n := network("alpha")
	n.Methods = jsonrpctest.With(n.Methods, jsonrpctest.Method("test_held", func(_ context.Context, _, out []byte) ([]byte, error) {
		begun <- struct{}{}
		<-release
		return append(out, `"late"`...), nil
	}))
	return n
}

func TestSocketAnswersAsTheyAreReady(t *testing.T) {
	begun, release := make(chan struct{}, 1), make(chan struct{})
	c := start(t, gateway.Config{Networks: []gateway.Network{held(begun, release)}}, 0).dial(nil)
	c.send(call("test_held"))
	<-begun
	c.send(call("test_name"))
	if got := c.receive(); !strings.Contains(got, "alpha") {
		t.Errorf("the quick one waits for the slow one: %s", got)
	}
	close(release)
	if got := c.receive(); !strings.Contains(got, "late") {
		t.Errorf("got %s", got)
	}
}

// All messages are answered even if more arrive than may be in flight, and no more run at
// once.
func TestSocketQueueIsBounded(t *testing.T) {
	const inFlight, messages = 4, 200
	var now, most atomic.Int64
	n := network("alpha")
	n.Methods = jsonrpctest.With(n.Methods, jsonrpctest.Method("test_count", func(_ context.Context, _, out []byte) ([]byte, error) {
		if running := now.Add(1); running > most.Load() {
			most.Store(running)
		}
		time.Sleep(time.Millisecond)
		now.Add(-1)
		return append(out, "true"...), nil
	}))
	c := start(t, gateway.Config{Networks: []gateway.Network{n}, Sockets: gateway.SocketLimits{InFlight: inFlight}}, 0).dial(nil)
	go func() {
		for id := range messages {
			_ = c.conn.Write(t.Context(), websocket.MessageText, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"test_count"}`, id))
		}
	}()
	var ids []int
	for range messages {
		var id int
		if _, err := fmt.Sscanf(c.receive(), `{"jsonrpc":"2.0","id":%d,"result":true}`, &id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	if len(slices.Compact(ids)) != messages || most.Load() > inFlight {
		t.Errorf("%d different answers, at most %d at once; expected %d and %d", len(ids), most.Load(), messages, inFlight)
	}
}

func TestSocketMessageLimit(t *testing.T) {
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, Limits: gateway.Limits{BodyBytes: 100_000}}, 0)
	for _, mode := range []websocket.CompressionMode{websocket.CompressionDisabled, websocket.CompressionNoContextTakeover} {
		c := s.dial(&websocket.DialOptions{CompressionMode: mode})
		if c.send(padded(100_000)); !strings.Contains(c.receive(), "alpha") {
			t.Error("a message of the greatest length is not answered")
		}
		c.send(padded(100_001))
		if code, reason := c.closed(); code != websocket.StatusMessageTooBig || reason != "the body is over the limit: expected at most 100000 bytes" {
			t.Errorf("one byte more: closed with %d %q", code, reason)
		}
	}
}

// aKey is a Keys whose only key can be revoked.
type aKey struct{ revoked atomic.Bool }

func (k *aKey) Check(key string) (*account.Key, bool) {
	return known, key == goodKey && !k.revoked.Load()
}

func TestRevokingClosesOpenSockets(t *testing.T) {
	keys := new(aKey)
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, Keys: keys}, 0)
	idle, busy := s.dial(nil), s.dial(nil)
	busy.send(call("test_wait"))
	revoked := time.Now()
	keys.revoked.Store(true)
	idle.expectClosed(websocket.StatusPolicyViolation, "invalid project id")
	busy.expectClosed(websocket.StatusPolicyViolation, "invalid project id")
	t.Logf("closed %v after the key was revoked", time.Since(revoked))
}

func TestStopAnswersWhatIsInFlightOnSockets(t *testing.T) {
	begun, release := make(chan struct{}, 1), make(chan struct{})
	s := start(t, gateway.Config{Networks: []gateway.Network{held(begun, release)}}, time.Minute)
	idle, busy := s.dial(nil), s.dial(nil)
	busy.send(call("test_held"))
	<-begun
	stopped := make(chan error, 1)
	go func() { stopped <- s.stop() }()
	idle.expectClosed(websocket.StatusGoingAway, "the server is shutting down")
	close(release)
	if got := busy.receive(); !strings.Contains(got, "late") {
		t.Errorf("got %s", got)
	}
	busy.expectClosed(websocket.StatusGoingAway, "the server is shutting down")
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestStopCutsOffSocketsAfterTheDrainTime(t *testing.T) {
	begun := make(chan struct{}, 1)
	n := network("alpha")
	n.Methods = jsonrpctest.With(n.Methods, jsonrpctest.Method("test_held", func(ctx context.Context, _, out []byte) ([]byte, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return out, ctx.Err()
	}))
	s := start(t, gateway.Config{Networks: []gateway.Network{n}, Limits: gateway.Limits{RequestTime: gateway.MaxRequestTime}}, 10*time.Millisecond)
	c := s.dial(nil)
	c.send(call("test_held"))
	<-begun
	if err := s.stop(); err == nil || !strings.Contains(err.Error(), "still in progress after 10ms") {
		t.Errorf("error %v", err)
	}
}

func TestIdleAndDeadSocketsAreClosed(t *testing.T) {
	t.Parallel()
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, Sockets: gateway.SocketLimits{Idle: 50 * time.Millisecond}}, 0)
	s.dial(nil).expectClosed(websocket.StatusGoingAway, "idle")

	s = start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, Sockets: gateway.SocketLimits{Ping: 50 * time.Millisecond}}, 0)
	silent := s.dial(&websocket.DialOptions{OnPingReceived: func(context.Context, []byte) bool { return false }})
	silent.expectClosed(websocket.StatusGoingAway, "no answer to ping")
}

func TestAnsweringSocketsStayOpen(t *testing.T) { synctest.Test(t, testAnsweringSocketsStayOpen) }

func testAnsweringSocketsStayOpen(t *testing.T) {
	line, end := servePipe(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, Sockets: gateway.SocketLimits{Ping: 2 * time.Second}})
	defer end()
	pinged := make(chan struct{}, 10)
	answering := dialLineWith(t, line, &websocket.DialOptions{OnPingReceived: func(context.Context, []byte) bool {
		pinged <- struct{}{}
		return true
	}})
	defer func() { _ = answering.conn.CloseNow() }()
	received := make(chan string, 1)
	go func() { // a client answers pings only while reading
		_, message, _ := answering.conn.Read(t.Context())
		received <- string(message)
	}()
	for range 2 { // the second comes after the time for an answer to the first
		<-pinged
	}
	answering.send(call("test_name"))
	if got := <-received; !strings.Contains(got, "alpha") {
		t.Errorf("a client that answers pings is not served: %q", got)
	}
}

func TestSocketsLeaveNothingBehind(t *testing.T) {
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}, Sockets: gateway.SocketLimits{Open: 1}}, 0)
	for range 50 { // a place is free once its previous connection has ended
		var conn *websocket.Conn
		for conn == nil {
			var response *http.Response
			var err error
			if conn, response, err = websocket.Dial(t.Context(), s.url+"/ws/v3/"+goodKey, nil); err != nil && response.StatusCode != 503 {
				t.Fatal(err)
			}
		}
		c := &socket{t, conn}
		if c.send(call("test_name")); !strings.Contains(c.receive(), "alpha") {
			t.Error("not answered")
		}
		conn.Close(websocket.StatusNormalClosure, "")
	}
}

// Messages from a client that has disconnected are not answered: the server stops reading
// once a write has failed.
func TestLostSocketsAreNotAnswered(t *testing.T) {
	const messages = 300
	begun, release := make(chan struct{}, messages), make(chan struct{})
	s := start(t, gateway.Config{Networks: []gateway.Network{held(begun, release)}, Sockets: gateway.SocketLimits{InFlight: 1}}, time.Minute)
	conn, _ := handshake(t, s, "")
	if _, err := io.WriteString(conn, strings.Repeat(frame(0x81, call("test_held")), messages)); err != nil {
		t.Fatal(err)
	}
	<-begun
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	close(release)
	await.Until(t, "the connection to end", func() bool { return s.handler.Stats().Sockets == 0 })
	if n := len(begun) + 1; n > messages/10 {
		t.Errorf("%d calls of %d were answered after their client had left", n, messages)
	}
}
