package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/app"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// openRPC is what the test reads of an OpenRPC document.
type openRPC struct {
	Methods []openRPCMethod
}

type openRPCMethod struct {
	Name      string
	Structure string `json:"paramStructure"`
	Params    []struct{ Name string }
	Errors    []json.RawMessage
	Links     []struct {
		Method string
		Params map[string]string
	}
	Examples []struct {
		Params []struct {
			Name  string
			Value any
		}
	}
	Stream bool `json:"x-stream"`
}

// params returns the params of the example, by position.
func (m *openRPCMethod) params(t *testing.T) []any {
	t.Helper()
	if len(m.Examples) == 0 {
		t.Fatalf("%s has no example", m.Name)
	}
	params := []any{}
	for _, p := range m.Examples[0].Params {
		params = append(params, p.Value)
	}
	return params
}

// TestOpenRPCExamples calls every method of the demo's networks, and of one that forwards to it, as
// its example in the OpenRPC document says, and holds the results to the schemas there.
// Messages of subscriptions need a WebSocket, and a transaction is taken but once.
func TestOpenRPCExamples(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, stop := context.WithCancel(t.Context())
	text, ended := runDemo(ctx, t, Demo{Listen: "127.0.0.1:0", Blocks: 60, Interval: time.Minute})
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	lines := curlLine.FindAllStringSubmatch(text, -1)
	for name, test := range map[string]struct {
		url   string
		aside []string // methods that cannot be called here
	}{
		"demo": {lines[0][1], []string{
			"debug_subscribe", "debug_unsubscribe", "eth_sendRawTransaction", "eth_sendRawTransactionSync", "eth_subscribe", "eth_unsubscribe",
		}},
		demoStarknet: {lines[len(lines)-1][1], nil},
		"forwarded":  {serveForwarded(t, lines[0][1]), []string{"eth_sendRawTransaction", "eth_subscribe", "eth_unsubscribe"}},
	} {
		host, _, _ := strings.Cut(strings.TrimPrefix(test.url, "http://"), "/")
		t.Run(name, func(t *testing.T) {
			aside := callExamples(t, "http://"+host+"/openrpc/"+name+".json", test.url)
			if slices.Sort(aside); !slices.Equal(aside, test.aside) {
				t.Errorf("not called: %q, expected %q", aside, test.aside)
			}
		})
	}
}

// serveForwarded serves the network "forwarded", whose node is at a URL, until the test ends. It returns the URL for calls.
func serveForwarded(t *testing.T, node string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ashlar.yaml")
	text := fmt.Sprintf("data: %s\nnetworks:\n  forwarded:\n    upstream: %s\n", t.TempDir(), node)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := LoadConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := app.Open(t.Context(), c, listener)
	if err != nil {
		t.Fatal(err)
	}
	key, err := s.Keys().Create(t.Context(), account.NewKey{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, s.Close()); err != nil {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String() + "/v3/" + key.APIKey
}

// callExamples calls the methods of the document at one address by requests to another. It
// returns those that it did not call: subscriptions, and those that send a transaction.
func callExamples(t *testing.T, document, url string) (aside []string) {
	text := fetchDocument(t, document)
	var described openRPC
	if err := json.Unmarshal(text, &described); err != nil {
		t.Fatal(err)
	}
	schemas := compiler(t, text)
	for i := range described.Methods {
		m := &described.Methods[i]
		if m.Stream || strings.HasPrefix(m.Name, "eth_sendRawTransaction") {
			aside = append(aside, m.Name)
			continue
		}
		params := m.params(t)
		for _, from := range described.Methods {
			for _, link := range from.Links {
				if link.Method == m.Name {
					params[0] = decoded(t, post(t, url, request(t, from.Name, from.params(t)), http.StatusOK).Result)
				}
			}
		}
		answer := post(t, url, request(t, m.Name, params), http.StatusOK)
		if answer.Error != nil || len(answer.Result) == 0 {
			t.Errorf("%s%s is answered %s", m.Name, params, answer.Error)
			continue
		}
		// The demo has neither uncles nor, before Amsterdam, access lists of blocks.
		none := strings.HasPrefix(m.Name, "eth_getUncle") || m.Name == "eth_getBlockAccessList"
		if result := string(answer.Result); !none && (result == "null" || strings.Contains(m.Name, "Logs") && result == "[]") {
			t.Errorf("%s%s is answered %s", m.Name, params, result)
		}
		schema, err := schemas.Compile(fmt.Sprintf("doc.json#/methods/%d/result/schema", i))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(decoded(t, answer.Result)); err != nil {
			t.Errorf("%s%s is answered %.300s: %v", m.Name, params, answer.Result, err)
		}
		for j, value := range params {
			schema, err := schemas.Compile(fmt.Sprintf("doc.json#/methods/%d/params/%d/schema", i, j))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(value); err != nil {
				t.Errorf("%s: the example of parameter %d: %v", m.Name, j, err)
			}
		}
	}
	discovered := post(t, url, request(t, "rpc.discover", []any{}), http.StatusOK).Result
	if !bytes.Equal(discovered, text) {
		t.Errorf("rpc.discover answers %.200s, the document is %.200s", discovered, text)
	}
	if !slices.ContainsFunc(described.Methods, func(m openRPCMethod) bool { return m.Name == "rpc.discover" }) {
		t.Error("the document does not have rpc.discover")
	}
	return aside
}

func fetchDocument(t *testing.T, url string) []byte {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%s: %d %v %.200s", url, response.StatusCode, err, text)
	}
	return text
}

// compiler compiles the schemas within a document.
func compiler(t *testing.T, document []byte) *jsonschema.Compiler {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft7)
	if err := c.AddResource("doc.json", decoded(t, document)); err != nil {
		t.Fatal(err)
	}
	return c
}

func decoded(t *testing.T, text []byte) any {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func request(t *testing.T, method string, params []any) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
