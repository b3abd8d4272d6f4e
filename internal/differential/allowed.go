package differential

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"ashlar/internal/jsondiff"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// allowed is an intended difference. docs/differences.md has a section with the same name.
type allowed struct {
	name    string
	applies func(q question, geth, ashlar answer, d jsondiff.Difference) bool
}

// allowances are tried in order. Every single difference of an answer needs one.
func allowances() []allowed {
	return []allowed{
		{"Total difficulty", func(q question, _, _ answer, d jsondiff.Difference) bool {
			_, absent := d.A.(jsondiff.Absent)
			return absent && d.Path == ".totalDifficulty" && strings.HasPrefix(q.Method, "eth_get") && strings.Contains(q.Method, "By")
		}},
		{"Name and modules", func(q question, _, _ answer, _ jsondiff.Difference) bool {
			return q.Method == "web3_clientVersion" || q.Method == "rpc_modules"
		}},
		{"Cap on logs", func(q question, geth, ashlar answer, _ jsondiff.Difference) bool {
			logs, _ := geth.result.([]any)
			return (q.Method == "eth_getLogs" || q.Method == "eth_getFilterLogs") && len(logs) > 10000 && ashlar.code() == -32005 &&
				ashlar.message() == "query returned more than 10000 results"
		}},
		{"Wording of invalid parameters", func(_ question, geth, ashlar answer, d jsondiff.Difference) bool {
			return d.Path == ".error.message" && geth.code() == -32602 && ashlar.code() == -32602 && freeWording(geth.message(), ashlar.message())
		}},
		{"Wording of invalid parameters", func(q question, geth, ashlar answer, d jsondiff.Difference) bool {
			const typeName = ".callTracerConfig"
			theirs, ours := strings.TrimSuffix(geth.message(), "native"+typeName), strings.TrimSuffix(ashlar.message(), "trace"+typeName)
			return d.Path == ".error.message" && strings.HasPrefix(q.Method, "debug_trace") && theirs == ours && strings.HasSuffix(ashlar.message(), typeName)
		}},
		{"Null and empty arguments", func(q question, geth, ashlar answer, d jsondiff.Difference) bool {
			params, _ := q.Params.([]any)
			if geth.code() == -32602 { // for another argument
				return d.Path == ".error.message" && ashlar.code() == -32602 && namesEmpty(params, ashlar.message())
			}
			return ashlar.code() == -32602 && (slices.Contains(params, nil) || slices.Contains(params, any("")))
		}},
		{"Details of refused requests", func(_ question, geth, ashlar answer, d jsondiff.Difference) bool {
			_, absent := d.A.(jsondiff.Absent)
			return d.Path == ".error.data" && absent && geth.code() == ashlar.code() && ashlar.code() <= -32600 && ashlar.code() >= -32602
		}},
		{"Safe and finalized blocks in filters", func(q question, geth, ashlar answer, d jsondiff.Difference) bool {
			tag, unknown := strings.CutSuffix(geth.message(), " header not found")
			return q.Method == "eth_getLogs" && d.Path == ".error.message" && unknown && (tag == "safe" || tag == "finalized") &&
				ashlar.message() == tag+" block not found"
		}},
		{"Ranges from the latest block", func(q question, geth, ashlar answer, _ jsondiff.Difference) bool {
			return q.Method == "eth_getLogs" && fromLatestToNumber(q) && geth.code() == -32602 && geth.message() == "invalid block range params" &&
				(ashlar.err == nil || ashlar.message() == "block range extends beyond current head block")
		}},
		{"Percentiles may be left out", func(q question, geth, ashlar answer, d jsondiff.Difference) bool {
			params, _ := q.Params.([]any)
			return q.Method == "eth_feeHistory" && (len(params) == 2 || len(params) > 2 && params[2] == nil) && geth.code() == -32602 &&
				geth.message() == "missing value for required argument 2" && (ashlar.code() != -32602 || len(params) > 3)
		}},
		{"Negative counts", func(q question, geth, ashlar answer, d jsondiff.Difference) bool {
			return (q.Method == "debug_storageRangeAt" || q.Method == "debug_accountRange") &&
				strings.HasSuffix(ashlar.message(), "want a number that is not negative")
		}},
		{"Starts of ranges", func(q question, _, _ answer, _ jsondiff.Difference) bool {
			return (q.Method == "debug_storageRangeAt" || q.Method == "debug_accountRange") && hasUnevenStart(q)
		}},
		{"Ranges of unknown blocks", func(q question, geth, ashlar answer, d jsondiff.Difference) bool {
			return q.Method == "debug_storageRangeAt" && d.Path == ".error.message" && unknownRange.MatchString(geth.message()) &&
				strings.HasPrefix(ashlar.message(), "header ") && strings.HasSuffix(ashlar.message(), "not found")
		}},
		{"Suggested tips", func(q question, geth, ashlar answer, _ jsondiff.Difference) bool {
			return (q.Method == "eth_gasPrice" || q.Method == "eth_maxPriorityFeePerGas") && geth.err == nil && ashlar.err == nil
		}},
		{"Suggested tips", func(q question, geth, ashlar answer, d jsondiff.Difference) bool {
			return q.Method == "eth_fillTransaction" && !namesFees(q) && followsTip[d.Path] && sameWithoutTip(geth, ashlar)
		}},
		{"Access lists of filled transactions", func(q question, _, ashlar answer, d jsondiff.Difference) bool {
			return q.Method == "eth_fillTransaction" && keepsListDespitePrice(q, ashlar) && followsType[d.Path]
		}},
		{"Hash of an unsigned transaction", func(q question, geth, ashlar answer, d jsondiff.Difference) bool {
			return q.Method == "eth_createAccessList" && d.Path == ".error.message" && withoutHash(geth.message()) == ashlar.message()
		}},
		{"Fees of access lists", func(q question, geth, ashlar answer, _ jsondiff.Difference) bool {
			return q.Method == "eth_createAccessList" && !namesFees(q) && geth.code() == -32000 &&
				strings.Contains(geth.message(), "insufficient funds for gas * price + value") &&
				(ashlar.err == nil || ashlar.code() == -32000)
		}},
		{"Slots of instructions that fail", func(q question, _, _ answer, d jsondiff.Difference) bool {
			_, absent := d.B.(jsondiff.Absent)
			return absent && strings.HasPrefix(q.Method, "debug_trace") && strings.Contains(d.Path, "structLogs[") && strings.HasSuffix(d.Path, ".storage")
		}},
		{"Ether of destroyed contracts", func(q question, _, _ answer, d jsondiff.Difference) bool {
			return strings.HasPrefix(q.Method, "debug_trace") && keepsEther(d)
		}},
		{"Limits of calls", func(q question, geth, ashlar answer, _ jsondiff.Difference) bool {
			if strings.HasPrefix(q.Method, "debug_trace") && strings.HasPrefix(geth.message(), "execution timeout") {
				return true
			}
			calls := q.Method == "eth_call" || q.Method == "eth_estimateGas" || q.Method == "eth_createAccessList"
			return calls && (ashlar.message() == "execution aborted (memory limit of 128 MiB)" || geth.message() == "execution aborted (timeout = 5s)" ||
				ashlar.message() == "execution aborted (timeout = 5s)" && (geth.message() == "request timed out" || geth.message() == "context canceled"))
		}},
		{"Witnesses", func(q question, geth, ashlar answer, d jsondiff.Difference) bool {
			switch {
			case q.Method != "debug_executionWitness":
				return false
			case d.Path == ".codes":
				return isPart(d.B, d.A)
			case d.Path == ".error.message":
				return geth.code() == ashlar.code() && (ashlar.code() == -32000 || ashlar.message() == "too many arguments, want at most 2")
			}
			params, _ := q.Params.([]any)
			return len(params) == 2 && strings.HasPrefix(geth.message(), "too many arguments")
		}},
		{"Raw data of unknown blocks", func(q question, geth, ashlar answer, d jsondiff.Difference) bool {
			if !strings.HasPrefix(q.Method, "debug_getRaw") || ashlar.code() != -32000 || ashlar.message() != "header for hash not found" {
				return false
			}
			logs, listed := geth.result.([]any)
			return d.Path == ".error.message" && unknownRaw.MatchString(geth.message()) ||
				q.Method == "debug_getRawReceipts" && listed && len(logs) == 0
		}},
	}
}

