package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"ashlar/endpoint"
	"ashlar/starknet/source/wire"
)

// CallError is an error in a JSON-RPC response.
type CallError struct {
	Code    int64
	Message string
}

func (e *CallError) Error() string {
	return fmt.Sprintf("the node returned the error %q (%d)", e.Message, e.Code)
}

// Error codes that are handled specially.
const (
	codeBlockNotFound  = 24
	codeNoBlocks       = 32
	codeMethodNotFound = -32601
	codeInvalidParams  = -32602
)

// StatusError is an HTTP response with an error status.
type StatusError struct {
	Status int
	Body   string        // beginning of the body, without keys
	After  time.Duration // requested delay before a retry; 0 if none
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("the node returned status %d %s: %q", e.Status, http.StatusText(e.Status), e.Body)
}

// final reports whether retrying is useless.
func final(err error) bool {
	var call *CallError
	if errors.As(err, &call) {
		return call.Code == codeMethodNotFound || call.Code == codeInvalidParams
	}
	var status *StatusError
	if errors.As(err, &status) {
		switch status.Status {
		case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
			return false
		}
		return status.Status < http.StatusInternalServerError
	}
	return false
}

// call makes one request. result reads the result.
func (n *Node) call(ctx context.Context, method string, params []any, result func(in *wire.Reader) error) error {
	const id = 1 // the same for all: each HTTP request has its own response
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	ctx, cancel := context.WithTimeout(ctx, n.options.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, n.options.URL, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%s: %w", method, endpoint.WithoutURL(err))
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := n.options.HTTP.Do(request)
	if err != nil {
		return fmt.Errorf("%s: %w", method, endpoint.WithoutURL(err))
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %w", method, n.statusError(response))
	}
	e := envelope{id: id, url: n.url, in: wire.NewReader(response.Body, n.options.AnswerBytes)}
	if err := e.read(result); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}

// shownBytes is how much of a node's text an error has.
const shownBytes = 200

func (n *Node) statusError(response *http.Response) *StatusError {
	beginning, _ := io.ReadAll(io.LimitReader(response.Body, 16*shownBytes)) // a partial body is good enough
	e := &StatusError{Status: response.StatusCode, Body: endpoint.Excerpt(strings.TrimSpace(string(beginning)), n.url, shownBytes)}
	if seconds, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 16); err == nil {
		e.After = time.Duration(seconds) * time.Second
	}
	return e
}

// envelope reads a JSON-RPC response, whose members may come in any order.
type envelope struct {
	id  int64
	url *url.URL // of the node
	in  *wire.Reader

	answered bool // the response has a result
	failure  *CallError
}

func (e *envelope) read(result func(in *wire.Reader) error) error {
	if err := e.in.Next(); err == io.EOF {
		return errors.New("the response is empty, expected an object")
	} else if err != nil {
		return err
	}
	if err := e.in.Object(func(name string) error { return e.member(name, result) }, "id"); err != nil {
		return err
	}
	switch {
	case e.failure != nil:
		return e.failure
	case !e.answered:
		return e.in.FailAt("result", errors.New("missing"))
	}
	if err := e.in.Next(); err != io.EOF { // read to the end, so that the connection can be reused
		return e.in.Fail(errors.New("unexpected data after the response"))
	}
	return nil
}

func (e *envelope) member(name string, result func(in *wire.Reader) error) error {
	if name != "id" && name != "result" && name != "error" {
		return e.in.Skip()
	}
	if null, err := e.in.Null(); err != nil || null { // the id is null if the node could not parse the request
		return err
	}
	switch name {
	case "id":
		id, err := e.in.Int64()
		if err == nil && id != e.id {
			err = e.in.Fail(fmt.Errorf("found %d, expected %d, the id of the request", id, e.id))
		}
		return err
	case "result":
		e.answered = true
		return result(e.in)
	}
	e.failure = new(CallError)
	return e.in.Object(e.failureMember, "code", "message")
}

func (e *envelope) failureMember(name string) (err error) {
	switch name {
	case "code":
		e.failure.Code, err = e.in.Int64()
	case "message":
		e.failure.Message, err = e.in.Text()
		e.failure.Message = endpoint.Excerpt(e.failure.Message, e.url, shownBytes)
	default:
		err = e.in.Skip()
	}
	return err
}
