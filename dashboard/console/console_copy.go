package console

import (
	"bytes"
	"encoding/json"

	"ashlar/dashboard/keys"
	"ashlar/dashboard/site"
)

// callSnippets returns programs that send a request with a key of the visitor; its text is a
// placeholder. A batch, or what is not a request, has none besides the one for curl.
func callSnippets(v *site.Visit, n *site.Network, key, request string) []site.Snippet {
	password := ""
	if k, err := keys.Own(v).Find(key); err == nil && k.Guarded {
		password = site.PasswordPlace
	}
	url := site.Endpoint(v.R, n, site.KeyPlace)
	all := []site.Snippet{{Tool: "curl", Text: site.CurlCommand(url, password, compact(request))}}
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
