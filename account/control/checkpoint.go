package control

import "context"

// Checkpoint is a copy of an open store, see kv.Checkpointer.
type Checkpoint struct {
	Store  string `json:"store"` // its name, as the process that makes it chooses
	Dir    string `json:"dir"`
	Failed string `json:"failed,omitempty"` // why there is no copy
}

// Purposes of copies. A store has one copy for each at a time, so a backup and a snapshot can be
// made side by side. Two backups cannot: a target takes one at a time.
const (
	ForBackup   = "backup"
	ForSnapshot = "snapshot"
)

// Copying says what is to be copied.
type Copying struct {
	For    string   `json:"for"`              // ForBackup or ForSnapshot
	Stores []string `json:"stores,omitempty"` // by name; of those that are open
}

// makeCheckpoint makes copies of open stores.
var makeCheckpoint = loan[Copying, []Checkpoint]{"/checkpoint"}

// Copies are copies of the stores that the server has open. Close has the server remove
// them.
type Copies struct {
	Made []Checkpoint
	*Loan
}

// Checkpoint has the server make copies of stores that it has open. They exist until
// Copies.Close, or until the server stops: then the returned context is canceled.
func (c *Client) Checkpoint(ctx context.Context, what Copying) (context.Context, *Copies, error) {
	held, made, l, err := makeCheckpoint.ask(ctx, c, what)
	if err != nil {
		return nil, nil, err
	}
	return held, &Copies{made, l}, nil
}
