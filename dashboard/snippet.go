package dashboard

// Placeholders for a key and its password, which are not shown again.
const (
	keyPlace      = "YOUR-KEY"
	passwordPlace = "YOUR-PASSWORD"
)

// use is example calls for one network, with a key or a placeholder.
type use struct {
	Network  string
	URL      string
	Socket   string // URL for WebSockets
	Snippets []Snippet
}
