package abuse

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/core/vm/program"

	"ashlar/internal/node"
	"ashlar/internal/vectors"
)

// answerBytes is the limit of an answer in TestTracesAreCutOff.
const answerBytes = 50_000

// largeTraces are requests for traces that are longer than answerBytes, by the name of
// what makes them long.
func largeTraces() map[string]string {
	// Each program repeats something until the gas is used up.
	loop := func(body func(p *program.Program)) map[string]any {
		p := program.New()
		_, start := p.Jumpdest()
		body(p)
		p.Jump(start)
		return map[string]any{"data": hexutil.Encode(p.Bytes()), "gas": "0x1c9c380"}
	}
	const large = 10_000 // bytes of an input or a log
	calls := loop(func(p *program.Program) { p.Call(nil, 0xdddd, 0, 0, large, 0, 0).Op(vm.POP) })
	logs := loop(func(p *program.Program) { p.Push(large).Push(0).Op(vm.LOG0) })
	slots := loop(func(p *program.Program) { p.Op(vm.GAS, vm.SLOAD, vm.POP) })
	// It ends in time, so that what it has written stays.
	writes := map[string]any{"gas": "0x1c9c380"}
	p := program.New()
	for slot := range 600 {
		p.Sstore(slot, 1)
	}
	writes["data"] = hexutil.Encode(p.Bytes())

	requests := make(map[string]string)
	add := func(name, method string, params ...any) {
		requests[name] = request(method, params...)
	}
	traced := func(name string, call any, tracer string, options any) {
		add(name, "debug_traceCall", call, "latest", map[string]any{"tracer": tracer, "tracerConfig": options, "timeout": "10m"})
	}
	none := map[string]any{}
	traced("callTracer", calls, "callTracer", none)
	traced("callTracer, logs", logs, "callTracer", map[string]any{"withLog": true})
	traced("flatCallTracer", calls, "flatCallTracer", none)
	traced("erc7562Tracer", calls, "erc7562Tracer", none)
	traced("muxTracer", calls, "muxTracer", map[string]any{"callTracer": none, "4byteTracer": none})
	traced("prestateTracer", slots, "prestateTracer", none)
	traced("prestateTracer, diffMode", writes, "prestateTracer", map[string]any{"diffMode": true})
	traced("JavaScript", slots, `{fault: function() {}, result: function() { return Array(100000).join("x") }}`, none)
	add("struct logger", "debug_traceCall", slots, "latest", map[string]any{"timeout": "10m"})
	add("debug_traceCallMany", "debug_traceCallMany", []any{map[string]any{"transactions": []any{slots}}}, map[string]any{}, map[string]any{"timeout": "10m"})
	for _, kind := range []struct {
		name string
		call any
	}{{"trace", calls}, {"vmTrace", slots}, {"stateDiff", writes}} {
		add("trace_call, "+kind.name, "trace_call", kind.call, []string{kind.name}, "latest")
		add("trace_callMany, "+kind.name, "trace_callMany", []any{[]any{kind.call, []string{kind.name}}}, "latest")
	}
	add("eth_simulateV1", "eth_simulateV1", map[string]any{"blockStateCalls": []any{map[string]any{"calls": []any{
		map[string]any{"data": hexutil.Encode(logsThatStay(large)), "gas": "0x1c9c380"},
	}}}}, "latest")
	add("trace_filter", "trace_filter", map[string]any{"fromBlock": "0x0", "toBlock": "latest"})
	return requests
}

// logsThatStay is code that writes some logs and ends.
func logsThatStay(size int) []byte {
	p := program.New()
	for range 10 {
		p.Push(size).Push(0).Op(vm.LOG0)
	}
	return p.Bytes()
}

// TestTracesAreCutOff asks for traces over the limit of an answer, over HTTP and
// WebSocket. Each ends with the error that says so, and its connection goes on.
func TestTracesAreCutOff(t *testing.T) {
	chain := vectors.Path(t, "execution-apis")
	mined := newMinedChain(t)
	bin, err := node.BuildAshlar(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Run("calls", func(t *testing.T) {
		s := serveBounded(t, bin, filepath.Join(chain, "genesis.json"), filepath.Join(chain, "chain.rlp"))
		s.areTooLarge(t, largeTraces())
		s.stop(t)
	})
	t.Run("blocks", func(t *testing.T) {
		s := serveBounded(t, bin, mined.genesis, mined.chain)
		s.areTooLarge(t, mined.largeTraces(t))
		s.chainIsCutOff(t, mined)
		if answer, err := overHTTP(t.Context(), s.web, s.url, request("debug_traceBlock", mined.greedy)); err != nil || !strings.Contains(answer, "is above twice that of its parent") {
			t.Errorf("a block with more gas than any that could follow: %.300s, %v", answer, err)
		}
		s.endWithTheirClients(t, mined)
		s.stop(t)
	})
}

// bounded is a service whose answers are small, and whose memory is watched. Its requests
// may take longer than any test.
type bounded struct {
	*node.Process
	url, operator string
	socket        *websocket.Conn
	web           *http.Client
	under         atomic.Bool
	watching      sync.WaitGroup
	resident      int64
}

func serveBounded(t *testing.T, bin, genesis, chain string) *bounded {
	t.Helper()
	operator, err := node.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	a := node.Ashlar{Bin: bin, Data: t.TempDir(), Network: "bounded", Config: filepath.Join(t.TempDir(), "ashlar.yaml")}
	write(t, a.Config, fmt.Appendf(nil, "operator: %s\nlimits:\n  answer_bytes: %d\n  time: 10m\n", operator, answerBytes))
	importing, err := a.Import(t.Context(), genesis, chain)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := importing.Wait(); err != nil {
		t.Fatal(err)
	}
	s := &bounded{operator: operator, web: &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}}
	service, client, err := a.Serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(service.Kill)
	s.Process, s.url = service, client.URL
	s.under.Store(true)
	s.watching.Go(func() { s.resident = watch(t, service.PID(), &s.under) })
	if s.socket, _, err = websocket.Dial(t.Context(), node.SocketURL(client.URL), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.socket.CloseNow() })
	return s
}

