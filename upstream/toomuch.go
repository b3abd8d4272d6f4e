package upstream

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// tooMuch are parts of messages, in lower case, with which nodes and providers refuse eth_getLogs because of the range of
// blocks or the number of logs. They have no common code.
var tooMuch = []string{
	"block range", "blocks range", "range too", "range is too", "range exceeds", "range limit", "max range", "range of blocks", "too many blocks",
	"query returned more than", "more than 10000", "too many results", "response size", "too many logs", "log response size",
	"query timeout", "exceeds the range", "exceed maximum", "exceeds max", "narrow", "smaller range", "logs matched", "result set",
	"getlogs is limited",         // QuickNode, Base: eth_getLogs is limited to a 10,000 range
	"blocks distance",            // Cronos, Kava, Ankr: maximum [from, to] blocks distance: 2000
	"smaller than size",          // Harmony: GetLogs query must be smaller than size 1024
	"max allowed range",          // eRPC: getLogs request exceeded max allowed range
	"range threshold",            // range threshold exceeded
	"number of requested blocks", // Maximum allowed number of requested blocks is 10000
	"limit the query to",         // please limit the query to at most 1000 blocks
	"logs over more",             // cannot get logs over more than 2000 blocks
	"try paginating",
}

// tooLong matches refusals with a number among their words: range 47440 exceeds limit of 10000 (Linea, Infura), ranges over
// 10000 blocks are not supported on freetier (dRPC).
var tooLong = regexp.MustCompile(`range \d[\d,_]* exceeds|ranges over \d`)

// tooLarge matches refusals because of the range or the answer: Response is too big (reth), response too large (geth). A list
// of addresses, or the body of a request, may be too large as well, and no shorter range helps then.
var tooLarge = regexp.MustCompile(`(range|response|answer|results?|output|logs|blocks)( (body|set|is|are|of the upstream node))* too (large|big)|too (large|big) (an? )?(\w+ )?(range|response|answer|result)`)

// notTooMuch are parts of messages with the code of a limit that are not about the range or the logs.
var notTooMuch = []string{"rate", "requests", "limit exceeded", "request count", "quota", "busy", "try again", "out of service"}

// meaningless are messages, in lower case, that say nothing, beside which a node may explain itself in a text as the data.
// Nethermind does, for example: invalid params, with the data: Query returned more than 50000 results.
var meaningless = []string{"invalid params", "invalid parameters", "invalid input", "invalid request", "server error"}

// IsTooMuch reports whether a node refuses eth_getLogs because it asks for too much at once.
func IsTooMuch(e *NodeError) bool {
	text := strings.ToLower(e.Message)
	if containsAny(text, []string{beyondHead, methodNotAllowed, networkNotAllowed}) {
		return false
	}
	if slices.Contains(meaningless, text) {
		var explained string
		_ = json.Unmarshal(e.Data, &explained) // it need not be a text
		text = strings.ToLower(explained)
	}
	if containsAny(text, tooMuch) || tooLong.MatchString(text) || tooLarge.MatchString(text) {
		return true
	}
	return e.Code == codeLimitExceeded && !containsAny(text, notTooMuch)
}

// Excess is whether a node refuses eth_getLogs because it asks for too much at once.
type Excess uint8

// The answers. A node's words may not be known, or it may fail because of what it is asked for.
const (
	NoExcess Excess = iota
	PerhapsExcess
	SurelyExcess
)

// numberOfBlocks matches words about how many blocks a range may have: the request limit is 5000 blocks.
var numberOfBlocks = regexp.MustCompile(`\d[\d,_]*[km]? ?blocks?\b`)

// ExcessOf returns whether a node that no other one can replace refuses eth_getLogs because it asks for too much at once, or
// has taken too long. Some nodes call a long range an internal or temporary error.
func ExcessOf(e *NodeError) Excess {
	if IsTooMuch(e) {
		return SurelyExcess
	}
	text := plain(e.Message)
	switch classify("eth_getLogs", nil, e) {
	case throttled:
		if e.Code != http.StatusTooManyRequests && numberOfBlocks.MatchString(text) {
			return PerhapsExcess
		}
		return NoExcess
	case unsupported, pruned:
		return NoExcess
	case failed:
		if containsAny(text, ofAshlar) || strings.Contains(text, "try again later") {
			return NoExcess
		}
	}
	if isLate(e) {
		return SurelyExcess
	}
	return PerhapsExcess
}
