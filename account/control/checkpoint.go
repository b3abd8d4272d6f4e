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
	"time"
)

// Checkpoint is a copy of an open store, see kv.Checkpointer.
type Checkpoint struct {
	Store string `json:"store"` // its name, as the process that makes it chooses
	Dir   string `json:"dir"`
}

// checkpointPath is the path of the operation that makes copies. Its response does not end
// until the client closes the connection: the copies exist as long as that is open, so a
// client that is killed leaves none.
const checkpointPath = "/checkpoint"

func (s *Server) serveCheckpoint(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		write(w, nil, err)
		return
	}
	made, release, err := s.process.Checkpoint(r.Context())
	if err != nil {
		write(w, nil, err)
		return
	}
	defer func() {
		if err := release(); err != nil {
			slog.Error("remove copies of stores failed", "error", err)
		}
	}()
	connection := http.NewResponseController(w)
	err = errors.Join(connection.SetReadDeadline(time.Time{}), connection.SetWriteDeadline(time.Time{}))
	if err != nil {
		write(w, nil, err)
		return
	}
	write(w, made, nil)
	if err := connection.Flush(); err != nil {
		return // the client has gone
	}
	select {
	case <-r.Context().Done():
	case <-ctx.Done():
	}
}

// errServerStopped is the cause with which the context of Copies is canceled.
var errServerStopped = errors.New("the server stopped")

// Copies are copies of the stores that the server has open.
type Copies struct {
	Made []Checkpoint
	body io.ReadCloser
	end  context.CancelCauseFunc
}

// Checkpoint has the server make copies of its stores. They exist until Copies.Close, or
// until the server stops: then the returned context is canceled.
func (c *Client) Checkpoint(ctx context.Context) (context.Context, *Copies, error) {
	ctx, end := context.WithCancelCause(ctx)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://control"+checkpointPath, bytes.NewReader(nil))
	if err != nil {
		end(nil)
		return nil, nil, err
	}
	response, err := (&http.Client{Transport: c.http.Transport}).Do(request) // it has no time limit
	if err != nil {
		end(nil)
		return nil, nil, fmt.Errorf("ask the running server: %w", err)
	}
	copies := &Copies{body: response.Body, end: end}
	if response.StatusCode != http.StatusOK {
		return nil, nil, errors.Join(refusal(response), copies.Close())
	}
	decoder := json.NewDecoder(response.Body)
	if err := decoder.Decode(&copies.Made); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("ask the running server: its answer: %w", err), copies.Close())
	}
	go func() { // ends with the connection, at the latest when Close ends that
		_, _ = io.Copy(io.Discard, response.Body)
		end(errServerStopped)
	}()
	return ctx, copies, nil
}

// Close has the server remove the copies.
func (c *Copies) Close() error {
	c.end(context.Canceled)
	return c.body.Close()
}
