package verified

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// lie is a way to answer a call falsely. Either function may be nil.
type lie struct {
	name string
	// ask returns other parameters, so that the answer is one to another question.
	ask func(c *chain, r *rand.Rand, params json.RawMessage) json.RawMessage
	// alter changes the answer, and reports whether there was something to change.
	alter func(r *rand.Rand, answer map[string]json.RawMessage) bool
}

var answerLies = []lie{
	{name: "null", alter: func(_ *rand.Rand, answer map[string]json.RawMessage) bool {
		return replace(answer, json.RawMessage("null"))
	}},
	{name: "a value altered", alter: altering(bend)},
	{name: "a value altered twice", alter: altering(func(r *rand.Rand, value any) any { return bend(r, bend(r, value)) })},
	{name: "an element left out", alter: altering(inList(func(r *rand.Rand, list []any) []any {
		i := r.IntN(len(list))
		return slices.Delete(slices.Clone(list), i, i+1)
	}))},
	{name: "an element twice", alter: altering(inList(func(r *rand.Rand, list []any) []any { return append(slices.Clone(list), list[r.IntN(len(list))]) }))},
	{name: "another order", alter: altering(inList(func(_ *rand.Rand, list []any) []any {
		list = slices.Clone(list)
		slices.Reverse(list)
		return list
	}))},
	{name: "nothing in a list", alter: altering(inList(func(*rand.Rand, []any) []any { return []any{} }))},
	{name: "another block", ask: (*chain).ofAnotherBlock},
	{name: "another account", ask: (*chain).ofAnotherAccount},
	{name: "a revert", alter: failing(`{"code":3,"message":"execution reverted","data":"0x"}`)},
	{name: "unknown header", alter: failing(`{"code":-32000,"message":"header not found"}`)},
	{name: "no state", alter: failing(`{"code":-32000,"message":"missing trie node"}`)},
	{name: "no such method", alter: failing(`{"code":-32601,"message":"the method does not exist/is not available"}`)},
	{name: "nested deeply", alter: func(_ *rand.Rand, answer map[string]json.RawMessage) bool {
		return replace(answer, json.RawMessage(strings.Repeat("[", 5000)+strings.Repeat("]", 5000)))
	}},
	{name: "a long list", alter: func(_ *rand.Rand, answer map[string]json.RawMessage) bool {
		return replace(answer, json.RawMessage("["+strings.Repeat("{},", 300_000)+"{}]"))
	}},
	{name: "another type", alter: func(r *rand.Rand, answer map[string]json.RawMessage) bool {
		others := []string{`""`, `0`, `[]`, `{}`, `true`, `"0x"`, `[null]`, `"0x0"`, `{"hash":null}`, `[[]]`, `-1`}
		return replace(answer, json.RawMessage(others[r.IntN(len(others))]))
	}},
	{name: "no result", alter: func(_ *rand.Rand, answer map[string]json.RawMessage) bool {
		delete(answer, "result")
		return true
	}},
}

// replace sets the result of an answer that has one, and reports whether that changes it.
func replace(answer map[string]json.RawMessage, result json.RawMessage) bool {
	if answer["result"] == nil || bytes.Equal(answer["result"], result) {
		return false
	}
	answer["result"] = result
	return true
}

// failing returns a lie that is an error.
func failing(text string) func(*rand.Rand, map[string]json.RawMessage) bool {
	return func(_ *rand.Rand, answer map[string]json.RawMessage) bool {
		delete(answer, "result")
		answer["error"] = json.RawMessage(text)
		return true
	}
}

// altering returns a lie that changes a decoded result.
func altering(change func(*rand.Rand, any) any) func(*rand.Rand, map[string]json.RawMessage) bool {
	return func(r *rand.Rand, answer map[string]json.RawMessage) bool {
		var result any
		if json.Unmarshal(answer["result"], &result) != nil {
			return false
		}
		before, _ := json.Marshal(result)
		after, err := json.Marshal(change(r, result))
		if err != nil || bytes.Equal(before, after) {
			return false
		}
		answer["result"] = after
		return true
	}
}

