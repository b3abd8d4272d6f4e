package network

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"ashlar/family"
	"ashlar/upstream"
)

// How answers are checked.
const (
	checkNone    = "none"
	checkHeaders = "headers"
	checkState   = "state" // by networks of another family
)

// Entries are the entries of a forwarded network in the configuration.
type Entries struct {
	Upstream upstream.Nodes `yaml:"upstream"` // nodes that answer
	Checked  string         `yaml:"check"`    // how their answers are checked
	ChainID  uint64         `yaml:"chain_id"` // 0: that of the stored answers, else of the first node that answers
	Quorum   int            `yaml:"quorum"`   // how many nodes must have the same head
	Poll     time.Duration  `yaml:"poll"`     // between questions about a node's head
	Methods  []string       `yaml:"methods"`  // further methods that are passed to the nodes
	Answers  family.Bytes   `yaml:"answers"`  // of stored answers
}

// minPoll is the least time between two questions about a head.
const minPoll = 50 * time.Millisecond

// defaultAnswers is how many bytes of answers are stored.
const defaultAnswers = 10 << 30

// Entries implements [family.Configurer].
func (Family) Entries() family.Entries {
	return &Entries{Checked: checkNone, Quorum: 1, Poll: time.Second, Answers: defaultAnswers}
}

// AddedMethods implements [family.MethodAdder].
func (e *Entries) AddedMethods() []string { return e.Methods }

// Check implements [family.Entries].
func (e *Entries) Check(string) []family.Problem {
	return family.Problems(
		family.Problem{Entry: "upstream", Err: e.checkUpstream()},
		family.Problem{Entry: "check", Err: e.checkCheck()},
		family.Problem{Entry: "quorum", Err: e.checkQuorum()},
		family.Problem{Entry: "poll", Err: e.checkPoll()},
		family.Problem{Entry: "methods", Err: e.checkMethods()},
	)
}

// CheckFiles implements [family.Entries].
func (e *Entries) CheckFiles() []family.Problem {
	return family.Problems(family.Problem{Entry: "upstream", Err: e.Upstream.CheckFiles()})
}

func (e *Entries) checkCheck() error {
	if e.Checked != checkNone && e.Checked != checkHeaders {
		return fmt.Errorf("unknown check %q (want %s or %s, or state for an EVM network with its genesis)", e.Checked, checkNone, checkHeaders)
	}
	return nil
}

var methodName = regexp.MustCompile(`^[a-zA-Z0-9]+_[a-zA-Z0-9_]+$`)

func (e *Entries) checkMethods() error {
	for _, method := range e.Methods {
		if !methodName.MatchString(method) {
			return fmt.Errorf("invalid method %q (want a name such as arbtrace_call)", method)
		}
	}
	return nil
}

func (e *Entries) checkQuorum() error {
	if e.Quorum < 1 || e.Quorum > max(1, len(e.Upstream)) {
		return fmt.Errorf("quorum %d of %d nodes (want 1 to the number of nodes in upstream)", e.Quorum, len(e.Upstream))
	}
	return nil
}

func (e *Entries) checkUpstream() error {
	if len(e.Upstream) == 0 {
		return errors.New("no nodes (want the URL of at least one)")
	}
	return e.Upstream.Check()
}

func (e *Entries) checkPoll() error {
	if e.Poll < minPoll {
		return fmt.Errorf("%v is too short (want %v or more)", e.Poll, minPoll)
	}
	return nil
}
