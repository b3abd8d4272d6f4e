package dashboard

// What stands for a key and its password where they are not shown any more.
const (
	keyPlace      = "YOUR-KEY"
	passwordPlace = "YOUR-PASSWORD"
)

// use is lines to paste for one network, with a key or a placeholder for it.
type use struct {
	Network  string
	URL      string
	Socket   string // the same for WebSockets
	Snippets []Snippet
}
