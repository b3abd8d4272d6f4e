package cassandra

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

// logger passes what the driver logs on. The driver logs each lost connection as an error;
// that is no more than a warning here. While a node is down it logs the same every second,
// which is passed on once in repeatAfter.
type logger struct {
	log *slog.Logger

	mu   sync.Mutex
	last map[string]time.Time // guarded by mu; by the line without its changing parts
}

const (
	repeatAfter = 5 * time.Minute
	maxLines    = 1000 // remembered
)

// noAgreement is a line that the driver logs after each change of the schema, since it must
// not wait for agreement: agree (schema.go) waits instead.
const noAgreement = "Error while awaiting for schema agreement after a schema change event."

func (l *logger) Error(msg string, fields ...gocql.LogField)   { l.write(slog.LevelWarn, msg, fields) }
func (l *logger) Warning(msg string, fields ...gocql.LogField) { l.write(slog.LevelInfo, msg, fields) }
func (l *logger) Info(msg string, fields ...gocql.LogField)    { l.write(slog.LevelDebug, msg, fields) }
func (l *logger) Debug(msg string, fields ...gocql.LogField)   {}

func (l *logger) write(level slog.Level, msg string, fields []gocql.LogField) {
	if msg == noAgreement || !l.log.Enabled(context.Background(), level) {
		return
	}
	args, host := make([]any, 0, 2*len(fields)), ""
	for _, f := range fields {
		if f.Name == "host_addr" {
			host = f.Value.String()
		}
		args = append(args, f.Name, f.Value.String())
	}
	if l.isNew(fmt.Sprint(level, msg, host), time.Now()) {
		l.log.Log(context.Background(), level, "cassandra: "+msg, args...)
	}
}

// isNew reports whether a line was not logged lately.
func (l *logger) isNew(line string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, ok := l.last[line]; ok && now.Sub(last) < repeatAfter {
		return false
	}
	if l.last == nil || len(l.last) >= maxLines {
		l.last = map[string]time.Time{}
	}
	l.last[line] = now
	return true
}
