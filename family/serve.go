package family

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ashlar/feed"
	"ashlar/history/retention"
	"ashlar/jsonrpc"
	"ashlar/upstream"
	"ashlar/worker"
)

// Service is what a network knows about the service that it answers in.
type Service struct {
	Name    string // the network's
	Data    string // the data directory
	Version Version
	Filters feed.Limits // of filters that clients poll
	// Observe returns an observer of calls of some methods that a listener of the
	// network's own answers, so that they are counted with the others.
	Observe func(methods []string) jsonrpc.Observer
	// CatchUp, if not nil, says how fast the network catches up; it returns nil at the head.
	CatchUp func() *CatchUp
	// Workers run what clients write; nil if there are none. All networks share them.
	Workers *worker.Pool
}

// Version is the version of the service.
type Version struct {
	Release string // such as 1.2.0
	Commit  string // the first four bytes of the revision, 0x and hexadecimal
	Client  string // what web3_clientVersion answers
}

// Status is what a network holds.
type Status struct {
	Name    string `json:"name"`
	Family  string `json:"family"`
	ChainID uint64 `json:"chainId,omitempty"` // if the family's chain IDs are numbers
	Chain   string `json:"chain,omitempty"`   // if they are texts
	First   uint64 `json:"first"`             // the first block that is stored
	// FirstState is the first block with state, where that is not First.
	FirstState uint64 `json:"firstState,omitempty"`
	// FirstProof is the first block whose state can be proven, where that is not the first with state.
	FirstProof uint64 `json:"firstProof,omitempty"`
	Head       uint64 `json:"head"`
	HeadHash   string `json:"headHash"`
	HeadTime   uint64 `json:"headTime"` // Unix seconds
	Settled    uint64 `json:"settled"`  // no reorganization can remove this block
	DiskBytes  int64  `json:"diskBytes"`

	Retention *Retention `json:"retention,omitempty"` // nil if all history is kept, or another process removes it

	UnknownFork *UnknownFork `json:"unknownFork,omitempty"` // the first fork of the chain's schedule that this version does not know

	Stopped  *Stopped `json:"stopped,omitempty"`  // why following, or making or settling a demo's blocks, is stopped; nil if it is not
	NotReady string   `json:"notReady,omitempty"` // why the network is not ready; left to the caller, as is Refused
	Refused  string   `json:"refused,omitempty"`  // why the network's store refuses writes
	CatchUp  *CatchUp `json:"catchUp,omitempty"`  // left to the caller; nil if the network is at the head

	Source    *SourceStatus    `json:"source,omitempty"`    // of a network that follows nodes now
	Consensus *ConsensusStatus `json:"consensus,omitempty"` // of a network that a consensus client drives now

	// LightClient is of a network whose head a light client names. Consensus is then not nil,
	// and says when it last did.
	LightClient *LightClientStatus `json:"lightClient,omitempty"`
}

// Retention is how much history a network keeps, and how its removal is.
type Retention struct {
	retention.Window
	Removing bool   `json:"removing"`          // older history is being removed now
	Rows     uint64 `json:"removedRows"`       // since the start
	Problem  string `json:"problem,omitempty"` // why it cannot be removed
}

// Stopped is why a network follows nothing, or a demo makes or settles no blocks, for a reason of its own such as a full disk. It
// goes on by itself when the cause is gone.
type Stopped struct {
	Why   string `json:"why"`
	Since int64  `json:"since"` // Unix seconds
}

// CatchUp is how fast a network that is behind comes closer to the head.
type CatchUp struct {
	Rate      float64 `json:"blocksPerSecond"`
	Remaining int64   `json:"remaining,omitempty"` // seconds; 0 if the head is not coming closer
}

// Behind is how many blocks a network is behind the head that it follows.
func (s *Status) Behind() uint64 {
	switch {
	case s.Consensus != nil:
		return s.Consensus.Behind
	case s.Source != nil:
		return s.Source.Behind
	}
	return 0
}

// UnknownFork is a scheduled fork whose rules this version does not know. Blocks from its
// time on are refused.
type UnknownFork struct {
	Name string `json:"name"`
	Time int64  `json:"time"` // Unix seconds
}

// Warning says what an operator has to do, in a sentence without its end.
func (f *UnknownFork) Warning(now time.Time) string {
	at := time.Unix(f.Time, 0).UTC()
	if now.Before(at) {
		return fmt.Sprintf("the fork %s is scheduled for %s, and this version does not know it; install a later version before", f.Name, at.Format(time.RFC3339))
	}
	return fmt.Sprintf("the fork %s came at %s, and this version does not know it; install a later version to get the blocks since", f.Name, at.Format(time.RFC3339))
}

// SourceStatus is how a network stands to the nodes that it follows.
type SourceStatus struct {
	Problem   string           `json:"problem,omitempty"` // why the best head is not followed
	Best      uint64           `json:"best"`              // the highest head of the nodes that can be used, else of all
	Reached   bool             `json:"reached"`           // at least one node answers as it should
	Behind    uint64           `json:"behind"`            // blocks from the head to Best; from the last executed one if clients see a head of nodes
	Upstreams []UpstreamStatus `json:"upstreams"`
	// Agreement is nil if the nodes need not agree. Best is then their head, and Reached
	// means that they agree.
	Agreement *AgreementStatus `json:"agreement,omitempty"`
}

