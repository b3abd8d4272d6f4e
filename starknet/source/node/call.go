package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"ashlar/endpoint"
	"ashlar/starknet/source/wire"
)

// CallError is an error that the node answers with.
type CallError struct {
	Code    int64
	Message string
}

func (e *CallError) Error() string {
	return fmt.Sprintf("the node says %q (%d)", e.Message, e.Code)
}

// The codes of errors that mean something here.
const (
	codeBlockNotFound  = 24
	codeNoBlocks       = 32
	codeMethodNotFound = -32601
	codeInvalidParams  = -32602
)

// StatusError is an answer over HTTP that is no answer over JSON-RPC.
type StatusError struct {
	Status int
	Body   string        // its beginning
	After  time.Duration // when the node wants to be asked again; 0 where it does not say
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("the node answers with status %d %s: %q", e.Status, http.StatusText(e.Status), e.Body)
}

// final says that asking again does not help.
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

// call asks the node once. result reads what it answers.
func (n *Node) call(ctx context.Context, method string, params []any, result func(in *wire.Reader) error) error {
	const id = 1 // each request has its own answer over HTTP
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
		return fmt.Errorf("%s: %w", method, statusError(response))
	}
	e := envelope{id: id, in: wire.NewReader(response.Body, n.options.AnswerBytes)}
	if err := e.read(result); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}

func statusError(response *http.Response) *StatusError {
	const most = 200
	beginning, _ := io.ReadAll(io.LimitReader(response.Body, most)) // what there is of it
	e := &StatusError{Status: response.StatusCode, Body: strings.TrimSpace(string(beginning))}
	if seconds, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 16); err == nil {
		e.After = time.Duration(seconds) * time.Second
	}
	return e
}

// envelope is an answer over JSON-RPC, whose members come in any order.
type envelope struct {
	id int64
	in *wire.Reader

	answered bool // there is a result
	failure  *CallError
}

func (e *envelope) read(result func(in *wire.Reader) error) error {
	if err := e.in.Next(); err == io.EOF {
		return errors.New("the answer is empty, expected an object")
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
	if err := e.in.Next(); err != io.EOF { // read to the end, the connection can be used again
		return e.in.Fail(errors.New("the answer goes on after its end"))
	}
	return nil
}

func (e *envelope) member(name string, result func(in *wire.Reader) error) error {
	if name != "id" && name != "result" && name != "error" {
		return e.in.Skip()
	}
	if null, err := e.in.Null(); err != nil || null { // an id is null where a node could not read the request
		return err
	}
	switch name {
	case "id":
		id, err := e.in.Int64()
		if err == nil && id != e.id {
			err = e.in.Fail(fmt.Errorf("found %d, expected %d, the id of the question", id, e.id))
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
	default:
		err = e.in.Skip()
	}
	return err
}
