package engine

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"ashlar/internal/await"
	"ashlar/jsonrpc"
	"ashlar/limit"
)

// longBodies is a chain with bodies of one long transaction.
type longBodies struct {
	listener
	bytes, asked int
}

func (l *longBodies) BodyAt(context.Context, uint64) (*Body, bool, error) {
	l.asked++
	return &Body{Transactions: [][]byte{make([]byte, l.bytes)}}, false, nil
}

// TestAnswersAreBounded: while an answer waits, others get an error if there is no memory for them, but small ones
// are made. When the answer was sent, there is memory again.
func TestAnswersAreBounded(t *testing.T) {
	const memory, long = 4 << 20, 3 << 19 // one request holds half, two a third each
	waits, leave := make(chan struct{}), make(chan struct{})
	calls, bodies := 0, &longBodies{bytes: long / 20} // twice as many characters
	s, stop := started(t, jsonrpc.Handlers{
		"long": func(_ context.Context, _, out []byte) ([]byte, error) {
			return append(out, `"`+strings.Repeat("0", long)+`"`...), nil
		},
		"wait": func(_ context.Context, _, out []byte) ([]byte, error) {
			close(waits)
			<-leave
			return append(out, "true"...), nil
		},
		"small": func(_ context.Context, _, out []byte) ([]byte, error) {
			calls++
			return append(out, "true"...), nil
		},
		"bodies": New(Config{Chain: bodies}).bodiesByRange(false),
	})
	s.memory.SetMax(memory)
	ask := func(calls ...string) string {
		for i, call := range calls {
			calls[i] = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, i, call)
		}
		status, answer := post(t, s, bearer(Secret{4}), strings.NewReader("["+strings.Join(calls, ",")+"]"))
		if status != http.StatusOK {
			t.Errorf("status %d: %.200s", status, answer)
		}
		return answer
	}
	const callLong, callSmall, callBodies, callMany = `"method":"long"`, `"method":"small"`, `"method":"bodies","params":["0x1","0xa"]`, `"method":"bodies","params":["0x1","0x400"]`
	first := make(chan string)
	go func() { first <- ask(callLong, `"method":"wait"`) }()
	await.Receive(t, "the first request", waits)
	const refused = `"error":{"code":-32005,"message":"Server busy","data":{"err":"answers of other requests hold the memory: try again later"}}`
	for _, call := range []string{callLong, callBodies, callMany} {
		if got := ask(callSmall, call, callSmall); strings.Count(got, refused) != 2 || strings.Count(got, "true") != 1 {
			t.Errorf("%s beside a request with a long answer got %.400s, want a refusal of it and of what follows", call, got)
		}
	}
	if refused := s.Refused()[RefusedMemory]; refused != 3 || s.Held() < long {
		t.Errorf("%d requests were refused for lack of memory, %d bytes are held, expected 3 and at least %d", refused, s.Held(), long)
	}
	if bodies.asked > 30 { // of 1,034
		t.Errorf("%d bodies were read for two answers that there is no memory for", bodies.asked)
	}
	if got := ask(callSmall, callSmall); calls != 5 || strings.Contains(got, "error") {
		t.Errorf("small answers beside a long one: %d calls, %.400s, want 5 without errors", calls, got)
	}
	close(leave)
	if got := await.Receive(t, "the first answer", first); len(got) < long {
		t.Errorf("the first request got %.200s", got)
	}
	await.Until(t, "the memory of the first answer", func() bool { return s.memory.Held() == 0 })
	for _, call := range []string{callLong, callBodies} {
		if got := ask(call); len(got) < long {
			t.Errorf("%s alone got %.200s", call, got)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestLargestAnswerFits: a request alone may hold what its limits allow.
func TestLargestAnswerFits(t *testing.T) {
	budget := limit.NewBudget(answersBytes)
	alone := &held{lease: limit.Lease{Budget: budget, Caller: new(limit.Holding)}}
	if err := alone.Hold(batchBytes + bodiesBytes + 1); err != nil {
		t.Error(err)
	}
	beside := &held{lease: limit.Lease{Budget: budget, Caller: new(limit.Holding)}}
	if err := beside.Hold(32 << 20); err != nil {
		t.Errorf("a second one: %v", err)
	}
	if err := beside.Hold(batchBytes + bodiesBytes); err == nil {
		t.Error("two requests hold all that each may hold alone")
	}
}