// AsideUntil returns, in Unix seconds, when the first node is asked again if all are set aside,
// else 0.
func (s *SourceStatus) AsideUntil() int64 {
	if len(s.Upstreams) == 0 {
		return 0
	}
	return slices.MinFunc(s.Upstreams, func(a, b UpstreamStatus) int { return cmp.Compare(a.Aside, b.Aside) }).Aside
}

// AgreementStatus is whether as many nodes agree on a head as must.
type AgreementStatus struct {
	Quorum int   `json:"quorum"`          // nodes that must agree
	Nodes  int   `json:"nodes"`           // nodes that agreed on the last head; 0: there is no agreement now
	Since  int64 `json:"since,omitempty"` // since when there is no agreement, in Unix seconds; 0 if there is
}

// UpstreamStatus is the status of one node. Faults are counted since the start.
type UpstreamStatus struct {
	Name     string `json:"name"`
	Head     uint64 `json:"head"`
	Used     bool   `json:"used"`
	Why      string `json:"why,omitempty"`                 // why it is not used
	Aside    int64  `json:"aside,omitempty"`               // until when it is set aside because of a false answer, in Unix seconds; 0: it is not
	Differs  string `json:"differs,omitempty"`             // how it differs from the nodes that agree
	Latency  int64  `json:"latencyMicroseconds,omitempty"` // of its last answer about its head; 0 if not measured
	Failures uint64 `json:"failures"`                      // it did not answer
	Invalid  uint64 `json:"invalid"`                       // it sent what no honest node sends
	TooDeep  uint64 `json:"tooDeep"`                       // its branch leaves ours below a final block
}

// UpstreamOf returns how a node of a pool behaves.
func UpstreamOf(node *upstream.Status) UpstreamStatus {
	return UpstreamStatus{
		Name: node.Name, Head: node.Head.Number, Used: node.Usable, Why: node.Why, Aside: Seconds(node.Aside),
		Latency: node.Latency.Microseconds(), Failures: node.Failures, Invalid: node.Lies,
	}
}

// Seconds returns a time as the status has it: in Unix seconds, 0 for the zero time.
func Seconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// LightClientStatus is what a light client of the beacon chain sees.
type LightClientStatus struct {
	Problem       string             `json:"problem,omitempty"` // why the head stays
	Checkpoint    string             `json:"checkpoint"`        // root of the block that is configured
	Slot          uint64             `json:"slot"`              // the present one; 0: not known yet
	Head          uint64             `json:"headSlot"`          // of the newest header that is verified
	Finalized     uint64             `json:"finalizedSlot"`
	FinalizedTime int64              `json:"finalizedTime"` // Unix seconds; 0: there is none yet
	PeriodsBehind uint64             `json:"periodsBehind"` // sync committees from the finalized header to the present
	Named         int64              `json:"lastNamed"`     // when it last named a head, in Unix seconds; 0: not since the start
	Nodes         []BeaconNodeStatus `json:"nodes"`
}

// BeaconNodeStatus is how a node behaves that a light client asks. Faults are counted since the
// start.
type BeaconNodeStatus struct {
	Name     string `json:"name"`
	Slot     uint64 `json:"slot"` // the newest that it named, true or not
	Used     bool   `json:"used"`
	Why      string `json:"why,omitempty"`   // why it is not used
	Aside    int64  `json:"aside,omitempty"` // until when it is set aside because of false data, in Unix seconds; 0: it is not
	Failures uint64 `json:"failures"`        // it did not answer
	Invalid  uint64 `json:"invalid"`         // it sent what no honest node sends
}

// ConsensusStatus is how a network stands to the consensus client that drives it.
type ConsensusStatus struct {
	Client     string `json:"client,omitempty"` // the name it gives itself
	Payload    int64  `json:"lastPayload"`      // when it last sent a block, in Unix seconds; 0: not since the start
	Forkchoice int64  `json:"lastForkchoice"`   // when it last named a head
	Behind     uint64 `json:"behind"`           // known blocks to catch up with
	// Problem is why a network that executes nothing cannot follow the head that was named, such as that no node has its block;
	// empty if it does.
	Problem string `json:"problem,omitempty"`

	// Answers counts the answers of the listener for the client; nil for a light client.
	Answers *ConsensusAnswers `json:"answers,omitempty"`
}

// ConsensusAnswers counts the answers of the listener for a consensus client since the start.
type ConsensusAnswers struct {
	Payloads    map[string]uint64 `json:"payloads"`    // blocks, by the status that they got, in lower case
	Forkchoices map[string]uint64 `json:"forkchoices"` // heads, likewise
	Refused     map[string]uint64 `json:"refused"`     // requests, by why
	Held        int64             `json:"held"`        // bytes of answers that are held now
}
