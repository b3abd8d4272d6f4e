package gateway_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ashlar/gateway"
	"ashlar/jsonrpc/jsonrpctest"

	"github.com/coder/websocket"
)

// inFlight starts a request whose method signals on begun when it runs.
func inFlight(s *running) (answer chan string) {
	answer = make(chan string, 1)
	go func() {
		response, err := client.Post(s.url+"/v3/"+goodKey, "application/json", strings.NewReader(call("test_held")))
		if err != nil {
			answer <- "no answer"
			return
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		answer <- string(body)
	}()
	return answer
}

func TestStopAnswersWhatIsUnderWay(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	n := network("alpha")
	n.Methods = jsonrpctest.With(n.Methods, jsonrpctest.Method("test_held", func(_ context.Context, _, out []byte) ([]byte, error) {
		close(begun)
		<-release
		return append(out, `"late"`...), nil
	}))
	s := start(t, gateway.Config{Networks: []gateway.Network{n}}, time.Minute)
	answer := inFlight(s)
	<-begun
	stopped := make(chan error, 1)
	go func() { stopped <- s.stop() }()
	for { // until new connections are refused
		if response, err := http.Get(s.url + "/healthz"); err != nil {
			break
		} else if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
	}
	select {
	case err := <-stopped:
		t.Fatalf("stopped with a request under way: %v", err)
	default:
	}
	close(release)
	if got := <-answer; got != `{"jsonrpc":"2.0","id":1,"result":"late"}` {
		t.Errorf("got %s", got)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestStopCutsOffAfterTheDrainTime(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	n := network("alpha")
	n.Methods = jsonrpctest.With(n.Methods, jsonrpctest.Method("test_held", func(ctx context.Context, _, out []byte) ([]byte, error) {
		close(begun)
		<-ctx.Done()
		time.Sleep(20 * time.Millisecond)
		close(ended)
		return out, ctx.Err()
	}))
	s := start(t, gateway.Config{Networks: []gateway.Network{n}, Limits: gateway.Limits{RequestTime: gateway.MaxRequestTime}}, 10*time.Millisecond)
	answer := inFlight(s)
	<-begun
	if err := s.stop(); err == nil || !strings.Contains(err.Error(), "still in progress after 10ms") {
		t.Errorf("error %v", err)
	}
	select {
	case <-ended:
	default:
		t.Error("Run has returned while a method was running")
	}
	<-answer
}

// A server stops as soon as everything is answered, also while a connection ends for another reason:
// its network is no longer served.
func TestStopWhileANetworkEnds(t *testing.T) { synctest.Test(t, testStopWhileANetworkEnds) }

func testStopWhileANetworkEnds(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	config := gateway.Config{Keys: oneKey{}, Networks: []gateway.Network{held(begun, release)}}
	handler, line, stop := startPipe(t, config)
	c := dialLine(t, line, websocket.CompressionDisabled)
	for range 2 {
		c.send(call("test_held"))
		<-begun
	}
	config.Networks = []gateway.Network{network("beta")}
	if err := handler.Reload(config); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // a sweep sees it
	synctest.Wait()         // until it waits for the two answers
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	answers := make(chan int, 1)
	go func() { answers <- c.drained(websocket.StatusGoingAway, "the network is no longer served") }()
	for range 2 {
		synctest.Wait() // until all wait for the next answer
		release <- struct{}{}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := <-answers; n != 2 {
		t.Errorf("%d answers, expected 2", n)
	}
}
