package jsonrpc_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ashlar/jsonrpc"
)

// testMethods are the methods that the conversations in testdata call.
func testMethods() jsonrpc.Handlers {
	fail := func(err error) jsonrpc.Handler {
		return func(_ context.Context, _, out []byte) ([]byte, error) {
			return append(out, "half a result"...), err
		}
	}
	return jsonrpc.Handlers{
		"test_echo": func(_ context.Context, params, out []byte) ([]byte, error) {
			if len(params) == 0 {
				params = []byte("null")
			}
			return append(out, params...), nil
		},
		"test_nothing": func(_ context.Context, _, out []byte) ([]byte, error) {
			return append(out, "null"...), nil
		},
		"test_args": func(_ context.Context, params, out []byte) ([]byte, error) {
			var args [2][]byte
			if err := jsonrpc.Arguments(params, args[:], 1); err != nil {
				return out, err
			}
			return fmt.Appendf(out, "[%s,%s]", args[0], args[1]), nil
		},
		"test_panic": func(_ context.Context, _, out []byte) ([]byte, error) {
			_ = append(out, "half a result"...)
			panic("a bug")
		},
		"test_silent": func(_ context.Context, _, out []byte) ([]byte, error) { return out, nil },
		"test_revert": fail(&jsonrpc.Error{Code: jsonrpc.CodeReverted, Message: "execution reverted: no", Data: "0x08c379a0"}),
		"test_wrapped": fail(fmt.Errorf("while testing: %w", &jsonrpc.Error{
			Code: jsonrpc.CodeLimitExceeded, Message: "slow down", Data: json.RawMessage(`{"allowed_rps":10}`),
		})),
		"test_data": func(_ context.Context, params, out []byte) ([]byte, error) {
			return out, &jsonrpc.Error{Code: jsonrpc.CodeReverted, Message: "no", Data: json.RawMessage(params)}
		},
		"test_baddata": fail(&jsonrpc.Error{Code: jsonrpc.CodeServer, Message: "bad data", Data: make(chan int)}),
		"test_fail":    fail(errors.New("a secret")),
		"test_timeout": fail(fmt.Errorf("reading: %w", context.DeadlineExceeded)),
	}
}

// conversation is one file of testdata.
type conversation struct {
	config    jsonrpc.Config
	exchanges []exchange
}

type exchange struct {
	line            int
	request, answer string
}

// readConversation reads lines `--> request`, `<-- answer`, `config name value`,
// comments after // and empty lines.
func readConversation(t *testing.T, path string) (c conversation) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if request, ok := strings.CutPrefix(line, "--> "); ok {
			c.exchanges = append(c.exchanges, exchange{line: n, request: request})
		} else if answer, ok := strings.CutPrefix(line, "<-- "); ok {
			c.exchanges[len(c.exchanges)-1].answer = answer
		} else if setting, ok := strings.CutPrefix(line, "config "); ok {
			name, value, _ := strings.Cut(setting, " ")
			field := map[string]*int{
				"batch-calls": &c.config.BatchCalls, "batch-bytes": &c.config.BatchBytes, "answer-bytes": &c.config.AnswerBytes,
			}[name]
			if *field, err = strconv.Atoi(value); err != nil {
				t.Fatalf("%s:%d: %v", path, n, err)
			}
		} else if line != "" && !strings.HasPrefix(line, "//") {
			t.Fatalf("%s:%d: cannot parse the line %q of a conversation", path, n, line)
		}
	}
	return c
}

// TestConversations replays every conversation of testdata.
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no conversations in testdata", err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			c := readConversation(t, path)
			c.config.Log = slog.New(slog.DiscardHandler)
			server := jsonrpc.NewServer(testMethods(), c.config)
			for _, e := range c.exchanges {
				request := []byte(e.request)
				answer := server.Answer(context.Background(), request, []byte("before"))
				if got := strings.TrimPrefix(string(answer), "before"); got != e.answer {
					t.Errorf("%s:%d: %s\n got  %s\n want %s", path, e.line, e.request, got, e.answer)
				}
				if string(request) != e.request {
					t.Errorf("%s:%d: the request's bytes were changed", path, e.line)
				}
			}
		})
	}
}
