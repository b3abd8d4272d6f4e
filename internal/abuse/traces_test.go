package abuse

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"
	"github.com/ethereum/go-ethereum/common/hexutil"
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
		text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
		if err != nil {
			panic(err)
		}
		requests[name] = string(text)
	}
	traced := func(name string, call any, tracer string, options any) {
		add(name, "debug_traceCall", call, "latest", map[string]any{"tracer": tracer, "tracerConfig": options})
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
	add("struct logger", "debug_traceCall", slots, "latest", none)
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
	bin, err := node.BuildAshlar(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a := node.Ashlar{Bin: bin, Data: t.TempDir(), Network: "bounded", Config: filepath.Join(t.TempDir(), "ashlar.yaml")}
	if err := os.WriteFile(a.Config, fmt.Appendf(nil, "limits:\n  answer_bytes: %d\n", answerBytes), 0o600); err != nil {
		t.Fatal(err)
	}
	importing, err := a.Import(t.Context(), filepath.Join(chain, "genesis.json"), filepath.Join(chain, "chain.rlp"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := importing.Wait(); err != nil {
		t.Fatal(err)
	}
	service, client, err := a.Serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer service.Kill()

	var under atomic.Bool
	under.Store(true)
	var watching sync.WaitGroup
	var resident int64
	watching.Go(func() { resident = watch(t, service.PID(), &under) })
	socket, _, err := websocket.Dial(t.Context(), node.SocketURL(client.URL), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.CloseNow()
	web := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	for name, request := range largeTraces() {
		for transport, ask := range map[string]func(string) (string, error){
			"HTTP":      func(text string) (string, error) { return overHTTP(t.Context(), web, client.URL, text) },
			"WebSocket": func(text string) (string, error) { return overSocket(t.Context(), socket, text) },
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
	under.Store(false)
	watching.Wait()
	t.Logf("the service held %d MiB at most", resident>>20)
	if resident > maxResident/2 {
		t.Errorf("the service held %d MiB, expected at most %d", resident>>20, maxResident>>21)
	}
	if err := service.Stop(); err != nil {
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
