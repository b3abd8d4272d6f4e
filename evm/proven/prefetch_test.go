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

	"github.com/ethereum/go-ethereum/core/types"
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

// A witness is fetched without a heavy slot, and decoded once the request has one again.
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

// someWitnesses returns nodes, each with its witness.
func someWitnesses(c *testChain, witnesses ...any) *testNodes {
	var nodes []*testNode
	for i, witness := range witnesses {
		one := c.node(string(rune('a' + i)))
		one.witness = witness
		nodes = append(nodes, one)
	}
	return newTestNodes(nodes...)
}

// prefetchAgain prefetches a block as long as witnesses are invalid.
func (s *State) prefetchAgain(t *testing.T, block *types.Block) (rounds int) {
	for rounds = 1; !s.PrefetchBlock(t.Context(), block)(); rounds++ {
		if rounds == 10 {
			t.Fatal("the nodes are asked again and again")
		}
	}
	return rounds
}

// A node is set aside for a witness that cannot be decoded, and another one is asked. After two of them, or if no other node has a
// witness, a node guesses what the block reads.
func TestInvalidWitness(t *testing.T) {
	c := newTestChain(t, 3)
	invalid, valid := map[string]any{"state": map[string]any{}}, map[string]any{"state": []string{"0x00"}}
	for _, test := range []struct {
		name           string
		witnesses      []any
		rounds, asked  int
		given, guesses int
		usable         []bool
	}{
		{"the second is valid", []any{invalid, valid}, 2, 2, 1, 0, []bool{false, true}},
		{"the second has none", []any{invalid, nil}, 2, 2, 0, 1, []bool{false, true}},
		{"two are invalid", []any{invalid, invalid, valid}, 3, 2, 0, 1, []bool{false, false, true}},
	} {
		nodes := someWitnesses(c, test.witnesses...)
		state := follow(t, nodes, 1).state(c.blocks[2])
		rounds := state.prefetchAgain(t, c.blocks[3])
		if asked, guesses := nodes.count(witnessMethod), nodes.count("debug_traceBlockByHash"); rounds != test.rounds || asked != test.asked ||
			guesses != test.guesses || len(state.given) != test.given {
			t.Errorf("%s: %d rounds, %d nodes asked for witnesses and %d for guesses, %d nodes of the trie; expected %d, %d, %d and %d",
				test.name, rounds, asked, guesses, len(state.given), test.rounds, test.asked, test.guesses, test.given)
		}
		for i, one := range nodes.Status() {
			if one.Usable != test.usable[i] {
				t.Errorf("%s: node %s is usable: %t", test.name, one.Name, one.Usable)
			}
		}
	}
}

// A node that answers null has no witness: it is not at fault, and the next node is asked.
func TestNullWitness(t *testing.T) {
	c := newTestChain(t, 3)
	nodes := someWitnesses(c, json.RawMessage("null"), map[string]any{"state": []string{"0x00"}})
	state := follow(t, nodes, 1).state(c.blocks[2])
	if rounds := state.prefetchAgain(t, c.blocks[3]); rounds != 1 || len(state.given) != 1 || !nodes.Status()[0].Usable {
		t.Errorf("%d rounds, %d nodes of the witness, the first node is usable: %t", rounds, len(state.given), nodes.Status()[0].Usable)
	}
}