// areTooLarge sends requests and expects the error of answers that are too large.
func (s *bounded) areTooLarge(t *testing.T, requests map[string]string) {
	for name, request := range requests {
		for transport, ask := range map[string]func(string) (string, error){
			"HTTP":      func(text string) (string, error) { return overHTTP(t.Context(), s.web, s.url, text) },
			"WebSocket": func(text string) (string, error) { return overSocket(t.Context(), s.socket, text) },
		} {
			answer, err := ask(request)
			if err != nil || !strings.Contains(answer, `"error":{"code":-32003,"message":"response too large"`) {
				t.Errorf("%s over %s: %.300s, %v", name, transport, answer, err)
			}
			if len(answer) > answerBytes {
				t.Errorf("%s over %s: an error of %d bytes", name, transport, len(answer))
			}
			if answer, err := ask(question); err != nil || !strings.Contains(answer, `"result":"0x`) {
				t.Errorf("after %s over %s: %.300s, %v", name, transport, answer, err)
			}
		}
	}
}

// chainIsCutOff subscribes to the traces of a chain. A block whose traces are too large has
// the error in place of them, and the next block follows.
func (s *bounded) chainIsCutOff(t *testing.T, c *minedChain) {
	answer, err := overSocket(t.Context(), s.socket, request("debug_subscribe", "traceChain", "0x0", "0x2", map[string]any{"tracer": "callTracer", "timeout": "10m"}))
	if err != nil || !strings.Contains(answer, `"result":"0x`) {
		t.Fatalf("debug_subscribe: %.300s, %v", answer, err)
	}
	for _, block := range []*types.Block{c.heavy, c.many} {
		_, message, err := s.socket.Read(t.Context())
		if err != nil {
			t.Fatalf("the message of block %d: %v", block.NumberU64(), err)
		}
		if len(message) > answerBytes+1000 {
			t.Errorf("the message of block %d has %d bytes", block.NumberU64(), len(message))
		}
		if text := string(message); !strings.Contains(text, block.Hash().Hex()) || !strings.Contains(text, `"error":"response too large"`) {
			t.Errorf("the message of block %d: %.300s", block.NumberU64(), message)
		}
	}
	if answer, err := overSocket(t.Context(), s.socket, question); err != nil || !strings.Contains(answer, `"result":"0x`) {
		t.Errorf("after debug_subscribe: %.300s, %v", answer, err)
	}
}

// endWithTheirClients traces blocks that take hours. When the client has left, nothing runs.
func (s *bounded) endWithTheirClients(t *testing.T, c *minedChain) {
	for name, block := range c.unminedBlocks {
		for _, config := range []map[string]any{{"tracer": "callTracer"}, {"tracer": "4byteTracer"}, {"tracer": "prestateTracer"}, {"tracer": harmlessScript}} {
			config["timeout"] = "10m"
			text := request("debug_traceBlock", block, config)
			ctx, leave := context.WithCancel(t.Context())
			var leaving sync.WaitGroup
			leaving.Go(func() {
				if answer, err := overHTTP(ctx, &http.Client{Transport: new(http.Transport)}, s.url, text); err == nil {
					t.Errorf("%s, %s: %.300s", name, config["tracer"], answer)
				}
			})
			s.runs(t, 1)
			leave()
			leaving.Wait()
			s.runs(t, 0)

			socket, _, err := websocket.Dial(t.Context(), node.SocketURL(s.url), nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := socket.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
				t.Fatal(err)
			}
			s.runs(t, 1)
			socket.CloseNow()
			s.runs(t, 0)
		}
	}
}

// runs waits until that many heavy calls run.
func (s *bounded) runs(t *testing.T, calls int) {
	t.Helper()
	want := fmt.Sprintf("ashlar_calls_running{kind=\"heavy\"} %d\n", calls)
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		response, err := http.Get("http://" + s.operator + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the metrics do not say %q", want)
		}
	}
}

// stop stops the service, and checks what memory it has had.
func (s *bounded) stop(t *testing.T) {
	s.under.Store(false)
	s.watching.Wait()
	t.Logf("the service held %d MiB at most", s.resident>>20)
	if s.resident > maxResident/2 {
		t.Errorf("the service held %d MiB, expected at most %d", s.resident>>20, maxResident>>21)
	}
	if err := s.Process.Stop(); err != nil {
		t.Error(err)
	}
}

// overHTTP posts a request. All but the first must find the connection open.
func overHTTP(ctx context.Context, client *http.Client, url, text string) (string, error) {
	reused := false
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }})
	request, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(text))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && text == question && !reused {
		err = fmt.Errorf("the connection was closed")
	}
	return string(answer), err
}

func overSocket(ctx context.Context, socket *websocket.Conn, text string) (string, error) {
	if err := socket.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
		return "", err
	}
	_, answer, err := socket.Read(ctx)
	return string(answer), err
}