// bend alters one thing in a value, as deep as it may be: a digit, or a member.
func bend(r *rand.Rand, value any) any {
	switch v := value.(type) {
	case string:
		if len(v) > 2 && strings.HasPrefix(v, "0x") {
			digits := []byte(v)
			digits[2+r.IntN(len(v)-2)] = "0123456789abcdef"[r.IntN(16)]
			return string(digits)
		}
	case bool:
		return !v
	case []any:
		if len(v) > 0 {
			v = slices.Clone(v)
			i := r.IntN(len(v))
			v[i] = bend(r, v[i])
		}
		return v
	case map[string]any:
		if len(v) == 0 {
			return v
		}
		v = maps.Clone(v)
		key := slices.Sorted(maps.Keys(v))[r.IntN(len(v))]
		if r.IntN(8) == 0 {
			delete(v, key)
		} else {
			v[key] = bend(r, v[key])
		}
		return v
	}
	return value
}

// inList returns a change of one of the lists in a value that are not empty, such as the logs of a
// receipt or the transactions of a block.
func inList(change func(*rand.Rand, []any) []any) func(*rand.Rand, any) any {
	return func(r *rand.Rand, value any) any {
		lists := countLists(value)
		if lists == 0 {
			return value
		}
		left := r.IntN(lists)
		return changeList(value, &left, func(list []any) []any { return change(r, list) })
	}
}

func countLists(value any) (count int) {
	switch v := value.(type) {
	case []any:
		if len(v) > 0 {
			count++
		}
		for _, element := range v {
			count += countLists(element)
		}
	case map[string]any:
		for _, member := range v {
			count += countLists(member)
		}
	}
	return count
}

// changeList changes the list that comes after `left` others.
func changeList(value any, left *int, change func([]any) []any) any {
	switch v := value.(type) {
	case []any:
		if len(v) == 0 {
			return v
		}
		if *left == 0 {
			*left--
			return change(v)
		}
		*left--
		for i := range v {
			v[i] = changeList(v[i], left, change)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			v[key] = changeList(v[key], left, change)
		}
	}
	return value
}

// transportLie is a way to answer a request with what is no answer.
type transportLie struct {
	name   string
	answer func(w http.ResponseWriter, r *http.Request)
}

const begun = `{"jsonrpc":"2.0","id":1,"result":"0x`

var transportLies = []transportLie{
	{"a stall", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
	{"an endless trickle", func(w http.ResponseWriter, r *http.Request) {
		for _, err := io.WriteString(w, begun); err == nil && r.Context().Err() == nil; _, err = io.WriteString(w, "0") {
			_ = http.NewResponseController(w).Flush()
			time.Sleep(20 * time.Millisecond)
		}
	}},
	{"an endless answer", func(w http.ResponseWriter, r *http.Request) {
		zeros := strings.Repeat("0", 1<<20)
		for _, err := io.WriteString(w, begun); err == nil && r.Context().Err() == nil; {
			_, err = io.WriteString(w, zeros)
		}
	}},
	{"a gigantic answer, packed", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb())
	}},
	{"a gigantic promise", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000000000000")
		_, _ = io.WriteString(w, begun)
	}},
	{"half an answer", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, begun) }},
	{"no JSON", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }},
	{"a dropped connection", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
	{"bad gateway", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }},
	{"too many requests", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }},
	{"moved", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
	}},
}

// bomb is an answer of 256 MiB in gzip's format.
var bomb = sync.OnceValue(func() []byte {
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	_, _ = io.WriteString(w, begun)
	zeros := bytes.Repeat([]byte("0"), 1<<20)
	for range 256 {
		_, _ = w.Write(zeros)
	}
	_ = w.Close()
	return packed.Bytes()
})
