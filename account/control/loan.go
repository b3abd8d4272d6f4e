package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
)

// loan declares an operation that gives the client something until it closes the
// connection. So a client that is killed keeps nothing, and neither does one of a server
// that stops.
type loan[In, Out any] struct{ path string }

// give performs the operation for a client. release is called once the client has closed
// the connection; its context is done if the server is stopping.
type give[In, Out any] func(ctx context.Context, in In) (out Out, release func(context.Context) error, err error)

// serve registers do as the handler of an operation. stop is done when the server stops.
func (o loan[In, Out]) serve(stop context.Context, mux *http.ServeMux, do give[In, Out]) {
	mux.HandleFunc("POST "+o.path, func(w http.ResponseWriter, r *http.Request) {
		in, err := readBody[In](w, r)
		if err != nil {
			write(w, nil, err)
			return
		}
		out, release, err := do(r.Context(), in)
		write(w, out, err)
		if err != nil {
			return
		}
		defer func() {
			if err := release(stop); err != nil {
				slog.Error("cannot take back what a command had from this server", "operation", o.path, "error", err)
			}
		}()
		if err := http.NewResponseController(w).Flush(); err != nil {
			return // the client has gone
		}
		select {
		case <-r.Context().Done():
		case <-stop.Done():
		}
	})
}

// errServerStopped is the cause with which the context of a loan is canceled.
var errServerStopped = errors.New("the server stopped")

// Loan is what a client has from a server until it closes the loan.
type Loan struct {
	body io.ReadCloser
	end  func(cause error)
}

// Close gives it back. It does not wait until the server has it.
func (l *Loan) Close() error {
	l.end(context.Canceled)
	return l.body.Close()
}

// ask performs an operation through the server, without a time limit. The returned context
// is canceled with ctx, and when the server stops. The loan lasts until it is closed: when ctx is canceled, the
// client needs some time to stop using it.
func (o loan[In, Out]) ask(ctx context.Context, c *Client, in In) (_ context.Context, out Out, l *Loan, err error) {
	asking, hangUp := context.WithCancelCause(context.WithoutCancel(ctx))
	notInterrupted := context.AfterFunc(ctx, func() { hangUp(ctx.Err()) }) // not the cause, which the command would show instead
	using, stopUsing := context.WithCancelCause(ctx)
	end := func(cause error) { stopUsing(cause); hangUp(cause) }
	defer func() {
		if l == nil {
			end(nil)
		}
	}()
	body, err := json.Marshal(in)
	if err != nil {
		return nil, out, nil, err
	}
	request, err := http.NewRequestWithContext(asking, http.MethodPost, "http://control"+o.path, bytes.NewReader(body))
	if err != nil {
		return nil, out, nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, out, nil, fmt.Errorf("ask the running server: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, out, nil, errors.Join(refusal(response), response.Body.Close())
	}
	decoder := json.NewDecoder(response.Body)
	if err := decoder.Decode(&out); err != nil {
		return nil, out, nil, errors.Join(fmt.Errorf("ask the running server: its answer: %w", err), response.Body.Close())
	}
	if !notInterrupted() {
		return nil, out, nil, errors.Join(ctx.Err(), response.Body.Close())
	}
	go func() { // ends with the connection, at the latest when Close ends that
		_, _ = io.Copy(io.Discard, response.Body)
		end(errServerStopped)
	}()
	return using, out, &Loan{response.Body, end}, nil
}
