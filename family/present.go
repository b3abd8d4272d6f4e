package family

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// Presenter is the part of a [Family] that describes its networks to people.
type Presenter interface {
	// Presentation is what the dashboard says about a network.
	Presentation() Presentation
	// Methods returns the names of all methods that networks of the family can have.
	Methods() ([]string, error)
	// Demo returns the network of ashlar demo, or nil if the family has none.
	Demo() (Demo, error)
}

// Presentation is what the dashboard says about the networks of a family.
type Presentation struct {
	// History continues "every block from N on", such as ", with its receipts".
	History string
	// Snippets are lines to paste that ask for the newest block. The first of them is
	// for curl. The password is empty if none is needed. A URL needs no quoting, and a
	// password is hexadecimal.
	Snippets func(url, password string) []Snippet
	// Programs call a method with params, which are valid JSON, and print the answer.
	Programs func(url, password, method string, params json.RawMessage) []Snippet
	// HeadResult is the result, as JSON, of the call that the first snippet makes.
	HeadResult func(head uint64) string
}

// Snippet is a text to paste for a tool.
type Snippet struct{ Tool, Text string }

// Demo is a network that ashlar demo makes and serves.
type Demo interface {
	// Name is the network's name.
	Name() string
	// Create makes the network, with its first blocks, if it is not there yet.
	Create(ctx context.Context, p Place, blocks uint64) error
	// Start prepares to make a block at each interval on an open network, after its
	// Serve. The function that it returns does so until ctx is done.
	Start(ctx context.Context, n Network, interval time.Duration) (run func(context.Context) error, err error)
	// Introduce writes calls to paste, of a network with that many blocks at a URL.
	Introduce(out io.Writer, url string, blocks uint64) error
}

// CurlLine is a [Snippet]'s text that calls a method without parameters with curl.
func CurlLine(url, password, method string) string {
	if password != "" {
		url += " -u :" + password
	}
	return Lines("curl "+url+` \`, `  -H 'Content-Type: application/json' \`, `  -d '{"jsonrpc": "2.0", "id": 1,`, `       "method": "`+method+`", "params": []}'`)
}

// WithPassword formats a text with the value of the Authorization header for a
// password; it returns nothing if the password is empty.
func WithPassword(password, format string) string {
	if password == "" {
		return ""
	}
	return fmt.Sprintf(format, "Basic "+base64.StdEncoding.EncodeToString([]byte(":"+password)))
}

// Lines joins lines.
func Lines(all ...string) string { return strings.Join(all, "\n") }

// Count writes a number with its thousands apart, as 1,234,567.
func Count(n uint64) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Counted is Count with a noun, as 1 block and 1,234 blocks.
func Counted(n uint64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + one + "s"
}

// AtIntervals makes one block after another until ctx is done or one cannot be made. A
// block that was begun is finished.
func AtIntervals(ctx context.Context, interval time.Duration, block func(context.Context) error) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := block(context.WithoutCancel(ctx)); err != nil {
				return err
			}
		}
	}
}
