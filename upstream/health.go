package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"ashlar/chain"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// Head is what a node says about its chain.
type Head struct {
	chain.Ref
	Safe, Finalized chain.Ref // zero if the node does not provide them
}

const (
	finalEvery    = 5                // polls, between questions about what is safe and final
	identifyEvery = 60               // polls, between questions about the chain ID: another node may be behind the URL
	pollTime      = 5 * time.Second  // for an answer about the head
	longPause     = 30 * time.Second // between polls of a node that does not answer
	settleTime    = 3 * time.Second  // in which a node that is earlier in the list may say what the chain is
)

// watch polls a node until ctx is done.
func (p *Pool) watch(ctx context.Context, n *node) {
	pause, wasUsable, logged := p.config.Poll, false, false
	for poll := 0; ; poll++ {
		err := p.poll(ctx, n, poll)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			pause = p.config.Poll
		} else {
			pause = min(2*pause, max(longPause, p.config.Poll))
			poll = -1 // begin with its identity
		}
		chainID := p.ChainID()
		first := !logged && (err != nil || chainID != 0) // a node that never was usable is logged, too
		if s := n.status(chainID, time.Now()); s.Usable != wasUsable || first {
			logged = true
			if wasUsable = s.Usable; wasUsable {
				n.log.Info("the node is used", "head", s.Head.Number)
			} else {
				n.log.Warn("the node is not used", "because", s.Why)
			}
		}
		p.notify()
		timer := time.NewTimer(pause + rand.N(pause/4+1))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// questions are what a poll asks besides the head.
type questions struct {
	identity bool // which chain the node is on, and whether it takes block hashes for states
	final    bool // which blocks are safe and final
}

// questionsOf returns the questions of a poll. The first one, also after a failure, is number 0
// and asks everything.
func questionsOf(poll int) questions {
	return questions{identity: poll%identifyEvery == 0, final: poll%finalEvery == 0}
}

// poll asks a node about its head and, now and then, further questions.
func (p *Pool) poll(ctx context.Context, n *node, poll int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, min(p.config.Time, pollTime), errSlow)
	defer cancel()
	began, asked := time.Now(), questionsOf(poll)
	if wait, ok := n.take(began, n.pollUnits(asked)); !ok {
		n.pollSpent(began.Add(wait))
		return nil // the remaining credits are for clients
	}
	err := n.poll(ctx, asked)
	if err != nil {
		n.pollFailed(err, began)
		return err
	}
	p.choose(n.polled(time.Since(began)), n)
	return nil
}

// pollSpent records that the node was not asked for its head, because it has no units until then.
func (n *node) pollSpent(until time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.spent = until
}

// pollFailed records that the node did not say what its head is.
func (n *node) pollFailed(err error, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.why = n.shown(err)
	if _, throttle := faultOf("", nil, err); throttle > 0 {
		n.resting = now.Add(min(throttle, longBreak))
	}
	n.count.failures++
	n.failures++
	if refuses(err) { // a poll has nothing of a client in it
		n.failures = max(n.failures, breakAfter)
	}
}

// polled records that the node did, and returns its chain.
func (n *node) polled(took time.Duration) (chainID uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failures, n.latency, n.spent, n.heard = 0, took, time.Time{}, time.Now()
	return n.chainID
}

// choose makes the chain of a node that of the pool, if that is not known. A node that is
// earlier in the list is waited for a little, unless it has failed.
func (p *Pool) choose(chainID uint64, n *node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.chainID == 0 && (time.Since(p.started) > settleTime || p.allFailedBefore(n)) {
		p.chainID = chainID
	}
}

// allFailedBefore reports whether all nodes before one in the list have failed.
func (p *Pool) allFailedBefore(n *node) bool {
	for _, earlier := range p.nodes {
		if earlier == n {
			return true
		}
		earlier.mu.Lock()
		failed := earlier.failures > 0
		earlier.mu.Unlock()
		if !failed {
			return false
		}
	}
	return true
}

// pollUnits returns the units of the calls that poll makes.
func (n *node) pollUnits(asked questions) int {
	block := n.unitsOf("eth_getBlockByNumber")
	units := block
	if asked.final {
		units += 2 * block
	}
	if asked.identity {
		units += n.unitsOf("eth_chainId") + n.unitsOf("eth_getBalance")
	}
	return units
}

// poll asks for the head, and what else is asked.
func (n *node) poll(ctx context.Context, asked questions) error {
	if asked.identity {
		if err := n.identify(ctx); err != nil {
			return err
		}
	}
	head, err := n.block(ctx, "latest")
	if err != nil {
		return err
	}
	n.mu.Lock()
	head.Safe, head.Finalized = n.head.Safe, n.head.Finalized
	n.mu.Unlock()
	if asked.final {
		// A chain without finality has no such blocks, and nodes say that in many ways.
		if safe, err := n.block(ctx, "safe"); err == nil {
			head.Safe = safe.Ref
		}
		if final, err := n.block(ctx, "finalized"); err == nil {
			head.Finalized = final.Ref
		}
	}
	n.mu.Lock()
	n.head = head
	n.mu.Unlock()
	if asked.identity {
		n.probeHashes(ctx, head)
	}
	return nil
}

// identify asks for the chain ID.
func (n *node) identify(ctx context.Context) error {
	answer, err := n.to.call(ctx, "eth_chainId", nil)
	if err != nil {
		return fmt.Errorf("eth_chainId: %w", err)
	}
	var id hexutil.Uint64
	if err := json.Unmarshal(answer, &id); err != nil || id == 0 {
		return fmt.Errorf("eth_chainId: invalid answer %.40s", answer)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.known, n.chainID, n.noBatch = true, uint64(id), false
	return nil
}

// probeHashes finds out whether the node takes a block hash for a state, as in EIP-1898.
func (n *node) probeHashes(ctx context.Context, head Head) {
	params := fmt.Appendf(nil, `["0x0000000000000000000000000000000000000000",{"blockHash":"%#x"}]`, head.Hash)
	_, err := n.to.call(ctx, "eth_getBalance", params)
	n.mu.Lock()
	defer n.mu.Unlock()
	var refused *NodeError
	n.byHash = err == nil || errors.As(err, &refused) && LacksBlock(refused) // it was wound back since it named the block
}

// block asks for the number and hash of the block with a tag.
func (n *node) block(ctx context.Context, tag string) (h Head, err error) {
	answer, err := n.to.call(ctx, "eth_getBlockByNumber", fmt.Appendf(nil, `[%q,false]`, tag))
	if err != nil {
		return h, fmt.Errorf("eth_getBlockByNumber of %s: %w", tag, err)
	}
	h, err = decodeHead(answer)
	if err != nil {
		return h, fmt.Errorf("eth_getBlockByNumber of %s: %w", tag, err)
	}
	return h, nil
}

func decodeHead(answer json.RawMessage) (Head, error) {
	var block *struct {
		Number *hexutil.Uint64 `json:"number"`
		Hash   *common.Hash    `json:"hash"`
		Parent *common.Hash    `json:"parentHash"`
	}
	if err := json.Unmarshal(answer, &block); err != nil {
		return Head{}, err
	}
	if block == nil || block.Number == nil || block.Hash == nil || block.Parent == nil {
		return Head{}, errors.New("the block has no number, hash or parent")
	}
	return Head{Ref: chain.Ref{Number: uint64(*block.Number), Hash: *block.Hash}}, nil
}
