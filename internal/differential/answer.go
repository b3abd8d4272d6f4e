package differential

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ashlar/internal/jsondiff"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// answer is a decoded answer in comparable form.
type answer struct {
	raw    []byte
	result any
	err    map[string]any // nil for a result
}

func parse(method string, raw []byte) (answer, error) {
	v, err := jsondiff.Decode(raw)
	if err != nil {
		return answer{}, fmt.Errorf("not JSON: %w: %.200q", err, raw)
	}
	object, ok := v.(map[string]any)
	if !ok {
		return answer{}, fmt.Errorf("not an object: %.200q", raw)
	}
	a := answer{raw: raw}
	if failure, failed := object["error"]; failed {
		if a.err, ok = failure.(map[string]any); !ok {
			return answer{}, fmt.Errorf("the error is not an object: %.200q", raw)
		}
		return a, nil
	}
	if a.result, ok = object["result"]; !ok {
		return answer{}, fmt.Errorf("neither result nor error: %.200q", raw)
	}
	a.result = normalize(method, a.result)
	return a, nil
}

// code returns the error code, 0 for a result.
func (a answer) code() int64 {
	n, _ := a.err["code"].(json.Number)
	code, _ := n.Int64()
	return code
}

func (a answer) message() string {
	m, _ := a.err["message"].(string)
	return m
}

// differences compares everything that a client can see.
func differences(a, b answer) []jsondiff.Difference {
	if (a.err == nil) != (b.err == nil) {
		return []jsondiff.Difference{{A: string(a.raw), B: string(b.raw)}}
	}
	if a.err != nil {
		return jsondiff.Values(map[string]any{"error": a.err}, map[string]any{"error": b.err})
	}
	return jsondiff.Values(a.result, b.result)
}

// normalize removes insignificant details: the notation of fractions, the order of access lists,
// which geth takes from a map, and after how many blocks geth deletes logs.
func normalize(method string, v any) any {
	switch method {
	case "eth_feeHistory":
		return fractions(v)
	case "eth_capabilities":
		kinds, _ := v.(map[string]any)
		for _, kind := range kinds {
			if kind, ok := kind.(map[string]any); ok {
				delete(kind, "deleteStrategy")
			}
		}
	case "debug_storageRangeAt":
		return keyedByHash(v, "storage", func(hash string, entry map[string]any) string { entry["key"] = nil; return hash })
	case "debug_accountRange":
		return keyedByHash(v, "accounts", func(_ string, account map[string]any) string {
			if _, named := account["address"]; named {
				delete(account, "address")
				hashSlots(account)
			}
			return fmt.Sprintf("pre(%v)", account["key"])
		})
	case "eth_createAccessList":
		object, _ := v.(map[string]any)
		list, _ := object["accessList"].([]any)
		for _, entry := range list {
			entry, _ := entry.(map[string]any)
			keys, _ := entry["storageKeys"].([]any)
			slices.SortFunc(keys, func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
		slices.SortFunc(list, func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
	return v
}

// keyedByHash changes the entries of a member of an object, and the names of the entries.
func keyedByHash(v any, member string, change func(name string, entry map[string]any) string) any {
	object, _ := v.(map[string]any)
	entries, _ := object[member].(map[string]any)
	if entries == nil {
		return v
	}
	changed := make(map[string]any)
	for name, entry := range entries {
		if fields, ok := entry.(map[string]any); ok {
			name = change(name, fields)
		}
		changed[name] = entry
	}
	object[member] = changed
	return v
}

// hashSlots names the slots of an account by their hashes.
func hashSlots(account map[string]any) {
	slots, ok := account["storage"].(map[string]any)
	if !ok {
		return
	}
	named := make(map[string]any)
	for name, value := range slots {
		named[crypto.Keccak256Hash(common.FromHex(name)).Hex()] = value
	}
	account["storage"] = named
}

func fractions(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = fractions(e)
		}
	case []any:
		for i, e := range v {
			v[i] = fractions(e)
		}
	case json.Number:
		if f, err := v.Float64(); err == nil {
			return f
		}
	}
	return v
}

// invalidArgument returns the part of an error text about an argument without the reason, such as
// "invalid argument 1". It returns an empty string for other texts.
func invalidArgument(message string) string {
	if head, _, ok := strings.Cut(message, ":"); ok && strings.HasPrefix(head, "invalid argument ") {
		return head
	}
	return ""
}