var namedArgument = regexp.MustCompile(`^(?:invalid argument|missing value for required argument) ([0-9])(?::|$)`)

// namesEmpty reports whether an error is about an argument that is null or an empty string.
func namesEmpty(params []any, message string) bool {
	match := namedArgument.FindStringSubmatch(message)
	if match == nil {
		return false
	}
	n := int(match[1][0] - '0')
	return n < len(params) && (params[n] == nil || params[n] == "")
}

// isPart reports whether all elements of one list are elements of another.
func isPart(part, whole any) bool {
	all, isList := whole.([]any)
	some, isListToo := part.([]any)
	return isList && isListToo && !slices.ContainsFunc(some, func(one any) bool { return !slices.Contains(all, one) })
}

// hasUnevenStart reports whether the start of a range is neither empty nor a whole hash.
func hasUnevenStart(q question) bool {
	params, _ := q.Params.([]any)
	at := 1
	if q.Method == "debug_storageRangeAt" {
		at = 3
	}
	if len(params) <= at {
		return false
	}
	start, ok := params[at].(string)
	return ok && len(start) != len("0x") && len(start) != len("0x")+2*32
}

// keepsEther reports whether geth alone counts an account as deleted in the prestateTracer's diffMode: it leaves out the
// account after the transaction, and has the account before, which had only ether, or its empty slots.
func keepsEther(d jsondiff.Difference) bool {
	before, _ := d.A.(map[string]any)
	after, _ := d.B.(map[string]any)
	_, onlyAshlar := d.A.(jsondiff.Absent)
	_, onlyGeth := d.B.(jsondiff.Absent)
	switch {
	case onlyAshlar && accountAfter.MatchString(d.Path):
		return after["balance"] != nil
	case onlyGeth && accountBefore.MatchString(d.Path):
		return before["balance"] != nil && before["nonce"] == nil && before["code"] == nil
	case onlyGeth && slotsBefore.MatchString(d.Path):
		for _, value := range before {
			if value != (common.Hash{}).Hex() {
				return false
			}
		}
		return true
	}
	return false
}

