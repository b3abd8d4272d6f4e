package proven

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"testing/synctest"

	"ashlar/evm"
	"ashlar/internal/await"
	"ashlar/limit"
	"ashlar/upstream"
)

// slowGuesses are nodes that never finish a guess.
type slowGuesses struct{ *testNodes }

func (n slowGuesses) AskAll(ctx context.Context, calls []upstream.Call) []upstream.Answer {
	answers := n.testNodes.AskAll(ctx, calls)
	for i := range calls {
		if calls[i].Method == "eth_createAccessList" {
			<-ctx.Done()
			answers[i].Err = ctx.Err()
		}
	}
	return answers
}

// A call is not held up by a node that guesses for ever: what is not guessed is read later.
func TestSlowGuess(t *testing.T) {
	c := newTestChain(t, 2)
	synctest.Test(t, func(t *testing.T) {
		nodes := newTestNodes(c.node("a"))
		f := follow(t, nodes, 1)
		f.remote.nodes = slowGuesses{nodes}
		state := f.state(c.blocks[2])
		ctx, cancel := context.WithTimeout(t.Context(), 2*guessTime)
		defer cancel()
		state.PrefetchCalls(ctx, []Call{{From: sender, To: &counter}})
		nodes.count("eth_getProof")
		if found, err := state.Account(ctx, evm.AccountKey(state, counter)); err != nil || found == nil || nodes.count("eth_getProof") != 0 {
			t.Errorf("the callee was not fetched ahead: %v, %v", found, err)
		}
	})
}

// A guess has gas for its list besides that of the call.
func TestGuessHasGasForItsList(t *testing.T) {
	for _, e := range []struct {
		gas  uint64
		want any
	}{{26_000, "0x98fc10"}, {math.MaxUint64 - listGas, "0xffffffffffffffff"}, {math.MaxUint64 - listGas + 1, nil}} {
		encoded, err := json.Marshal(Call{Gas: &e.gas})
		var fields map[string]any
		if err := json.Unmarshal(encoded, &fields); err != nil {
			t.Fatal(err)
		}
		if err != nil || fields["gas"] != e.want {
			t.Errorf("gas %d: %s, %v, want %v", e.gas, encoded, err, e.want)
		}
	}
}

// holder is an account that holds memory.
type holder struct {
	budget  *limit.Budget
	holding limit.Holding
}

// Lend implements [limit.Lender].
func (h *holder) Lend() limit.Lease { return limit.Lease{Budget: h.budget, Caller: &h.holding} }

// witnesses are nodes whose witnesses are long.
type witnesses struct{ *testNodes }

func (n witnesses) Ask(ctx context.Context, c upstream.Call) (upstream.Answer, error) {
	if c.Method != "debug_executionWitness" {
		return n.testNodes.Ask(ctx, c)
	}
	result := json.RawMessage(`{"state":["0x` + strings.Repeat("00", 1<<20) + `"]}`)
	return upstream.Answer{Result: result, Node: "a"}, c.Check(result)
}

// The account that asks holds a witness until its context ends. Without memory for it, there is none.
func TestMemoryOfWitnesses(t *testing.T) {
	c := newTestChain(t, 3)
	nodes := newTestNodes(c.node("a"))
	f := follow(t, nodes, 1)
	f.remote.nodes = witnesses{nodes}
	for memory, taken := range map[int64]bool{64 << 20: true, 1 << 20: false} {
		who := &holder{budget: limit.NewBudget(memory)}
		ctx, end := context.WithCancel(context.WithValue(t.Context(), limit.LenderKey{}, who))
		state := f.state(c.blocks[2])
		if got := state.takeWitness(ctx, c.blocks[3]); got != taken || (len(state.given) > 0) != taken || (who.budget.Held() >= 1<<20) != taken {
			t.Errorf("with %d bytes: a witness: %t, %d nodes, %d bytes held", memory, got, len(state.given), who.budget.Held())
		}
		end()
		await.Until(t, "the memory to be free", func() bool { return who.budget.Held() == 0 })
	}
}
