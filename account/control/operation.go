package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"ashlar/account"
)

// operation declares an operation once for both client and server.
type operation[In, Out any] struct{ path string }

// nothing is the input of an operation without parameters.
type nothing struct{}

// serve registers do as the handler of an operation.
func (o operation[In, Out]) serve(mux *http.ServeMux, do func(context.Context, In) (Out, error)) {
	mux.HandleFunc("POST "+o.path, func(w http.ResponseWriter, r *http.Request) {
		in, err := readBody[In](w, r)
		if err != nil {
			write(w, nil, err)
			return
		}
		out, err := do(r.Context(), in)
		write(w, out, err)
	})
}

// ask performs an operation through the server.
func (o operation[In, Out]) ask(ctx context.Context, c *Client, in In) (out Out, err error) {
	err = c.ask(ctx, o.path, in, &out)
	return out, err
}

// readBody decodes a request's body, and reads it to its end: then the server notices when
// the client closes the connection. The time limit for reading ends: at its end, the operation would be canceled.
func readBody[In any](w http.ResponseWriter, r *http.Request) (in In, err error) {
	body := http.MaxBytesReader(w, r.Body, maxBody)
	decoder := json.NewDecoder(body)
	decoder.DisallowUnknownFields()
	if err = decoder.Decode(&in); err == nil {
		_, err = io.Copy(io.Discard, body)
	}
	err = errors.Join(err, http.NewResponseController(w).SetReadDeadline(time.Time{}))
	if err != nil {
		return in, fmt.Errorf("the request's body: %w", err)
	}
	return in, nil
}

// write sends a response. The time limit begins here: a server's own would include the time that the operation
// took, and a client whose operation took longer would get no answer.
func write(w http.ResponseWriter, out any, err error) {
	// If this fails, the client has gone.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(ioTime))
	w.Header().Set("Content-Type", formatJSON)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		out = errorAnswer{err.Error(), kindOf(err)}
	}
	// On failure the client has gone.
	_ = json.NewEncoder(w).Encode(out)
}

// errorAnswer is the body of an error response.
type errorAnswer struct {
	Error string `json:"error"`
	Kind  string `json:"kind,omitempty"` // empty: none of kinds
}

// kinds maps the names of error kinds, as sent to clients, to their errors.
func kinds() map[string]error {
	return map[string]error{
		"no key": account.ErrNoKey, "ambiguous": account.ErrAmbiguous, "no account": account.ErrNoAccount,
		"no invitation": account.ErrNoInvitation, "disabled": account.ErrDisabled, "too many": account.ErrTooMany,
		"unreadable": account.ErrUnreadable, "last operator": account.ErrLastOperator, "last owner": account.ErrLastOwner,
		"no team": account.ErrNoTeam, "team": account.ErrTeam, "not served": ErrNotServed,
	}
}

func kindOf(err error) string {
	for name, kind := range kinds() {
		if errors.Is(err, kind) {
			return name
		}
	}
	return ""
}

// serverError is an error returned by the server. It keeps its kind.
type serverError struct {
	text string
	kind error // may be nil
}

func (e *serverError) Error() string { return e.text }
func (e *serverError) Unwrap() error { return e.kind }

func refusal(response *http.Response) error {
	var answer errorAnswer
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Error == "" {
		return fmt.Errorf("ask the running server: unexpected status %s", response.Status)
	}
	return &serverError{answer.Error, kinds()[answer.Kind]}
}
