package dashboard

import (
	"bytes"
	"encoding/json"
)

// callSnippets returns programs that send a request with a key of the visitor; its text is a
// placeholder. A batch, or what is not a request, has none besides the one for curl.
func (v *visit) callSnippets(n *Network, key, request string) []Snippet {
	password := ""
	if k, err := v.own().Find(key); err == nil && k.Guarded {
		password = passwordPlace
	}
	url := endpoint(v.r, n, keyPlace)
	all := []Snippet{{"curl", curlCommand(url, password, compact(request))}}
	var call struct {
		Method string
		Params json.RawMessage
	}
	if json.Unmarshal([]byte(request), &call) != nil || call.Method == "" {
		return all
	}
	if len(call.Params) == 0 {
		call.Params = json.RawMessage("[]")
	}
	return append(all, n.Programs(url, password, call.Method, json.RawMessage(compact(string(call.Params))))...)
}

// compact returns JSON without white space, and any other text as it is.
func compact(text string) string {
	var out bytes.Buffer
	if json.Compact(&out, []byte(text)) != nil {
		return text
	}
	return out.String()
}
