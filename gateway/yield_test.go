package gateway_test

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ashlar/account"
	"ashlar/gateway"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/jsonrpctest"
	"ashlar/limit"
)

// yielding serves heavy calls that wait for a node, and then work for a second, in a bubble of synctest.
type yielding struct {
	t       *testing.T
	handler *gateway.Handler
	node    chan struct{} // closed when the node answers
	asked   atomic.Int32  // calls that have asked the node
	working atomic.Int32
	most    atomic.Int32 // that worked at once
	asking  sync.WaitGroup

	mu       sync.Mutex
	statuses map[int]int // guarded by mu: answers by status
}

func newYielding(t *testing.T, limits gateway.Limits) *yielding {
	t.Helper()
	y := &yielding{t: t, node: make(chan struct{}), statuses: make(map[int]int)}
	ask := func(ctx context.Context) error {
		y.asked.Add(1)
		select {
		case <-y.node:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	heavy := func(name string, wait func(context.Context) error) jsonrpc.Method {
		method := jsonrpctest.Method(name, func(ctx context.Context, _, out []byte) ([]byte, error) {
			if wait != nil {
				if err := limit.Yield(ctx, func() error { return wait(ctx) }); err != nil {
					return out, err
				}
			}
			y.work()
			return append(out, "true"...), nil
		})
		method.Cost = jsonrpc.Heavy(1)
		return method
	}
	n := network("alpha")
	waiting := func(name string, cost jsonrpc.Cost) jsonrpc.Method {
		method := jsonrpctest.Method(name, func(ctx context.Context, _, out []byte) ([]byte, error) {
			err := limit.Yield(ctx, func() error { return ask(ctx) })
			if err == nil {
				err = limit.Work(ctx, func() error { y.work(); return nil })
			}
			return append(out, "true"...), err
		})
		method.Cost = cost
		return method
	}
	n.Methods = jsonrpctest.With(n.Methods, waiting("test_wait", jsonrpc.Waiting(1)))
	n.Methods = jsonrpctest.With(n.Methods, waiting("test_recompute", jsonrpc.Recomputing(1)))
	n.Methods = jsonrpctest.With(n.Methods, heavy("test_yield", ask))
	n.Methods = jsonrpctest.With(n.Methods, heavy("test_work", nil))
	n.Methods = jsonrpctest.With(n.Methods, heavy("test_broken", func(context.Context) error { panic("a bug") }))
	var err error
	config := gateway.Config{Keys: oneKey{}, Networks: []gateway.Network{n}, Limits: limits, Log: slog.New(slog.DiscardHandler)}
	if y.handler, err = gateway.New(config); err != nil {
		t.Fatal(err)
	}
	return y
}

// work keeps a processor busy for a second.
func (y *yielding) work() {
	now := y.working.Add(1)
	for most := y.most.Load(); now > most && !y.most.CompareAndSwap(most, now); most = y.most.Load() {
	}
	time.Sleep(time.Second)
	y.working.Add(-1)
}

// ask sends a request with a key of its number, and returns once nothing moves any more.
func (y *yielding) ask(ctx context.Context, key byte, request string) {
	y.asking.Go(func() {
		c := gateway.Call{Network: "alpha", Key: &account.Key{ID: account.KeyID{key}}, Client: netip.MustParseAddr("192.0.2.1"), Request: []byte(request)}
		y.handler.Do(ctx, c, func(r gateway.Reply) {
			y.mu.Lock()
			defer y.mu.Unlock()
			y.statuses[r.Status]++
		})
	})
	synctest.Wait()
}

// taken is how many calls have and await a slot.
type taken struct{ light, heavy, lightWaiting, heavyWaiting int }

func (y *yielding) expect(when string, want taken) {
	y.t.Helper()
	stats := y.handler.Stats()
	if got := (taken{stats.LightRunning, stats.HeavyRunning, stats.LightWaiting, stats.HeavyWaiting}); got != want {
		y.t.Errorf("%s: %+v, expected %+v", when, got, want)
	}
}

// end waits for all answers, of which some may be refused.
func (y *yielding) end(answered, refused int) {
	y.t.Helper()
	y.asking.Wait()
	y.expect("in the end", taken{})
	want := map[int]int{http.StatusOK: answered}
	if refused > 0 {
		want[http.StatusServiceUnavailable] = refused
	}
	if !maps.Equal(y.statuses, want) {
		y.t.Errorf("answers by status: %v, expected %v", y.statuses, want)
	}
}

// Heavy calls that wait for a node keep no heavy slot, and all ask it at once. No more of them than there are heavy
// slots work at once when it has answered.
func TestCallsYieldTheirSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 12
		y := newYielding(t, gateway.Limits{Heavy: 1, Light: 64})
		for range calls {
			y.ask(t.Context(), 1, call("test_yield"))
		}
		if asked := y.asked.Load(); asked != calls {
			t.Errorf("%d calls have asked the node, expected %d", asked, calls)
		}
		y.expect("while the node is silent", taken{light: calls})
		y.ask(t.Context(), 2, call("test_work"))
		y.expect("beside a call of another account", taken{light: calls, heavy: 1})
		y.ask(t.Context(), 1, call("test_name"))
		close(y.node)
		y.end(calls+2, 0)
		if most := y.most.Load(); most != 1 {
			t.Errorf("%d calls worked at once, expected 1", most)
		}
	})
}

