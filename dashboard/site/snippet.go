package site

import (
	"encoding/json"
	"strings"
)

// Placeholders for a key and its password, which are not shown again.
const (
	KeyPlace      = "YOUR-KEY"
	PasswordPlace = "YOUR-PASSWORD"
)

// CurlCommand returns the command that sends a request with curl.
func CurlCommand(url, password, request string) string {
	if password != "" {
		url += " -u :" + password
	}
	return "curl " + url + " \\\n  -H 'Content-Type: application/json' \\\n  -d '" + strings.ReplaceAll(request, "'", `'\''`) + "'"
}

// Use is example calls for one network, with a key or a placeholder.
type Use struct {
	Network  string
	URL      string
	Socket   string // URL for WebSockets
	Snippets []Snippet
}

// ExampleRequest returns a request that calls a method with its example parameters.
func (v *Visit) ExampleRequest(method *Method) string {
	params, err := method.ExampleParams(v.R.Context())
	if err != nil { // no data for an example, as on a network without blocks
		params = json.RawMessage("[]")
	}
	return RequestText(method.Name, params)
}

// RequestText returns a request, indented.
func RequestText(method string, params json.RawMessage) string {
	request, err := json.MarshalIndent(struct {
		Version string          `json:"jsonrpc"`
		ID      int             `json:"id"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params"`
	}{"2.0", 1, method, params}, "", "  ")
	if err != nil {
		return ""
	}
	return string(request)
}
