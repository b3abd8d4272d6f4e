package control

import "context"

// Checkpoint is a copy of an open store, see kv.Checkpointer.
type Checkpoint struct {
	Store string `json:"store"` // its name, as the process that makes it chooses
	Dir   string `json:"dir"`
}

// makeCheckpoint makes copies of the open stores.
var makeCheckpoint = loan[nothing, []Checkpoint]{"/checkpoint"}

// Copies are copies of the stores that the server has open. Close has the server remove
// them.
type Copies struct {
	Made []Checkpoint
	*Loan
}

// Checkpoint has the server make copies of its stores. They exist until Copies.Close, or
// until the server stops: then the returned context is canceled.
func (c *Client) Checkpoint(ctx context.Context) (context.Context, *Copies, error) {
	held, made, l, err := makeCheckpoint.ask(ctx, c, nothing{})
	if err != nil {
		return nil, nil, err
	}
	return held, &Copies{made, l}, nil
}
