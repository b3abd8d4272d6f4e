package gateway

import (
	"bytes"
	"errors"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// writtenConn records what is written to it, and that it was closed.
type writtenConn struct {
	net.Conn
	writes []string
	fails  error
	closed bool
}

func (c *writtenConn) Close() error { c.closed = true; return nil }

func (c *writtenConn) Write(b []byte) (int, error) {
	if c.fails != nil {
		return 0, c.fails
	}
	c.writes = append(c.writes, string(b))
	return len(b), nil
}

// TestGather: a gathering connection holds the first write until the next.
func TestGather(t *testing.T) {
	full, most := strings.Repeat("f", connBuffer), strings.Repeat("m", connBuffer+1)
	for _, test := range []struct {
		name   string
		writes []string // while gathering
		early  []string // written before release
		all    []string
	}{
		{"nothing", nil, nil, nil},
		{"one write", []string{full}, nil, []string{full}},
		{"two", []string{full, "end"}, []string{full, "end"}, []string{full, "end"}},
		{"a long second", []string{full, most}, []string{full, most}, []string{full, most}},
		{"three", []string{full, "b", "c"}, []string{full, "b", "c"}, []string{full, "b", "c"}},
		{"a long first", []string{most, "end"}, []string{most}, []string{most, "end"}},
	} {
		under := new(writtenConn)
		conn := &countedConn{Conn: under}
		for range 2 { // again, for the next answer
			under.writes = nil
			conn.gather()
			for _, write := range test.writes {
				given := []byte(write)
				if n, err := conn.Write(given); n != len(write) || err != nil {
					t.Fatalf("%s: wrote %d bytes, %v", test.name, n, err)
				}
				clear(given) // valid only during the call
			}
			if !slices.Equal(under.writes, test.early) {
				t.Errorf("%s: %d writes before the end, want %d", test.name, len(under.writes), len(test.early))
			}
			if conn.release(); strings.Join(under.writes, "") != strings.Join(test.all, "") {
				t.Errorf("%s: %d bytes", test.name, len(strings.Join(under.writes, "")))
			}
		}
		if _, err := conn.Write([]byte("next")); err != nil || under.writes[len(under.writes)-1] != "next" {
			t.Errorf("%s: what is written afterwards is held: %v", test.name, err)
		}
	}
	broken := errors.New("broken")
	conn := &countedConn{Conn: &writtenConn{fails: broken}, gathering: true}
	_, first := conn.Write(bytes.Repeat([]byte{'x'}, 10))
	if _, err := conn.Write([]byte("y")); first != nil || !errors.Is(err, broken) || conn.held != nil {
		t.Errorf("to a broken connection: %v, then %v", first, err)
	}
}

// TestGatherBroken: if a completely held answer cannot be written, its connection ends,
// because no answer may follow a partial one.
func TestGatherBroken(t *testing.T) {
	for _, fails := range []error{nil, errors.New("broken")} {
		under := &writtenConn{fails: fails}
		conn := &countedConn{Conn: under, leave: func() {}}
		request := httptest.NewRequest("POST", "/", nil)
		request = request.WithContext(withConn(request.Context(), conn))
		release := gather(httptest.NewRecorder(), request, connBuffer)
		if n, err := conn.Write([]byte("all of it")); n != 9 || err != nil {
			t.Fatal(n, err)
		}
		if release(); under.closed != (fails != nil) {
			t.Errorf("after %v the connection is closed: %v", fails, under.closed)
		}
	}
}
