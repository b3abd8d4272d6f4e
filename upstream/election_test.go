package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ashlar/chain"
	"ashlar/internal/await"

	"github.com/ethereum/go-ethereum/common"
)

// voters are nodes of an election. Those with a channel in held wait for it before they answer.
type voters struct {
	mu    sync.Mutex
	held  map[string]chan struct{}
	fail  map[string]bool
	able  []string // the others cannot be asked
	asked []string // "NODE NUMBER", in order
}

func (v *voters) election(patience time.Duration) *Election {
	return NewElection(ElectionConfig{
		Patience: patience,
		Question: func(number uint64) Call { return Call{Params: fmt.Appendf(nil, "%d", number)} },
		Hash: func(answer json.RawMessage) (hash common.Hash, err error) {
			return hash, json.Unmarshal(answer, &hash)
		},
		AskEach: v.askEach,
	})
}

func (v *voters) askEach(ctx context.Context, c Call, nodes []string) <-chan Answer {
	v.mu.Lock()
	defer v.mu.Unlock()
	answers := make(chan Answer, len(nodes))
	var asking sync.WaitGroup
	for _, node := range nodes {
		if !slices.Contains(v.able, node) {
			continue
		}
		v.asked = append(v.asked, node+" "+string(c.Params))
		held, answer := v.held[node], Answer{Node: node}
		var number uint64
		_ = json.Unmarshal(c.Params, &number)
		if answer.Result, _ = json.Marshal(hashAt(number)); v.fail[node] {
			answer.Result, answer.Err = nil, errors.New("it fails")
		}
		asking.Go(func() {
			if held != nil {
				<-held
			}
			answers <- answer
		})
	}
	go func() {
		asking.Wait()
		close(answers)
	}()
	return answers
}

func hashAt(number uint64) common.Hash { return common.Hash{1, byte(number)} }

func at(name string, number uint64) Status {
	return Status{Name: name, Head: Head{Ref: chain.Ref{Number: number, Hash: hashAt(number)}}}
}

// TestElectionWithSlowNode: while a node does not answer, it is asked nothing more, and the others agree on what they can. No lower
// head than ours is elected.
func TestElectionWithSlowNode(t *testing.T) {
	v := &voters{held: map[string]chan struct{}{"slow": make(chan struct{})}, able: []string{"slow", "a", "b"}}
	e := v.election(10 * time.Millisecond)
	elected := func(ours, want uint64, nodes ...Status) {
		t.Helper()
		await.Until(t, fmt.Sprintf("the election of block %d", want), func() bool {
			head, votes, open := e.Elect(t.Context(), nodes, 2, ours)
			if (votes == nil) != open || votes != nil && head.Number != want {
				t.Fatalf("elected is %s with the votes %v, open %t; expected block %d", head, votes, open, want)
			}
			return !open
		})
	}
	elected(4, 6, at("slow", 9), at("a", 8), at("b", 6))
	if head, _, open := e.Elect(t.Context(), []Status{at("slow", 9), at("a", 8), at("b", 6)}, 2, 6); head != (chain.Ref{}) || !open {
		t.Errorf("elected is %s, open %t, while the head is not higher than ours; expected none yet", head, open)
	}
	elected(6, 7, at("slow", 10), at("a", 8), at("b", 7))
	if asked := slices.DeleteFunc(slices.Clone(v.asked), func(q string) bool { return !strings.HasPrefix(q, "slow") }); len(asked) != 1 {
		t.Errorf("the slow node was asked for %v, expected one question", asked)
	}
	close(v.held["slow"])
	await.Until(t, "the answer of the slow node", func() bool {
		head, _, _ := e.Elect(t.Context(), []Status{at("slow", 12), at("a", 9), at("b", 7)}, 2, 7)
		return head.Number >= 8
	})
}

// TestElectionWithoutAnswers: nodes that fail, or cannot be asked, leave nothing open. They are asked again after a while.
func TestElectionWithoutAnswers(t *testing.T) {
	v := &voters{fail: map[string]bool{"a": true}, able: []string{"a"}}
	e := v.election(time.Hour)
	nodes := []Status{at("a", 9), at("b", 9), at("c", 8)}
	for range 2 {
		if head, _, open := e.Elect(t.Context(), nodes, 3, 0); head != (chain.Ref{}) || open {
			t.Errorf("elected is %s, open %t, expected none", head, open)
		}
	}
	if len(v.asked) != 1 {
		t.Errorf("asked are %v, expected one question", v.asked)
	}
	v.mu.Lock()
	v.fail, v.able = nil, []string{"a", "b"}
	v.mu.Unlock()
	await.Until(t, "the nodes to be asked again", func() bool {
		head, _, _ := e.Elect(t.Context(), nodes, 3, 0)
		return head == chain.Ref{Number: 8, Hash: hashAt(8)}
	})
}
