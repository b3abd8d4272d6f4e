package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"ashlar/account"
)

// operation is something that can be asked for, declared once for both ends.
type operation[In, Out any] struct{ path string }

// nothing is what an operation is given that needs nothing.
type nothing struct{}

// serve has an operation done for whoever asks for it.
func (o operation[In, Out]) serve(mux *http.ServeMux, do func(context.Context, In) (Out, error)) {
	mux.HandleFunc("POST "+o.path, func(w http.ResponseWriter, r *http.Request) {
		var in In
		body := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
		body.DisallowUnknownFields()
		if err := body.Decode(&in); err != nil {
			write(w, nil, fmt.Errorf("the request's body: %w", err))
			return
		}
		out, err := do(r.Context(), in)
		write(w, out, err)
	})
}

// ask asks the other process for an operation.
func (o operation[In, Out]) ask(ctx context.Context, c *Client, in In) (out Out, err error) {
	err = c.ask(ctx, o.path, in, &out)
	return out, err
}

func write(w http.ResponseWriter, out any, err error) {
	w.Header().Set("Content-Type", formatJSON)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		out = errorAnswer{err.Error(), kindOf(err)}
	}
	// What cannot be written has no reader any more.
	_ = json.NewEncoder(w).Encode(out)
}

// errorAnswer is the answer where an operation fails.
type errorAnswer struct {
	Error string `json:"error"`
	Kind  string `json:"kind,omitempty"` // empty: none that is known
}

// kinds are those of errors that the other process can tell apart, by their names.
func kinds() map[string]error {
	return map[string]error{
		"no key": account.ErrNoKey, "ambiguous": account.ErrAmbiguous, "no account": account.ErrNoAccount,
		"no invitation": account.ErrNoInvitation, "disabled": account.ErrDisabled, "too many": account.ErrTooMany,
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
	return &serverError{answer.Error, kinds()[answer.Kind]}
}
