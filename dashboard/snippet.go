package dashboard

import "strings"

// Placeholders for a key and its password, which are not shown again.
const (
	keyPlace      = "YOUR-KEY"
	passwordPlace = "YOUR-PASSWORD"
)

// curlCommand returns the command that sends a request with curl.
func curlCommand(url, password, request string) string {
	if password != "" {
		url += " -u :" + password
	}
	return "curl " + url + " \\\n  -H 'Content-Type: application/json' \\\n  -d '" + strings.ReplaceAll(request, "'", `'\''`) + "'"
}

// use is example calls for one network, with a key or a placeholder.
type use struct {
	Network  string
	URL      string
	Socket   string // URL for WebSockets
	Snippets []Snippet
}
