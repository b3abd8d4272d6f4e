package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"ashlar/endpoint"
	"ashlar/limit"
)

// transport sends requests to one node.
type transport struct {
	template *http.Request // copied for each request
	words    []string      // of the configured headers, which may have the node's key
	http     *http.Client
	most     int64 // bytes of an answer
}

// idleConnections is how many connections to a node are kept.
const idleConnections = 64

func newTransport(n *Node, most int64) (*transport, error) {
	template, err := n.Template()
	if err != nil {
		return nil, err
	}
	words := wordsOf(template.Header)
	template.Method = http.MethodPost
	template.Header.Set("Content-Type", "application/json")
	to := endpoint.Transport()
	to.MaxIdleConnsPerHost = idleConnections
	client := &http.Client{
		Transport: to,
		// A redirect would take the headers, and with them the key, elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &transport{template: template, words: words, http: client, most: most}, nil
}

// wordsOf returns the words of headers, of which one may be a key.
func wordsOf(headers http.Header) (all []string) {
	for _, values := range headers {
		for _, value := range values {
			all = append(all, strings.Fields(value)...)
		}
	}
	return all
}

// request is a call as it is sent.
type request struct {
	id     int
	method string
	params json.RawMessage // empty: none
}

// response is an answer as it arrives.
type response struct {
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *NodeError      `json:"error"`
}

// outcome returns the result of a response, or its error.
func (r *response) outcome() (json.RawMessage, error) {
	switch {
	case r.Error != nil:
		return nil, r.Error
	case r.Result == nil:
		return nil, errors.New("the answer has neither result nor error")
	}
	return r.Result, nil
}

// append appends the request as JSON. Params are valid JSON.
func (r *request) append(out []byte) []byte {
	params := r.params
	if len(params) == 0 {
		params = json.RawMessage("[]")
	}
	method, _ := json.Marshal(r.method) // a string
	out = strconv.AppendInt(append(out, `{"jsonrpc":"2.0","id":`...), int64(r.id), 10)
	out = append(append(out, `,"method":`...), method...)
	return append(append(append(out, `,"params":`...), params...), '}')
}

// call makes one call. The account for which ctx is holds the answer until it is decoded.
func (t *transport) call(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	lease := limit.Borrow(ctx)
	defer lease.Release()
	one := request{1, method, params}
	body, err := t.post(ctx, one.append(nil), &lease)
	if err != nil {
		return nil, err
	}
	var r response
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	return r.outcome()
}

// batch sends requests, whose IDs are their indexes, in one. The error is that of all.
func (t *transport) batch(ctx context.Context, requests []request) ([]Answer, error) {
	lease := limit.Borrow(ctx)
	defer lease.Release()
	text := []byte{'['}
	for i := range requests {
		if i > 0 {
			text = append(text, ',')
		}
		text = requests[i].append(text)
	}
	body, err := t.post(ctx, append(text, ']'), &lease)
	var node *NodeError
	switch {
	case refuses(err), errors.As(err, &node) && classify("", nil, node) != throttled:
		return nil, fmt.Errorf("%w: %w", errNoBatch, err)
	case err != nil:
		return nil, err
	}
	var responses []response
	if err := json.Unmarshal(body, &responses); err != nil {
		var whole response
		if json.Unmarshal(body, &whole) == nil && whole.Error != nil {
			return nil, fmt.Errorf("%w: %w", errNoBatch, whole.Error)
		}
		return nil, fmt.Errorf("read the answers to a batch: %w", err)
	}
	answers := make([]Answer, len(requests))
	for i := range answers {
		answers[i].Err = errors.New("the batch of answers has none to this call")
	}
	for i := range responses {
		if id, err := strconv.Atoi(string(responses[i].ID)); err == nil && 0 <= id && id < len(answers) {
			answers[id].Result, answers[id].Err = responses[i].outcome()
		}
	}
	return answers, nil
}

// errNoBatch means that a node refused a batch as a whole.
var errNoBatch = errors.New("the node refused a batch")

// post sends a body and returns that of the answer. The lease is for the answer and for a copy
// of it, which decoding makes.
func (t *transport) post(ctx context.Context, text []byte, lease *limit.Lease) ([]byte, error) {
	ctx, connected := endpoint.Traced(ctx)
	r := t.template.WithContext(ctx)
	r.ContentLength = int64(len(text))
	// If the node has closed an idle connection, the body is sent again on another one.
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	r.Body, _ = r.GetBody()
	answer, err := t.http.Do(r)
	if err != nil {
		err = endpoint.WithoutURL(err)
		if !connected() {
			err = fmt.Errorf("%w: %w", errUnsent, err)
		}
		return nil, err
	}
	defer answer.Body.Close()
	body, err := t.read(answer.Body, lease)
	switch {
	case err != nil:
		return nil, err
	case answer.StatusCode/100 != 2:
		// Some nodes send JSON-RPC errors with an HTTP error status.
		var r response
		said := ""
		if answer.StatusCode != http.StatusTooManyRequests && json.Unmarshal(body, &r) == nil && r.Error != nil && r.Error.Message != "" {
			if !ofOperator(answer.StatusCode) || IsOfNode("", r.Error) || IsTooMuch(r.Error) {
				return nil, r.Error
			}
			said = r.Error.Error()
		}
		if answer.StatusCode == http.StatusRequestEntityTooLarge {
			return nil, fmt.Errorf("%w: %d bytes", ErrCallTooLarge, len(text))
		}
		return nil, &httpError{answer.StatusCode, retryAfter(answer.Header.Get("Retry-After")), said}
	}
	return body, nil
}

// read reads the body of an answer. The error is limit.ErrMemory if the lease is used up. Memory
// grows with what has arrived, because a node may announce more than it sends.
func (t *transport) read(from io.Reader, lease *limit.Lease) ([]byte, error) {
	body := make([]byte, 0, 512)
	for {
		if len(body) == cap(body) {
			if !lease.Hold(2 * 2 * cap(body)) { // the larger buffer, and a decoded copy of it
				return nil, fmt.Errorf("read the answer: %w", limit.ErrMemory)
			}
			body = slices.Grow(body, cap(body))
		}
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case int64(len(body)) > t.most:
			return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, t.most)
		case errors.Is(err, io.EOF):
			return body, nil
		case err != nil:
			return nil, fmt.Errorf("read the answer: %w", endpoint.WithoutURL(err))
		}
	}
}

// retryAfter reads the header Retry-After, in seconds; 0: it has none.
func retryAfter(value string) time.Duration {
	seconds, err := strconv.ParseUint(value, 10, 16)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
