package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"ashlar/limit"
)

var (
	// ErrLie is wrapped by errors of [Call.Check] about an answer that no honest node of the
	// chain gives. The node is set aside.
	ErrLie = errors.New("the node's answer is false")
	// ErrPruned is wrapped by errors of [Call.Check] about an answer that says that the node
	// does not have the block, such as null. It means that no node has it.
	ErrPruned = errors.New("no upstream has the block")
	// ErrUnavailable means that no node can answer now.
	ErrUnavailable = errors.New("no upstream can answer")
	// ErrTooLarge means that an answer is larger than [Config.Bytes].
	ErrTooLarge = errors.New("the answer is too large")
	// ErrCallTooLarge means that a call is larger than nodes, or proxies before them, accept.
	ErrCallTooLarge = errors.New("the call is too large for the node")
	// ErrCallRefused means that nodes, or proxies before them, refuse a call with an HTTP status and no
	// JSON-RPC error. It may be because of what the client has sent.
	ErrCallRefused = errors.New("the node refuses the call")
	// ErrUncertain means that a node has not answered a call that changes something: it may have done it.
	ErrUncertain = errors.New("the node has not answered and may have done what it was asked for")
	// ErrKnown means that a node has not answered a call that sends a transaction, and that another one has it: it was sent.
	ErrKnown = errors.New("a node has the transaction")
	// ErrUnsupported means that no node has the method.
	ErrUnsupported = errors.New("no upstream has the method")
)

// NodeError is the error object of a node's answer.
type NodeError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *NodeError) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

// fault is what a failed request says about the node.
type fault uint8

const (
	answered    fault = iota // the node gave an error deliberately; others would give the same
	failed                   // it failed
	throttled                // it wants fewer requests
	unsupported              // it does not have the method
	pruned                   // it does not have the block, or the state of it
)

// noBlock are parts of messages with which nodes say that they do not have the block that a call
// names: they have removed it, or there is none.
var noBlock = []string{
	"header not found", "header for hash not found", "block not found", "unknown block", "could not find block", "is not currently canonical",
	"failed to get logs for block", beyondHead, // geth, while it is wound back
}

// beyondHead is part of geth's message for a range of logs that ends above its head.
const beyondHead = "range extends beyond current head"

// Parts of messages with which another Ashlar refuses a call, and names its network. A name, such as
// mainnet-archive, says nothing.
const (
	methodNotAllowed  = "method not allowed"
	networkNotAllowed = "network not allowed"
)

// ofAshlar are parts of messages with which another Ashlar says that neither it nor a node of it can do what a call asks for.
// Those of older ones do not end with "try again later", and name what is not stored, or a problem.
var ofAshlar = []string{"no upstream can answer", "no upstream node can answer", "the server is busy: try again later", "node's answer is false", "no head yet", "out of service", networkNotAllowed}

// patterns of messages, in lower case, by what they mean. Nodes and providers have no common
// codes. The first match counts. Exceptions of geth's tracers in JavaScript, which clients write and
// whose messages are theirs, name their place in <eval>.
var patterns = []struct {
	fault fault
	texts []string
}{
	{answered, []string{
		"<eval>:", "execution aborted", "out of gas", "gas required exceeds", "insufficient funds", "nonce too", "already known", "underpriced",
	}},
	{unsupported, []string{methodNotAllowed}},
	{failed, ofAshlar},
	{pruned, []string{
		"missing trie node", "pruned", "historical state", "state is not available", "state not available", "state unavailable",
		"history unavailable", "distance to target block exceeds", "archive", "no state available",
	}},
	{pruned, noBlock},
	{unsupported, []string{
		"method not found", "does not exist/is not available", "method not supported", "unsupported method", "method is not available",
		"method not available", "not whitelisted", "method is not whitelisted", "not implemented",
	}},
	{throttled, []string{
		"rate limit", "request rate", "too many requests", "request limit", "daily request count", "capacity", "compute units", "credits", "quota", "throttle",
		"requests per second",
	}},
	{failed, []string{"internal error", "failed to process log index", "timeout", "timed out", "temporar", "unavailable", "overloaded", "connection", "panic", "try again"}},
}

// revertWords are the beginnings of the messages with which nodes report a REVERT. Some put the
// reason after them.
var revertWords = []string{
	"execution reverted", "vm execution error", "reverted", "transaction reverted",
	"vm exception while processing transaction: revert", "error: vm exception while processing transaction: revert",
}

// IsRevert reports whether an error object says that a message was reverted. The rest of its text may
// be that of the contract.
func IsRevert(e *NodeError) bool {
	text := strings.ToLower(e.Message)
	return e.Code == codeReverted || slices.ContainsFunc(revertWords, func(words string) bool { return strings.HasPrefix(text, words) })
}

// classify says what an error object means. method and params are those of the call. Nodes quote texts
// of the params that are invalid, such as the key of a slot. A client must not make a node count as
// lacking a method with a key that says so: what the params say, too, says nothing about the node.
func classify(method string, params json.RawMessage, e *NodeError) fault {
	text := plain(e.Message)
	switch {
	case IsRevert(e):
		return answered
	case e.Code == codeMethodNotFound:
		return unsupported
	case e.Code == codePruned:
		return pruned
	case e.Code == http.StatusTooManyRequests:
		return throttled
	case method == "eth_getLogs" && IsTooMuch(e):
		return answered
	}
	said := sync.OnceValue(func() string { return textsOf(params) })
	for _, p := range patterns {
		counts := func(part string) bool {
			return strings.Contains(text, part) && (p.fault == answered || !strings.Contains(said(), part))
		}
		if slices.ContainsFunc(p.texts, counts) {
			return p.fault
		}
	}
	if e.Code == codeInternal {
		return failed
	}
	return answered
}

