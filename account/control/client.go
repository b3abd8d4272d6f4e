package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// answerTime is how long a client waits for the server's response to most operations.
const answerTime = 30 * time.Second

// Client is a connection to the process that has a data directory open.
type Client struct {
	directory *directory
	http      *http.Client
	answer    time.Duration // answerTime
}

// Dial connects to the server of the data directory dir. It fails if no process listens
// there. The client must be closed.
func Dial(ctx context.Context, dir string) (*Client, error) {
	d, err := openDirectory(dir)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	connect := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", d.address(socketName))
	}
	conn, err := connect(ctx, "", "")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("control socket in %s: %w", dir, err), d.Close())
	}
	if err := conn.Close(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	transport := &http.Transport{DialContext: connect}
	return &Client{d, &http.Client{Transport: transport}, answerTime}, nil
}

// Close closes idle connections and the directory.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return c.directory.Close()
}

// Service returns the operations performed by the server.
func (c *Client) Service() Service {
	return Service{keysClient{c}, accountsClient{c}, usageClient{c}, func(ctx context.Context) (string, error) {
		return readDashboard.ask(ctx, c, nothing{})
	}}
}

// readDashboard reads the URL of the server's dashboard.
var readDashboard = operation[nothing, string]{"/dashboard"}

// readStatus reads the server's status.
var readStatus = operation[nothing, json.RawMessage]{"/status"}

// Status decodes the server's status into out.
func (c *Client) Status(ctx context.Context, out any) error {
	raw, err := readStatus.ask(ctx, c, nothing{})
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, out)
}

// ask performs one operation, which must not take longer than c.answer.
func (c *Client) ask(ctx context.Context, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, c.answer)
	defer cancel()
	return c.await(ctx, path, in, out)
}

// await performs one operation, however long it takes.
func (c *Client) await(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://control"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("ask the running server: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return refusal(response)
	}
	if err := json.NewDecoder(response.Body).Decode(out); err != nil {
		return fmt.Errorf("ask the running server: its answer: %w", err)
	}
	return nil
}
