package gateway_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"ashlar/gateway"
)

// A refusal that has no length ends with the connection: the client must see its end before
// what it has sent unread resets the connection.
func TestRefusalOfUnreadInputEnds(t *testing.T) {
	s := start(t, gateway.Config{Networks: []gateway.Network{network("alpha")}}, 0)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	begun := time.Now()
	if _, err := io.WriteString(conn, "POST /v3/x HTTP/1.1\r\nHost: a\r\nX-Long: "+strings.Repeat("x", 200<<10)); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 431 ") {
		t.Errorf("got %q, error %v after %v", answer, err, time.Since(begun))
	}
}
