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
	if c.Method != witnessMethod {
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
		witness, got := state.fetchWitness(ctx, c.blocks[3])
		if got != taken || (who.budget.Held() >= int64(len(witness.Result))) != taken {
			t.Errorf("with %d bytes: a witness: %t, %d bytes held", memory, got, who.budget.Held())
		}
		end()
		await.Until(t, "the memory to be free", func() bool { return who.budget.Held() == 0 })
	}
}

// A request that fetches a witness has yielded its heavy slot. What keeps a processor busy is left to when it has one again.
func TestWitnessIsDecodedLater(t *testing.T) {
	c := newTestChain(t, 3)
	nodes := newTestNodes(c.node("a"))
	f := follow(t, nodes, 1)
	f.remote.nodes = witnesses{nodes}
	state := f.state(c.blocks[2])
	take := state.PrefetchBlock(t.Context(), c.blocks[3])
	if len(state.given) != 0 {
		t.Error("the witness is decoded while it is fetched")
	}
	if take(); len(state.given) != 1 {
		t.Errorf("%d nodes of the witness are there, expected 1", len(state.given))
	}
}

// invalidWitnesses are nodes whose witnesses cannot be decoded.
type invalidWitnesses struct{ *testNodes }

func (n invalidWitnesses) Ask(ctx context.Context, c upstream.Call) (upstream.Answer, error) {
	if c.Method != witnessMethod {
		return n.testNodes.Ask(ctx, c)
	}
	result := json.RawMessage(`{"state":{}}`)
	return upstream.Answer{Result: result, Node: "a"}, c.Check(result)
}

// A node is set aside for a witness that cannot be decoded.
func TestInvalidWitness(t *testing.T) {
	c := newTestChain(t, 3)
	nodes := newTestNodes(c.node("a"))
	f := follow(t, nodes, 1)
	f.remote.nodes = invalidWitnesses{nodes}
	state := f.state(c.blocks[2])
	state.PrefetchBlock(t.Context(), c.blocks[3])()
	if aside := !nodes.Status()[0].Usable; len(state.given) != 0 || !aside {
		t.Errorf("%d nodes of the witness, the node is set aside: %t", len(state.given), aside)
	}
}
