package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// introduced is a writer that hands on what it is given, once.
type introduced chan string

func (i introduced) Write(text []byte) (int, error) {
	i <- string(text)
	return len(text), nil
}

var curlLine = regexp.MustCompile(`curl -s (\S+) -H 'Content-Type: application/json' -d '(.*)'`)

// What the demo prints can be pasted and is answered, new blocks come, the key
// counts, and nothing is left behind.
func TestDemo(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := make(introduced)
	ended := make(chan error, 1)
	demo := Demo{Listen: "127.0.0.1:0", Blocks: 60, Interval: 20 * time.Millisecond}
	go func() { ended <- demo.Run(ctx, whole(out)) }()
	var text string
	select {
	case text = <-out:
	case err := <-ended:
		t.Fatalf("the demo ended before it was introduced: %v", err)
	}
	lines := curlLine.FindAllStringSubmatch(text, -1)
	if len(lines) != 5 {
		t.Fatalf("%d curl lines, expected 5:\n%s", len(lines), text)
	}
	for _, line := range lines {
		answer := post(t, line[1], line[2], http.StatusOK)
		if result := string(answer.Result); answer.Error != nil || len(result) < 10 {
			t.Errorf("%s\nis answered %s %s", line[2], result, answer.Error)
		}
	}
	if events := post(t, lines[4][1], lines[4][2], http.StatusOK).Result; strings.Count(string(events), "from_address") != 10 {
		t.Errorf("%s\nis answered %s, want ten events", lines[4][2], events)
	}
	url := lines[0][1]
	for _, newest := range [][2]string{{url, "eth_blockNumber"}, {lines[4][1], "starknet_blockNumber"}} {
		head := func() string {
			return string(post(t, newest[0], `{"jsonrpc":"2.0","id":1,"method":"`+newest[1]+`","params":[]}`, http.StatusOK).Result)
		}
		for first := head(); head() == first; {
			time.Sleep(time.Millisecond) // ends with the test's own deadline if no block ever comes
		}
	}
	post(t, url[:len(url)-1], lines[0][2], http.StatusUnauthorized)

	stop()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("the demo ended with %v", err)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// A port that is taken is told before anything is made.
func TestDemoPortTaken(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	data := t.TempDir()
	err = Demo{Data: data, Listen: other.Addr().String(), Blocks: 1, Interval: time.Second}.Run(t.Context(), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "use --listen to choose another") {
		t.Errorf("the demo ended with %v", err)
	}
	if made, err := os.ReadDir(data); err != nil || len(made) > 0 {
		t.Errorf("made before that: %v %v", made, err)
	}
}

// whole collects writes into one until the introduction's last line.
func whole(to io.Writer) io.Writer { return &collector{to: to} }

type collector struct {
	to   io.Writer
	text bytes.Buffer
}

func (c *collector) Write(text []byte) (int, error) {
	c.text.Write(text)
	if strings.Contains(c.text.String(), "Ctrl-C") {
		if _, err := c.to.Write(c.text.Bytes()); err != nil {
			return 0, err
		}
		c.text.Reset()
	}
	return len(text), nil
}

type answer struct {
	Result, Error json.RawMessage
}

func post(t *testing.T, url, body string, status int) (a answer) {
	t.Helper()
	response, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != status {
		t.Errorf("HTTP status %d, expected %d", response.StatusCode, status)
	}
	if err := json.NewDecoder(response.Body).Decode(&a); err != nil {
		t.Fatal(err)
	}
	return a
}
