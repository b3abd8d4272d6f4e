package upstream

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// kept is a log that a test reads.
type kept struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (k *kept) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text.Write(p)
}

func (k *kept) lines(with string) (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for line := range strings.Lines(k.text.String()) {
		if strings.Contains(line, with) {
			n++
		}
	}
	return n
}

// TestUnusableNodesAreLogged: a node that never was usable is logged once, as is one that is.
func TestUnusableNodesAreLogged(t *testing.T) {
	down, other, good := newFake(t, 7, 1), newFake(t, 8, 100), newFake(t, 7, 10)
	down.Close()
	var log kept
	open(t, Config{Nodes: nodesOf(down, other, good), ChainID: 7, Log: slog.New(slog.NewTextHandler(&log, nil))})
	until(t, "each node is logged", func() bool {
		return log.lines("refused") == 1 && log.lines("it is on chain 8, expected 7") == 1 && log.lines("the node is used") == 1
	})
	polled := good.asked("eth_getBlockByNumber")
	until(t, "it is polled again", func() bool { return good.asked("eth_getBlockByNumber") > polled+2 })
	if n := log.lines("node is"); n != 3 {
		t.Errorf("%d lines, expected 3", n)
	}
}
