package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Client is a JSON-RPC client of one endpoint over HTTP. It is safe for concurrent use.
type Client struct {
	URL  string
	http *http.Client
}

// NewClient returns a client of the endpoint at url.
func NewClient(url string) *Client {
	return &Client{URL: url, http: &http.Client{
		Timeout:   2 * time.Minute,
		Transport: &http.Transport{MaxIdleConnsPerHost: 64},
	}}
}

// Answer is a JSON-RPC response. Error is nil if the call succeeded.
type Answer struct {
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *Error          `json:"error"`
}

// Error is the error object of a response.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

func (e *Error) Error() string { return fmt.Sprintf("%d %s", e.Code, e.Message) }

// Post sends a request body and returns the response, whatever its HTTP status.
func (c *Client) Post(ctx context.Context, body []byte) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// Call makes a call and decodes the result. If the server responds with an error, Call returns
// it as an [*Error].
func (c *Client) Call(ctx context.Context, result any, method string, params ...any) error {
	body, err := Request(1, method, params...)
	if err != nil {
		return err
	}
	status, raw, err := c.Post(ctx, body)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	var a Answer
	if err := json.Unmarshal(raw, &a); err != nil {
		return fmt.Errorf("%s: HTTP %d without a JSON-RPC response: %.200q", method, status, raw)
	}
	return decode(a, method, result)
}

// Batch makes a call of method for each element of params in a single HTTP request. It calls
// result with each result in order.
func (c *Client) Batch(ctx context.Context, method string, params [][]any, result func(i int, raw json.RawMessage) error) error {
	calls := make([]json.RawMessage, len(params))
	for i, p := range params {
		call, err := Request(i, method, p...)
		if err != nil {
			return err
		}
		calls[i] = call
	}
	body, err := json.Marshal(calls)
	if err != nil {
		return err
	}
	status, raw, err := c.Post(ctx, body)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	var answers []Answer
	if err := json.Unmarshal(raw, &answers); err != nil {
		return fmt.Errorf("%s: HTTP %d without a batch of responses: %.200q", method, status, raw)
	}
	if len(answers) != len(calls) {
		return fmt.Errorf("%s: %d answers to a batch of %d", method, len(answers), len(calls))
	}
	for i, a := range answers {
		if string(a.ID) != fmt.Sprint(i) {
			return fmt.Errorf("%s: answer %d of the batch has id %s", method, i, a.ID)
		}
		if a.Error != nil {
			return fmt.Errorf("%s, call %d of the batch: %w", method, i, a.Error)
		}
		if err := result(i, a.Result); err != nil {
			return err
		}
	}
	return nil
}

// Request encodes one JSON-RPC request.
func Request(id int, method string, params ...any) ([]byte, error) {
	if params == nil {
		params = []any{}
	}
	return json.Marshal(struct {
		Version string `json:"jsonrpc"`
		ID      int    `json:"id"`
		Method  string `json:"method"`
		Params  []any  `json:"params"`
	}{"2.0", id, method, params})
}

func decode(a Answer, method string, result any) error {
	if a.Error != nil {
		return fmt.Errorf("%s: %w", method, a.Error)
	}
	if a.Result == nil {
		return fmt.Errorf("%s: %w", method, errors.New("answer has neither result nor error"))
	}
	if err := json.Unmarshal(a.Result, result); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}