// A call that finds no free light slot keeps its heavy one. The calls of one account that wait leave it light slots.
func TestCallsYieldWhereThereIsASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYielding(t, gateway.Limits{Heavy: 1, Light: 4})
		for range 5 {
			y.ask(t.Context(), 1, call("test_yield"))
		}
		y.expect("while the node is silent", taken{light: 2, heavy: 1, heavyWaiting: 2})
		y.ask(t.Context(), 1, call("test_name"))
		y.expect("after a light call", taken{light: 2, heavy: 1, heavyWaiting: 2})
		close(y.node)
		y.end(6, 0)
	})
}

// Calls that wait leave a quarter of the light slots to light calls, however many accounts they are of.
func TestCallsThatWaitLeaveLightSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYielding(t, gateway.Limits{Heavy: 1, Light: 8})
		for key := byte(1); key <= 8; key++ {
			y.ask(t.Context(), key, call("test_yield"))
		}
		y.expect("while the node is silent", taken{light: 6, heavy: 1, heavyWaiting: 1})
		y.ask(t.Context(), 9, call("test_name"))
		y.expect("after a light call", taken{light: 6, heavy: 1, heavyWaiting: 1})
		close(y.node)
		synctest.Wait()
		y.expect("while they wait for a heavy slot", taken{light: 6, heavy: 1, heavyWaiting: 7})
		y.ask(t.Context(), 9, call("test_name"))
		y.expect("after another light call", taken{light: 6, heavy: 1, heavyWaiting: 7})
		y.end(10, 0)
	})
}

// A slot goes to the account with the fewest calls at work, and there to a call that has yielded its slot before a new
// one: so it does not hold for long what it has read.
func TestYieldedSlotsComeBackFairly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYielding(t, gateway.Limits{Heavy: 1, Light: 64})
		var order []byte
		for _, key := range []byte{1, 1, 2} {
			y.ask(t.Context(), key, call("test_yield"))
		}
		y.ask(t.Context(), 3, call("test_work")) // for a second
		for range 2 {
			y.ask(t.Context(), 1, call("test_work"))
		}
		close(y.node)
		synctest.Wait()
		y.expect("while another account works", taken{light: 3, heavy: 1, heavyWaiting: 5})
		for range 5 {
			before := y.handler.Stats()
			time.Sleep(time.Second)
			synctest.Wait()
			if after := y.handler.Stats(); after.LightRunning < before.LightRunning {
				order = append(order, 'y')
			} else {
				order = append(order, 'n')
			}
		}
		if string(order) != "yyynn" {
			t.Errorf("calls go on in the order %s, expected those that have yielded first", order)
		}
		y.end(6, 0)
	})
}

// A client that gives up takes its call out of every slot and queue.
func TestYieldedCallsAreCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYielding(t, gateway.Limits{Heavy: 1, Light: 64})
		waits, leaveNode := context.WithCancel(t.Context())
		resumes, leaveQueue := context.WithCancel(t.Context())
		y.ask(waits, 1, call("test_yield"))
		y.ask(resumes, 1, call("test_yield"))
		y.expect("while the node is silent", taken{light: 2})
		leaveNode()
		synctest.Wait()
		y.expect("after the first client has left", taken{light: 1})
		y.ask(t.Context(), 2, call("test_work"))
		close(y.node)
		synctest.Wait()
		y.expect("while another account works", taken{light: 1, heavy: 1, heavyWaiting: 1})
		leaveQueue()
		synctest.Wait()
		y.expect("after the second client has left", taken{heavy: 1})
		y.end(3, 0)
	})
}

