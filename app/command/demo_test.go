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
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"ashlar/internal/await"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
)

// introduced is a writer that hands on what it is given, once.
type introduced chan string

func (i introduced) Write(text []byte) (int, error) {
	i <- string(text)
	return len(text), nil
}

// runDemo runs a demo until ctx ends. It returns the introduction, and where the demo's end is reported.
func runDemo(ctx context.Context, t *testing.T, demo Demo) (text string, ended <-chan error) {
	t.Helper()
	out, end := make(introduced), make(chan error, 1)
	go func() { end <- demo.Run(ctx, whole(out)) }()
	select {
	case text = <-out:
	case err := <-end:
		t.Fatalf("the demo ended before it was introduced: %v", err)
	}
	return text, end
}

var curlLine = regexp.MustCompile(`curl -s (\S+) -H 'Content-Type: application/json' -d '(.*)'`)

// What the demo prints can be pasted and is answered, new blocks come, the key
// counts, and nothing is left behind.
func TestDemo(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	text, ended := runDemo(ctx, t, Demo{Listen: "127.0.0.1:0", Blocks: 60, Interval: 20 * time.Millisecond})
	lines := curlLine.FindAllStringSubmatch(text, -1)
	if len(lines) != 6 {
		t.Fatalf("%d curl lines, expected 6:\n%s", len(lines), text)
	}
	for _, line := range lines {
		answer := post(t, line[1], line[2], http.StatusOK)
		if result := string(answer.Result); answer.Error != nil || len(result) < 10 {
			t.Errorf("%s\nis answered %s %s", line[2], result, answer.Error)
		}
	}
	if events := post(t, lines[5][1], lines[5][2], http.StatusOK).Result; strings.Count(string(events), "from_address") != 10 {
		t.Errorf("%s\nis answered %s, want ten events", lines[5][2], events)
	}
	url := lines[0][1]
	for _, newest := range [][2]string{{url, "eth_blockNumber"}, {lines[5][1], "starknet_blockNumber"}} {
		head := func() string {
			return string(post(t, newest[0], `{"jsonrpc":"2.0","id":1,"method":"`+newest[1]+`","params":[]}`, http.StatusOK).Result)
		}
		first := head()
		await.Until(t, "a new block", func() bool { return head() != first })
	}
	post(t, url[:len(url)-1], lines[1][2], http.StatusUnauthorized)
	tryAccount(t, ctx, text, url, lines[0][2])

	stop()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("the demo ended with %v", err)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

var (
	privateKey   = regexp.MustCompile(`private key  0x([0-9a-f]{64})`)
	webSocketURL = regexp.MustCompile(`ws://\S+`)
)

// tryAccount checks that the account in the introduction belongs to the private key, that
// its signed transaction, which was sent, enters a block and is not accepted again, and that the WebSocket answers.
func tryAccount(t *testing.T, ctx context.Context, text, url, sent string) {
	t.Helper()
	found := privateKey.FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no private key in\n%s", text)
	}
	key, err := crypto.HexToECDSA(found[1])
	if err != nil {
		t.Fatal(err)
	}
	client, err := ethclient.DialContext(ctx, webSocketURL.FindString(text))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	id, err := client.ChainID(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, "chain ID "+id.String()) {
		t.Errorf("chain ID %s is not in\n%s", id, text)
	}
	sender := crypto.PubkeyToAddress(key.PublicKey)
	await.Until(t, "the transaction to enter a block", func() bool {
		nonce, err := client.NonceAt(ctx, sender, nil)
		if err != nil {
			t.Fatal(err)
		}
		return nonce > 0
	})
	await.Until(t, "the same transaction to have a nonce too low", func() bool {
		again := post(t, url, sent, http.StatusOK)
		switch text := string(again.Error); {
		case strings.Contains(text, "nonce too low"):
			return true
		case strings.Contains(text, "already known"): // the pool follows the head a moment later
			return false
		default:
			t.Fatalf("the same transaction again: %s %s, want nonce too low", again.Result, again.Error)
			return false
		}
	})
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

// A directory of another server gets no network of the demo, and no account with the demo's password.
func TestDemoBesideOthers(t *testing.T) {
	for folder, want := range map[string]string{
		"networks/mainnet": "has the network mainnet, which is none of the demo's",
		"accounts":         "has accounts and no network of the demo", // such as of a server of forwarded networks
	} {
		data := t.TempDir()
		if err := os.MkdirAll(filepath.Join(data, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 30*time.Second) // a demo that is not refused runs until its end
		err := Demo{Data: data, Listen: "127.0.0.1:0", Blocks: 1, Interval: time.Second}.Run(ctx, io.Discard)
		stop()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("beside %s the demo ended with %v", folder, err)
		}
		for _, made := range []string{"accounts/LOCK", "networks/demo"} {
			if _, err := os.Stat(filepath.Join(data, made)); err == nil {
				t.Errorf("%s was made beside %s", made, folder)
			}
		}
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

// A demo that goes on with fewer blocks than a new one has names only these in its examples.
func TestDemoGoesOnWithFewerBlocks(t *testing.T) {
	data := t.TempDir()
	for _, blocks := range []uint64{30, 3000} {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		text, ended := runDemo(ctx, t, Demo{Data: data, Listen: "127.0.0.1:0", Blocks: blocks, Interval: 100 * time.Millisecond})
		lines := curlLine.FindAllStringSubmatch(text, -1)
		for _, line := range lines[1:] { // the first is the account's first transaction, which is known then
			if answer := post(t, line[1], line[2], http.StatusOK); answer.Error != nil {
				t.Errorf("with --blocks %d: %s\nis answered %s", blocks, line[2], answer.Error)
			}
		}
		head := func() string {
			return string(post(t, lines[0][1], `{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}`, http.StatusOK).Result)
		}
		await.Until(t, "a block that is not settled", func() bool { return len(head()) == len(`"0x1e"`) && head() > `"0x1e"` })
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the demo ended with %v", err)
		}
	}
}
