package differential

import (
	"encoding/json"
	"slices"
	"strings"

	"ashlar/internal/jsondiff"
)

// allowed is a difference that is meant. docs/differences.md has a section of
// the same name for each.
type allowed struct {
	name    string
	applies func(q question, geth, ashlar answer, d jsondiff.Difference) bool
}

// allowances are tried in order; every single difference of an answer needs one.
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
			return q.Method == "eth_getLogs" && len(logs) > 10000 && ashlar.code() == -32005 &&
				ashlar.message() == "query returned more than 10000 results"
		}},
		{"Wording of invalid parameters", func(_ question, geth, ashlar answer, d jsondiff.Difference) bool {
			return d.Path == ".error.message" && geth.code() == -32602 && ashlar.code() == -32602 && freeWording(geth.message(), ashlar.message())
		}},
		{"Null and empty arguments", func(q question, geth, ashlar answer, _ jsondiff.Difference) bool {
			params, _ := q.Params.([]any)
			return geth.err == nil && ashlar.code() == -32602 && (slices.Contains(params, nil) || slices.Contains(params, any("")))
		}},
		{"Details of refused requests", func(_ question, geth, ashlar answer, d jsondiff.Difference) bool {
			_, absent := d.A.(jsondiff.Absent)
			return d.Path == ".error.data" && absent && geth.code() == ashlar.code() && ashlar.code() == -32600
		}},
	}
}

// freeWording says whether one text may stand for the other: the reason why an
// argument is refused is free, which argument it is is not, nor are the texts
// that clients match.
func freeWording(geth, ashlar string) bool {
	for _, fixed := range []string{"missing value for required argument", "too many arguments", "invalid block range", "block range extends", "cannot specify both"} {
		if strings.Contains(geth, fixed) {
			return false
		}
	}
	a, b := invalidArgument(geth), invalidArgument(ashlar)
	missing, isMissing := strings.CutPrefix(ashlar, "missing value for required argument ")
	switch {
	case isMissing:
		return a == "invalid argument "+missing // null: a value that is missing
	case strings.HasPrefix(ashlar, "too many arguments"):
		return a != "" // both are wrong; Ashlar counts before it decodes
	}
	return a == b || a == ""
}

// explain returns the allowance of a difference, or "" where there is none.
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
