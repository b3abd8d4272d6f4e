package upstream

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
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

// TestShownErrors: the log and the status have the beginning of what a node sends, and not its key.
func TestShownErrors(t *testing.T) {
	var log kept
	n, err := newNode(Node{URL: "http://127.0.0.1:1/v3/secret-key"}, "node", 1<<20, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	wrong := errors.New("Cannot POST /v3/secret-key " + strings.Repeat("<p>", 1<<16))
	for name, fails := range map[string]func(){
		"a poll":    func() { n.pollFailed(wrong, time.Now()) },
		"a failure": func() { n.fail(new(methodRecord), time.Now(), wrong, false, false) },
		"a lie":     func() { n.setAside("m", wrong) },
	} {
		n.why = ""
		fails()
		if why := n.why; !strings.HasPrefix(why, "Cannot POST /v3/… <p>") || len(why) > 2*shownBytes {
			t.Errorf("%s: %d bytes: %.500s", name, len(why), why)
		}
	}
	if log.lines("secret-key") > 0 || log.text.Len() > 4*shownBytes {
		t.Errorf("%d bytes in the log: %.500s", log.text.Len(), log.text.String())
	}
}

// TestShownErrorsHaveNoHeader: a node may repeat a key that it gets in a header.
func TestShownErrorsHaveNoHeader(t *testing.T) {
	t.Setenv("ASHLAR_TEST_KEY", "secret-key")
	n, err := newNode(Node{URL: "http://127.0.0.1:1", KeyEnv: "ASHLAR_TEST_KEY", Headers: []string{"Authorization: Bearer {key}", "X-Api-Key: other-secret"}}, "node", 1<<20, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	n.pollFailed(errors.New("unknown key secret-key, or other-secret, in application/json"), time.Now())
	if want := "unknown key …, or …, in application/json"; n.why != want {
		t.Errorf("%q, expected %q", n.why, want)
	}
}
