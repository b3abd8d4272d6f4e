package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"ashlar/internal/await"

	"github.com/coder/websocket"
)

// socket is the client's end of a connection.
type socket struct {
	t    testing.TB
	conn *websocket.Conn
}

// dial opens a WebSocket with the good key.
func (s *running) dial(options *websocket.DialOptions) *socket {
	s.t.Helper()
	return s.dialWith(goodKey, options)
}

// dialWith opens a WebSocket with a key.
func (s *running) dialWith(key string, options *websocket.DialOptions) *socket {
	s.t.Helper()
	conn, _, err := websocket.Dial(s.t.Context(), s.url+"/ws/v3/"+key, options)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.CloseNow() })
	conn.SetReadLimit(100 << 20)
	return &socket{s.t, conn}
}

func (c *socket) send(messages ...string) {
	c.t.Helper()
	for _, m := range messages {
		if err := c.conn.Write(c.t.Context(), websocket.MessageText, []byte(m)); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *socket) receive() string {
	c.t.Helper()
	message, err := c.read()
	if err != nil {
		c.t.Fatal(err)
	}
	return string(message)
}

// read waits for a message, or for the end of the connection.
func (c *socket) read() ([]byte, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), await.Patience)
	defer cancel()
	_, message, err := c.conn.Read(ctx)
	if ctx.Err() != nil {
		err = fmt.Errorf("waited in vain for a message or the end of the connection: %w", err)
	}
	return message, err
}

// closed reads until the connection ends and returns the server's close code and reason.
func (c *socket) closed() (code websocket.StatusCode, reason string) {
	c.t.Helper()
	for {
		_, err := c.read()
		if close := (websocket.CloseError{}); errors.As(err, &close) {
			return close.Code, close.Reason
		}
		if err != nil {
			c.t.Fatalf("the connection ended without a close frame: %v", err)
		}
	}
}

func (c *socket) expectClosed(code websocket.StatusCode, reason string) {
	c.t.Helper()
	if gotCode, gotReason := c.closed(); gotCode != code || gotReason != reason {
		c.t.Errorf("closed with %d %q, expected %d %q", gotCode, gotReason, code, reason)
	}
}
