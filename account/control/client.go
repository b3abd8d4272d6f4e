package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"ashlar/account"
)

// answerTime is how long a command waits for a server that accepts and says nothing.
const answerTime = 30 * time.Second

// Client asks the process that has a data directory open.
type Client struct {
	directory *directory
	http      *http.Client
}

// Dial returns a client of the process that listens in the data directory dir. The
// error tells if there is none. The client must be closed.
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
	return &Client{directory: d, http: &http.Client{Transport: transport, Timeout: answerTime}}, nil
}

// Close releases what the client holds.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return c.directory.Close()
}

// Create implements Keys.
func (c *Client) Create(ctx context.Context, n account.NewKey) (issued account.Issued, err error) {
	err = c.ask(ctx, http.MethodPost, "/keys", n, &issued)
	return issued, err
}

// List implements Keys.
func (c *Client) List(ctx context.Context) (keys []account.Key, err error) {
	err = c.ask(ctx, http.MethodGet, "/keys", nil, &keys)
	return keys, err
}

// Revoke implements Keys.
func (c *Client) Revoke(ctx context.Context, idOrName string) (k account.Key, err error) {
	err = c.ask(ctx, http.MethodPost, "/keys/revoke", revokeRequest{idOrName}, &k)
	return k, err
}

// Restrict implements Keys.
func (c *Client) Restrict(ctx context.Context, idOrName string, rules account.Rules) (k account.Key, err error) {
	err = c.ask(ctx, http.MethodPost, "/keys/restrict", restrictRequest{idOrName, rules}, &k)
	return k, err
}

// Status decodes what the server says of itself into out.
func (c *Client) Status(ctx context.Context, out any) error {
	return c.ask(ctx, http.MethodGet, "/status", nil, out)
}

// ask makes one request; in may be nil.
func (c *Client) ask(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(raw)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://control"+path, body)
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

// serverError is an error of the other process, of the same kind as it was there.
type serverError struct {
	text string
	kind error // may be nil
}

func (e *serverError) Error() string { return e.text }
func (e *serverError) Unwrap() error { return e.kind }

func refusal(response *http.Response) error {
	var answer errorAnswer
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Error == "" {
		return fmt.Errorf("ask the running server: it answered %s", response.Status)
	}
	e := &serverError{text: answer.Error}
	switch response.StatusCode {
	case http.StatusNotFound:
		e.kind = account.ErrNoKey
	case http.StatusConflict:
		e.kind = account.ErrAmbiguous
	}
	return e
}
