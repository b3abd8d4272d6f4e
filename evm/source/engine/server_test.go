package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"ashlar/jsonrpc"

	geth "github.com/ethereum/go-ethereum/beacon/engine"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
)

// started runs a server until the returned function is called, which returns its error.
func started(t *testing.T, methods jsonrpc.Handlers) (s *Server, stop func() error) {
	t.Helper()
	s, err := Listen(t.Context(), ServerConfig{Address: "127.0.0.1:0", Secret: Secret{4}, Methods: methods, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = func() error { cancel(); return <-done }
	return s, stop
}

// post sends a body with an Authorization header.
func post(t *testing.T, s *Server, authorization string, body io.Reader) (status int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Addr().String(), body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// bearer is an Authorization header of this moment.
func bearer(secret Secret) string {
	return "Bearer " + token(secret, head, fmt.Sprintf(`{"iat":%d}`, time.Now().Unix()))
}

// A request that finds no place in time is refused, and counted as such.
func TestBusyServerRefuses(t *testing.T) {
	s, err := Listen(t.Context(), ServerConfig{Address: "127.0.0.1:0", Secret: Secret{4}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range bodiesAtOnce {
		s.places <- struct{}{}
	}
	over, end := context.WithCancel(t.Context())
	end()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader("{}"))
	request.Header.Set("Authorization", bearer(Secret{4}))
	answer := httptest.NewRecorder()
	s.serve(over, answer, request)
	if refused := s.Refused(); answer.Code != http.StatusServiceUnavailable || refused[RefusedBusy] != 1 {
		t.Errorf("answered with %d, and refused are %v, expected 503 and one that is busy", answer.Code, refused)
	}
}

func TestServerLetsInWhoKnowsTheSecret(t *testing.T) {
	block, sentBlock := made(t, prague)
	l := &listener{status: valid(block.Hash())}
	api := New(Config{Chain: l, Rules: rules()})
	s, stop := started(t, api.Methods())
	const call = `{"jsonrpc":"2.0","id":1,"method":"engine_exchangeCapabilities","params":[[]]}`
	for _, test := range []struct {
		name, authorization, body string
		status                    int
		want                      string
	}{
		{"no token", "", call, http.StatusUnauthorized, "missing token"},
		{"another secret", bearer(Secret{5}), call, http.StatusUnauthorized, "invalid signature"},
		{"an old token", "Bearer " + token(Secret{4}, head, `{"iat":1}`), call, http.StatusUnauthorized, "stale token"},
		{"right", bearer(Secret{4}), call, http.StatusOK, "engine_newPayloadV4"},
		{"a batch", bearer(Secret{4}), "[" + call + "," + call + "]", http.StatusOK, "},{"},
		{"no JSON", bearer(Secret{4}), "x", http.StatusOK, "-32700"},
		{"a body too large", bearer(Secret{4}), strings.Repeat(" ", bodyBytes+1), http.StatusRequestEntityTooLarge, "too large"},
	} {
		if status, answer := post(t, s, test.authorization, strings.NewReader(test.body)); status != test.status || !strings.Contains(answer, test.want) {
			t.Errorf("%s: %d %s", test.name, status, answer)
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", bearer(Secret{4}))
	if response, err := http.DefaultClient.Do(request); err != nil || response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: %v, %v", response, err)
	}

	for why, want := range map[Refusal]uint64{RefusedToken: 3, RefusedBody: 1, RefusedMethod: 1, RefusedBusy: 0, RefusedMemory: 0} {
		if got := s.Refused()[why]; got != want {
			t.Errorf("%d requests were refused because of their %s, expected %d", got, why, want)
		}
	}

	// go-ethereum's own client, with its own types.
	client, err := rpc.DialOptions(t.Context(), "http://"+s.Addr().String(), rpc.WithHTTPAuth(func(h http.Header) error {
		h.Set("Authorization", bearer(Secret{4}))
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	envelope := geth.BlockToExecutableData(block, nil, nil, nil)
	var status geth.PayloadStatusV1
	if err := client.CallContext(t.Context(), &status, "engine_newPayloadV4", envelope.ExecutionPayload, sentBlock.blobHashes, sentBlock.beaconRoot,
		[]hexutil.Bytes{{0, 1}, {1, 2}}); err != nil || status.Status != geth.VALID || *status.LatestValidHash != block.Hash() {
		t.Errorf("a payload: %+v, %v", status, err)
	}
	var response geth.ForkChoiceResponse
	if err := client.CallContext(t.Context(), &response, "engine_forkchoiceUpdatedV3", geth.ForkchoiceStateV1{HeadBlockHash: block.Hash()}, nil); err != nil ||
		response.PayloadStatus.Status != geth.VALID || response.PayloadID != nil {
		t.Errorf("a forkchoice: %+v, %v", response, err)
	}
	attributes := geth.PayloadAttributes{Timestamp: prague + 1, BeaconRoot: &common.Hash{}}
	err = client.CallContext(t.Context(), &response, "engine_forkchoiceUpdatedV3", geth.ForkchoiceStateV1{HeadBlockHash: block.Hash()}, &attributes)
	var refused rpc.Error
	if !errors.As(err, &refused) || refused.ErrorCode() != geth.InvalidPayloadAttributes.ErrorCode() {
		t.Errorf("attributes: %v", err)
	}
	api.count(api.answers.Payloads, InvalidBlockHash)
	if got := api.Answers(); got.Payloads[Valid] != 1 || got.Payloads[Invalid] != 1 || got.Payloads[Syncing] != 0 || got.Forkchoices[Valid] != 2 {
		t.Errorf("the answers are counted as %v, expected a valid and an invalid payload, and two valid heads", got)
	}
	if len(l.choices) != 2 {
		t.Errorf("the chain was told %v", l.choices)
	}
	http.DefaultClient.CloseIdleConnections()
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// A call goes on when whoever made it has gone, and the server ends only after it.
func TestCallsOutliveTheirConnection(t *testing.T) {
	begun, left := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	s, stop := started(t, jsonrpc.Handlers{"slow": func(ctx context.Context, _, out []byte) ([]byte, error) {
		close(begun)
		<-left
		ended <- ctx.Err()
		return append(out, "true"...), nil
	}})
	ctx, leave := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.Addr().String(), bytes.NewReader([]byte(`{"jsonrpc":"2.0","id":1,"method":"slow"}`)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", bearer(Secret{4}))
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if _, err := http.DefaultClient.Do(request); err == nil {
			t.Error("it was answered")
		}
	}()
	<-begun
	leave()
	<-gone
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	select {
	case <-stopped:
		t.Fatal("the server ended before the call")
	case <-time.After(20 * time.Millisecond):
	}
	close(left)
	if err := <-ended; err != nil {
		t.Errorf("the call was ended: %v", err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// A consensus client may ask for more at once than other clients. Prysm asks for 1,001 headers before the genesis of
// its chain, and geth's limits here are 2,000 calls and 250 MB.
func TestServerTakesLargeBatches(t *testing.T) {
	const long = 101_000_000 // more than the result of another client's call may have
	s, stop := started(t, jsonrpc.Handlers{
		"one": func(_ context.Context, _, out []byte) ([]byte, error) { return append(out, '1'), nil },
		"long": func(_ context.Context, _, out []byte) ([]byte, error) {
			return append(out, `"`+strings.Repeat("0", long)+`"`...), nil
		},
	})
	ask := func(methods ...string) string {
		var calls []string
		for i, method := range methods {
			calls = append(calls, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q}`, i, method))
		}
		status, answer := post(t, s, bearer(Secret{4}), strings.NewReader("["+strings.Join(calls, ",")+"]"))
		if status != http.StatusOK {
			t.Fatalf("status %d: %.200s", status, answer)
		}
		return answer
	}
	if got := strings.Count(ask(slices.Repeat([]string{"one"}, 2000)...), `"result":1`); got != 2000 {
		t.Errorf("%d of 2000 calls were answered", got)
	}
	if got := ask(slices.Repeat([]string{"one"}, 2001)...); !strings.Contains(got, "batch too large") {
		t.Errorf("2001 calls got %.200s, expected an error", got)
	}
	if got := ask("long"); len(got) < long {
		t.Errorf("a result of %d bytes got %.200s", long, got)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