// namedBlock is how reth's tracing methods name a block that they do not have.
var namedBlock = regexp.MustCompile(`block 0x[0-9a-f]+ not found`)

// plain returns a text in the form that patterns are compared with: in lower case, and without the name of a missing block.
func plain(text string) string {
	return namedBlock.ReplaceAllLiteralString(strings.ToLower(text), "block not found")
}

// textsOf returns all texts of params, in the form of plain.
func textsOf(params json.RawMessage) string {
	var all strings.Builder
	decoder := json.NewDecoder(bytes.NewReader(params))
	decoder.UseNumber()
	for {
		token, err := decoder.Token()
		if err != nil {
			return plain(all.String())
		}
		if text, ok := token.(string); ok {
			all.WriteString(text + "\n")
		}
	}
}

// IsOfNode reports whether an error object is about the node that gave it, such as its limit of
// requests, so that another node may answer the call, whose params are numbers and bytes.
func IsOfNode(method string, e *NodeError) bool { return classify(method, nil, e) != answered }

func containsAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

const (
	codeReverted       = 3
	codePruned         = 4444
	codeMethodNotFound = -32601
	codeInternal       = -32603
	codeLimitExceeded  = -32005
)

// httpError is an HTTP status without a JSON-RPC answer.
type httpError struct {
	status int
	after  time.Duration // which the node asked to wait; 0: unknown
	said   string        // about the key of the operator, for the log
}

func (e *httpError) Error() string {
	if e.said != "" {
		return fmt.Sprintf("HTTP status %d: %s", e.status, e.said)
	}
	return fmt.Sprintf("HTTP status %d", e.status)
}

// Is reports whether the status is [ErrCallRefused]: it blames the request, and not its credentials, about
// which said is, or its time. Firewalls refuse texts, for example, which clients can put into params.
func (e *httpError) Is(target error) bool {
	switch e.status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusProxyAuthRequired:
		return false
	}
	return target == ErrCallRefused && e.said == "" && refuses(e)
}

// refuses reports whether a node, or a proxy before it, has refused a request with an HTTP status and
// would refuse it again. It has not done what the request asks for.
func refuses(err error) bool {
	var status *httpError
	if !errors.As(err, &status) {
		return false
	}
	switch status.status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status.status/100 == 4
}

// ofOperator reports whether an HTTP status is about the key with which the operator's calls are made,
// or what it pays for.
func ofOperator(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusPaymentRequired || status == http.StatusForbidden
}

// IsTooLarge reports whether an answer is larger than [Config.Bytes], or than its account has memory for.
func IsTooLarge(err error) bool {
	return errors.Is(err, ErrTooLarge) || errors.Is(err, limit.ErrMemory)
}

// faultOf says what a failed call means.
func (c *Call) faultOf(err error) (fault, time.Duration) {
	// Another node would send as much. Only what a client's filter selects can be so much: a node that sends
	// without end elsewhere fails.
	if errors.Is(err, limit.ErrMemory) || errors.Is(err, ErrTooLarge) && c.Method == "eth_getLogs" {
		return answered, 0
	}
	why, rest := faultOf(c.Method, c.Params, err)
	if why == unsupported && c.Method == "eth_getLogs" && bytes.Contains(c.Params, []byte(`"blockHash"`)) {
		return failed, rest // it may have the method, and take no hash
	}
	if why == answered && c.Stored {
		why = failed
	}
	return why, rest
}

// faultOf says what a failed request means.
func faultOf(method string, params json.RawMessage, err error) (fault, time.Duration) {
	var node *NodeError
	switch {
	case errors.Is(err, ErrPruned):
		return pruned, 0
	case errors.Is(err, errUnfit), errors.Is(err, ErrLie):
		return failed, 0
	}
	if errors.As(err, &node) {
		return classify(method, params, node), 0
	}
	var status *httpError
	if errors.As(err, &status) && status.status == http.StatusTooManyRequests {
		return throttled, status.after
	}
	return failed, 0
}

// Means is what a node's error means to the caller.
type Means uint8

// The meanings of errors. All but the first concern the node, and not the call.
const (
	MeansAnswer Means = iota // the node answered the call
	MeansUnsupported
	MeansPruned
	MeansFailure
)

// Meaning returns what a node's error means.
func Meaning(e *NodeError) Means {
	switch classify("", nil, e) {
	case unsupported:
		return MeansUnsupported
	case pruned:
		return MeansPruned
	case failed, throttled:
		return MeansFailure
	}
	return MeansAnswer
}

// LacksHistory reports whether err is that of nodes without the history that a call needs.
func LacksHistory(err error) bool {
	var node *NodeError
	return errors.Is(err, ErrPruned) || errors.As(err, &node) && Meaning(node) == MeansPruned
}

// LacksBlock reports whether a node says that it does not have the block that a call names. Its
// error means MeansPruned, which is right only if the block is known to be of the chain.
func LacksBlock(e *NodeError) bool {
	return e.Code != codePruned && classify("", nil, e) == pruned && containsAny(plain(e.Message), noBlock)
}