// A call that finds the queue full when the node has answered is refused like one that finds it full at first.
func TestYieldedCallsFindTheQueueFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYielding(t, gateway.Limits{Heavy: 1, Light: 64, Waiting: 1})
		for range 3 {
			y.ask(t.Context(), 1, call("test_yield"))
		}
		y.ask(t.Context(), 2, call("test_work"))
		close(y.node)
		y.end(2, 2)
		if refused := y.handler.Stats().Refused[gateway.RefusedBusy]; refused != 2 {
			t.Errorf("%d calls were refused, expected 2", refused)
		}
	})
}

// A call that panics while it has yielded its slot leaves nothing behind, and the calls of a batch have one slot
// together.
func TestYieldsOfBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYielding(t, gateway.Limits{Heavy: 1, Light: 64})
		y.ask(t.Context(), 1, call("test_broken"))
		y.expect("after a panic", taken{})
		y.ask(t.Context(), 1, "["+call("test_broken")+","+call("test_yield")+","+call("test_name")+","+call("test_yield")+"]")
		y.expect("while the node is silent", taken{light: 1})
		if asked := y.asked.Load(); asked != 1 {
			t.Errorf("%d calls of the batch have asked the node, expected 1", asked)
		}
		close(y.node)
		y.end(2, 0)
		if asked := y.asked.Load(); asked != 2 {
			t.Errorf("%d calls of the batch have asked the node, expected 2", asked)
		}
	})
}

// Calls whose answers are recomputed have no heavy slot while they wait for nodes, however many they are, and one each while they
// recompute.
func TestCallsThatRecompute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYielding(t, gateway.Limits{Heavy: 1, Light: 8})
		for key := byte(1); key <= 10; key++ {
			y.ask(t.Context(), key, call("test_recompute"))
		}
		y.expect("while the node is silent", taken{light: 6, lightWaiting: 4})
		y.ask(t.Context(), 11, call("test_work"))
		y.expect("beside a heavy call", taken{light: 6, lightWaiting: 4, heavy: 1})
		close(y.node)
		synctest.Wait()
		y.expect("when the node has answered", taken{light: 6, lightWaiting: 4, heavy: 1, heavyWaiting: 6})
		y.end(11, 0)
		if most := y.most.Load(); most != 1 {
			t.Errorf("%d calls worked at once, expected 1", most)
		}
	})
}

// Calls that wait for nodes have a heavy slot for long parameters, and then wait like those with short ones.
func TestLongCallsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYielding(t, gateway.Limits{Heavy: 1, Light: 4})
		long := `{"jsonrpc":"2.0","id":1,"method":"test_wait","params":["` + strings.Repeat("x", jsonrpc.LongRequest) + `"]}`
		for key := byte(1); key <= 5; key++ {
			y.ask(t.Context(), key, long)
		}
		y.expect("while the node is silent", taken{light: 3, lightWaiting: 2})
		close(y.node)
		y.end(5, 0)
	})
}

// The steps of a stream yield their slots like calls.
func TestStepsYieldTheirSlots(t *testing.T) {
	begun, node := make(chan struct{}, 1), make(chan struct{})
	made := false
	step := func(ctx context.Context, _ string, out []byte) ([]byte, error) {
		if made {
			return out, io.EOF
		}
		made = true
		err := limit.Yield(ctx, func() error {
			begun <- struct{}{}
			<-node
			return nil
		})
		return append(out, "1"...), err
	}
	s := start(t, gateway.Config{Networks: []gateway.Network{stepping(step)}, Limits: gateway.Limits{Heavy: 1}}, 0)
	c := s.dial(nil)
	c.subscribed()
	<-begun
	if stats := s.handler.Stats(); stats.LightRunning != 1 || stats.HeavyRunning != 0 {
		t.Errorf("%d light and %d heavy slots are taken, expected 1 and 0", stats.LightRunning, stats.HeavyRunning)
	}
	close(node)
	if got := c.receive(); got != "1" {
		t.Errorf("message %s", got)
	}
}