// These match accounts and their slots in the prestateTracer's diffMode.
var (
	accountAfter  = regexp.MustCompile(`\.post\.0x[0-9a-f]{40}$`)
	accountBefore = regexp.MustCompile(`\.pre\.0x[0-9a-f]{40}$`)
	slotsBefore   = regexp.MustCompile(`\.pre\.0x[0-9a-f]{40}\.storage$`)
)

// unknownRaw matches geth's error for an unknown hash, which prints the bytes in decimal.
var unknownRaw = regexp.MustCompile(`^(header|block) #\[[0-9 ]+\] not found$`)

// unknownRange matches geth's error for an unknown block, which prints the fields of its argument.
var unknownRange = regexp.MustCompile(`^block \{.*\} not found$`)

var hashOfUnsigned = regexp.MustCompile(`^failed to apply transaction: 0x[0-9a-f]{64} err: `)

// withoutHash removes the hash of the unsigned transaction, which is of no use to clients, from an
// error of geth's eth_createAccessList.
func withoutHash(message string) string {
	return hashOfUnsigned.ReplaceAllLiteralString(message, "failed to apply transaction: ")
}

// member returns a member of the first parameter, nil if there is none. Its name may be in any case.
func (q question) member(name string) any {
	params, _ := q.Params.([]any)
	if len(params) == 0 {
		return nil
	}
	first, _ := params[0].(object)
	for given, value := range first {
		if strings.EqualFold(given, name) {
			return value
		}
	}
	return nil
}

