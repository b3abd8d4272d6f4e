package chain

import "fmt"

// TooManyLogs means that more logs match a filter than a limit allows.
type TooManyLogs struct {
	Limit int
	// If Fits, the blocks From to To, which begin where the filter begins, have at most Limit logs. Else the block From
	// may have more by itself.
	From, To uint64
	Fits     bool
}

func (e *TooManyLogs) Error() string {
	return fmt.Sprintf("query returned more than %d results", e.Limit)
}
