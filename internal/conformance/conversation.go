package conformance

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ashlar/internal/jsondiff"
)

// Conversation is a recorded file: requests with their responses.
type Conversation struct {
	Name      string // such as eth_getLogs/contract-addr
	Method    string // the folder, such as eth_getLogs
	ShapeOnly bool   // values are specific to the recorded client ("speconly")
	Exchanges []Exchange
}

// Exchange is a request and its recorded response, as transmitted.
type Exchange struct{ Request, Answer []byte }

// ReadConversations reads all *.io files in a folder and its subfolders, sorted by name.
func ReadConversations(folder string) ([]Conversation, error) {
	var all []Conversation
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".io" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, strings.TrimSuffix(path, ".io"))
		if err != nil {
			return err
		}
		c, err := parseConversation(filepath.ToSlash(name), string(text))
		all = append(all, c)
		return err
	})
	slices.SortFunc(all, func(a, b Conversation) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

func parseConversation(name, text string) (Conversation, error) {
	method, _, _ := strings.Cut(name, "/")
	c := Conversation{Name: name, Method: method}
	var request []byte
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "//"):
			c.ShapeOnly = c.ShapeOnly || strings.Contains(line, "speconly:")
		case strings.HasPrefix(line, ">>") && request == nil:
			request = []byte(strings.TrimSpace(line[2:]))
		case strings.HasPrefix(line, "<<") && request != nil:
			c.Exchanges = append(c.Exchanges, Exchange{request, []byte(strings.TrimSpace(line[2:]))})
			request = nil
		case line != "":
			return c, fmt.Errorf("%s, line %d: want //, >> or, after a request, <<: %.80q", name, i+1, line)
		}
	}
	if request != nil || len(c.Exchanges) == 0 {
		return c, fmt.Errorf("%s: a request without its answer, or no request at all", name)
	}
	return c, nil
}

// answer is a decoded response.
type answer struct {
	id, result any
	err        map[string]any
}

func parseAnswer(raw []byte) (answer, error) {
	v, err := jsondiff.Decode(raw)
	if err != nil {
		return answer{}, fmt.Errorf("not JSON: %w: %.200q", err, raw)
	}
	object, ok := v.(map[string]any)
	if !ok || object["jsonrpc"] != "2.0" {
		return answer{}, fmt.Errorf("not a JSON-RPC 2.0 answer: %.200q", raw)
	}
	result, hasResult := object["result"]
	failure, hasError := object["error"]
	if hasResult == hasError {
		return answer{}, fmt.Errorf("want either a result or an error: %.200q", raw)
	}
	a := answer{id: object["id"], result: result}
	if hasError {
		if a.err, ok = failure.(map[string]any); !ok {
			return answer{}, fmt.Errorf("the error is not an object: %.200q", raw)
		}
	}
	return a, nil
}

// compare returns the differences of a response from the recorded one. worded lists those that are
// only in the wording of an error.
func (c Conversation) compare(recorded, got []byte) (wrong, worded []string) {
	want, err := parseAnswer(recorded)
	if err != nil {
		return []string{"the recording: " + err.Error()}, nil
	}
	have, err := parseAnswer(got)
	if err != nil {
		return []string{err.Error()}, nil
	}
	if want.id != have.id {
		wrong = append(wrong, fmt.Sprintf("id: %v against %v", want.id, have.id))
	}
	switch {
	case (want.err == nil) != (have.err == nil):
		wrong = append(wrong, fmt.Sprintf("recorded %.300s, got %.300s", recorded, got))
	case want.err != nil:
		w, m := compareErrors(want.err, have.err)
		return append(wrong, w...), m
	default:
		differ := jsondiff.Values
		if c.ShapeOnly {
			differ = jsondiff.Shapes
		}
		for _, d := range differ(want.result, have.result) {
			if !isTotalDifficulty(c.Method, d) {
				wrong = append(wrong, "result"+d.String())
			}
		}
	}
	return wrong, nil
}

// isTotalDifficulty recognizes totalDifficulty, the one member that Ashlar's blocks have in addition
// to the recorded ones: some clients still read it.
func isTotalDifficulty(method string, d jsondiff.Difference) bool {
	_, absent := d.A.(jsondiff.Absent)
	return absent && d.Path == ".totalDifficulty" && strings.HasPrefix(method, "eth_getBlockBy")
}

// compareErrors compares code, data and message. The message about invalid parameters may differ,
// apart from the part that clients match: recordings contain names of Go types, for example.
func compareErrors(want, have map[string]any) (wrong, worded []string) {
	for _, d := range jsondiff.Values(want, have) {
		if d.Path == ".message" && want["code"] == json.Number("-32602") && !fixedMessage(want["message"]) {
			worded = append(worded, "error"+d.String())
		} else {
			wrong = append(wrong, "error"+d.String())
		}
	}
	return wrong, worded
}

// fixedMessage reports whether clients match this message of an error -32602.
func fixedMessage(message any) bool {
	switch message {
	case "invalid block range params",
		"block range extends beyond current head block",
		"invalid argument 0: cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other":
		return true
	}
	return false
}
