package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"ashlar/chain"

	"github.com/ethereum/go-ethereum/common"
)

const (
	// electionPatience is how long a node is waited for that has been asked which block it has.
	electionPatience = time.Second
	// answerTime is for how long an answer counts: longer than a slow node takes, so that two of them can agree.
	answerTime = 5 * time.Second
	// noAnswerTime is how long it takes until a node that has no such block, or failed, is asked again.
	noAnswerTime = time.Second
)

// ElectionConfig configures an election.
type ElectionConfig struct {
	// AskEach asks some nodes, as [Pool.AskEach] does.
	AskEach func(ctx context.Context, c Call, nodes []string) <-chan Answer
	// Question returns the call whose answer is the block with a number.
	Question func(number uint64) Call
	// Hash returns the hash of an answer. An error is no answer.
	Hash func(answer json.RawMessage) (common.Hash, error)
	// Patience is how long a node is waited for; 0 means a second.
	Patience time.Duration
}

// Election finds the head on which a quorum of nodes agrees. Nodes are asked which block they have where their chains can be
// compared. A slow node does not hold up the others: it is waited for a moment only, it is asked nothing more until it has answered,
// and its answer counts when it has come. Only one goroutine may use an election.
type Election struct {
	config  ElectionConfig
	changed chan struct{}  // signals a late answer
	asking  sync.WaitGroup // questions under way

	mu    sync.Mutex
	asked map[question]*vote // guarded by mu
}

// question is which block a node has at a number.
type question struct {
	node   string
	number uint64
}

// vote is the answer to a question.
type vote struct {
	asked time.Time
	come  time.Time   // zero: it has not
	hash  common.Hash // zero: the node has no block there, or failed
}

// NewElection returns an election.
func NewElection(config ElectionConfig) *Election {
	config.Patience = cmp.Or(config.Patience, electionPatience)
	return &Election{config: config, changed: make(chan struct{}, 1), asked: make(map[question]*vote)}
}

// Changed returns a channel on which an answer is signaled.
func (e *Election) Changed() <-chan struct{} { return e.changed }

// Wait waits for the questions under way, which end with their contexts.
func (e *Election) Wait() { e.asking.Wait() }

// Elect returns the highest block that a quorum of at least as many nodes has, and the hash that each of them has at its number. open
// says that there is none yet, but may be when a slow node answers. While that is so, no block is elected that is not above ours. The
// questions end with ctx.
func (e *Election) Elect(ctx context.Context, nodes []Status, quorum int, ours uint64) (head chain.Ref, votes []common.Hash, open bool) {
	numbers := e.numbers(nodes, quorum, ours)
	for i, number := range numbers {
		votes, missing := e.votes(ctx, nodes, number)
		if hash, ok := chain.Elected(votes, quorum); ok {
			return chain.Ref{Number: number, Hash: hash}, votes, false
		}
		open = open || missing
		if open && i+1 < len(numbers) && numbers[i+1] <= ours {
			break
		}
	}
	return chain.Ref{}, nil, open
}

// numbers returns where to compare the nodes' chains, highest first: at their heads, and where a late answer has come.
func (e *Election) numbers(nodes []Status, quorum int, ours uint64) []uint64 {
	heads := make([]uint64, len(nodes))
	for i, n := range nodes {
		heads[i] = n.Head.Number
	}
	numbers := chain.Heights(heads, quorum)
	most := numbers[0]
	e.mu.Lock()
	defer e.mu.Unlock()
	for q, v := range e.asked {
		if v.hash != (common.Hash{}) && v.counts(time.Now()) && q.number > ours && q.number < most {
			numbers = append(numbers, q.number)
		}
	}
	slices.Sort(numbers)
	slices.Reverse(numbers)
	return slices.Compact(numbers)
}

// votes returns which block each node has at a number, zero if it has none or does not say. missing says that a node may still say
// it.
func (e *Election) votes(ctx context.Context, nodes []Status, number uint64) (votes []common.Hash, missing bool) {
	votes = make([]common.Hash, len(nodes))
	var above []string
	for i, n := range nodes {
		switch {
		case n.Head.Number == number:
			votes[i] = n.Head.Hash
		case n.Head.Number > number:
			above = append(above, n.Name)
		}
	}
	hashes, missing := e.Hashes(ctx, number, above)
	for i, n := range nodes {
		if hash, ok := hashes[n.Name]; ok {
			votes[i] = hash
		}
	}
	return votes, missing
}

// Hashes returns the hashes that nodes have at a number. open says that a node may still answer.
func (e *Election) Hashes(ctx context.Context, number uint64, nodes []string) (hashes map[string]common.Hash, open bool) {
	e.ask(ctx, number, nodes)
	for {
		left, open := e.left(number, nodes)
		if left <= 0 || ctx.Err() != nil {
			return e.known(number, nodes), open
		}
		select {
		case <-e.changed:
		case <-time.After(left):
		case <-ctx.Done():
		}
	}
}

// ask asks those nodes that were not asked the same, and from which no other answer is overdue.
func (e *Election) ask(ctx context.Context, number uint64, nodes []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now, overdue := time.Now(), make(map[string]bool)
	for q, v := range e.asked {
		switch {
		case v.come.IsZero():
			overdue[q.node] = overdue[q.node] || now.Sub(v.asked) >= e.config.Patience
		case !v.counts(now):
			delete(e.asked, q)
		}
	}
	var asked []string
	for _, node := range nodes {
		q := question{node, number}
		if e.asked[q] == nil && !overdue[node] {
			e.asked[q] = &vote{asked: now}
			asked = append(asked, node)
		}
	}
	if len(asked) == 0 {
		return
	}
	answers := e.config.AskEach(ctx, e.config.Question(number), asked)
	e.asking.Go(func() {
		for answer := range answers {
			hash, err := common.Hash{}, answer.Err
			if err == nil {
				hash, err = e.config.Hash(answer.Result)
			}
			if err != nil {
				hash = common.Hash{}
			}
			e.answered(number, []string{answer.Node}, hash)
		}
		e.answered(number, asked, common.Hash{}) // those that could not be asked
	})
}

// answered records the answer of nodes that have not answered.
func (e *Election) answered(number uint64, nodes []string, hash common.Hash) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, node := range nodes {
		if v := e.asked[question{node, number}]; v != nil && v.come.IsZero() {
			v.come, v.hash = time.Now(), hash
		}
	}
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

// left returns for how long nodes are to be waited for. open says that one of them has not answered, or could not be asked because it
// has not answered another question.
func (e *Election) left(number uint64, nodes []string) (left time.Duration, open bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, node := range nodes {
		v := e.asked[question{node, number}]
		switch {
		case v == nil:
			open = true
		case v.come.IsZero():
			open = true
			left = max(left, e.config.Patience-time.Since(v.asked))
		}
	}
	return left, open
}

// known returns the hashes with which nodes have answered.
func (e *Election) known(number uint64, nodes []string) map[string]common.Hash {
	e.mu.Lock()
	defer e.mu.Unlock()
	hashes := make(map[string]common.Hash)
	for _, node := range nodes {
		if v := e.asked[question{node, number}]; v != nil && v.hash != (common.Hash{}) {
			hashes[node] = v.hash
		}
	}
	return hashes
}

// counts reports whether a vote has come and is not too old.
func (v *vote) counts(now time.Time) bool {
	long := answerTime
	if v.hash == (common.Hash{}) {
		long = noAnswerTime
	}
	return !v.come.IsZero() && now.Sub(v.come) < long
}
