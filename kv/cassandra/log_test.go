package cassandra

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

// What the driver repeats while a node is down is logged once for each node.
func TestLoggerRepeats(t *testing.T) {
	var out bytes.Buffer
	l := &logger{log: slog.New(slog.NewTextHandler(&out, nil))}
	for i := range 20 {
		for _, host := range []string{"10.0.0.1", "10.0.0.2"} {
			l.Warning("Node is DOWN.", gocql.NewLogFieldString("host_addr", host), gocql.NewLogFieldInt("port", 9042*i))
		}
	}
	if lines := strings.Count(out.String(), "\n"); lines != 2 {
		t.Errorf("%d lines, expected one for each of two nodes:\n%s", lines, out.String())
	}
}
