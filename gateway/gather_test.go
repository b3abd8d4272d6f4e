package gateway

import (
	"bytes"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
)

// writtenConn notes what is written to it.
type writtenConn struct {
	net.Conn
	writes []string
	fails  error
}

func (c *writtenConn) Write(b []byte) (int, error) {
	if c.fails != nil {
		return 0, c.fails
	}
	c.writes = append(c.writes, string(b))
	return len(b), nil
}

// TestGather: a connection that gathers holds what it is given first until the next.
func TestGather(t *testing.T) {
	full, most := strings.Repeat("f", connBuffer), strings.Repeat("m", connBuffer+1)
	for _, test := range []struct {
		name   string
		writes []string // while it gathers
		early  []string // what has been written by then, before it is released
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
		for range 2 { // and again, as the next answer does
			under.writes = nil
			conn.gathering = true
			for _, write := range test.writes {
				given := []byte(write)
				if n, err := conn.Write(given); n != len(write) || err != nil {
					t.Fatalf("%s: wrote %d bytes, %v", test.name, n, err)
				}
				clear(given) // it was lent for the call
			}
			if !slices.Equal(under.writes, test.early) {
				t.Errorf("%s: %d writes before the end, want %d", test.name, len(under.writes), len(test.early))
			}
			conn.gathering = false
			if err := conn.writeHeld(nil); err != nil || strings.Join(under.writes, "") != strings.Join(test.all, "") {
				t.Errorf("%s: %d bytes, %v", test.name, len(strings.Join(under.writes, "")), err)
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