// namesFees reports whether the call in a request sets a price of gas.
func namesFees(q question) bool {
	for _, fee := range []string{"gasPrice", "maxFeePerGas", "maxPriorityFeePerGas"} {
		if q.member(fee) != nil {
			return true
		}
	}
	return false
}

// followsType are the parts of a filled transaction that differ between type 0 and type 1.
var followsType = map[string]bool{".raw": true, ".tx.hash": true, ".tx.type": true, ".tx.accessList": true, ".tx.chainId": true, ".tx.yParity": true}

// keepsListDespitePrice reports whether a transaction was to be filled that has a gas price and an
// access list, and has that list.
func keepsListDespitePrice(q question, ashlar answer) bool {
	filled, _ := ashlar.result.(map[string]any)
	tx, _ := filled["tx"].(map[string]any)
	text, err := json.Marshal(q.member("accessList"))
	var asked any
	if err == nil {
		err = json.Unmarshal(text, &asked)
	}
	return err == nil && asked != nil && q.member("gasPrice") != nil && tx["type"] == "0x1" && len(jsondiff.Values(asked, tx["accessList"])) == 0
}

// followsTip are the parts of a filled transaction that depend on the suggested tip.
var followsTip = map[string]bool{".raw": true, ".tx.hash": true, ".tx.gasPrice": true, ".tx.maxFeePerGas": true, ".tx.maxPriorityFeePerGas": true}

// sameWithoutTip reports whether two filled transactions offer the same for the base fee, so that
// their fees differ in the tip alone.
func sameWithoutTip(geth, ashlar answer) bool {
	a, filled := forBaseFee(geth)
	b, filledToo := forBaseFee(ashlar)
	return filled && filledToo && a == b
}

// forBaseFee returns what a filled transaction offers beside its tip. It is 0 for a transaction
// with a gas price, which has no tip of its own.
func forBaseFee(a answer) (wei uint64, filled bool) {
	result, _ := a.result.(map[string]any)
	tx, filled := result["tx"].(map[string]any)
	most, _ := tx["maxFeePerGas"].(string)
	tip, _ := tx["maxPriorityFeePerGas"].(string)
	if !filled || most == "" || tip == "" {
		return 0, filled
	}
	highest, err := hexutil.DecodeUint64(most)
	tipped, errToo := hexutil.DecodeUint64(tip)
	return highest - tipped, err == nil && errToo == nil
}

// fromLatestToNumber reports whether the filter in a request begins at the latest block and ends at
// a block number.
func fromLatestToNumber(q question) bool {
	from, to := q.member("fromBlock"), q.member("toBlock")
	number, _ := to.(string)
	return (from == nil || from == "latest") && strings.HasPrefix(number, "0x")
}

// freeWording reports whether two error texts are equivalent: they may give different reasons for
// rejecting an argument, but must agree on the argument and on texts that clients match.
func freeWording(geth, ashlar string) bool {
	a, b := invalidArgument(geth), invalidArgument(ashlar)
	if strings.HasPrefix(ashlar, "too many arguments") {
		return a != "" // both are right; Ashlar counts the arguments before decoding them
	}
	for _, fixed := range []string{"missing value for required argument", "too many arguments", "invalid block range", "block range extends", "cannot specify both"} {
		if strings.Contains(geth, fixed) {
			return false
		}
	}
	if missing, ok := strings.CutPrefix(ashlar, "missing value for required argument "); ok {
		return a == "invalid argument "+missing || geth == "empty request" // null: a missing value
	}
	return a == b || a == ""
}

// explain returns the name of the allowance for a difference, or an empty string.
func explain(q question, geth, ashlar answer, d jsondiff.Difference) string {
	for _, a := range allowances() {
		if a.applies(q, geth, ashlar, d) {
			return a.name
		}
	}
	return ""
}

func (q question) String() string {
	raw, err := json.Marshal(q.Params)
	if err != nil {
		return q.Method + ": " + err.Error()
	}
	if len(raw) > 600 {
		raw = append(raw[:600], "…"...)
	}
	return q.Method + " " + string(raw)
}
