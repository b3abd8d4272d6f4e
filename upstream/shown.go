package upstream

import "ashlar/endpoint"

// shownBytes is how much of an error is shown, which may repeat what the node has sent.
const shownBytes = 500

// shown returns an error as the log and the status have it.
func (n *node) shown(err error) string {
	return endpoint.Excerpt(err.Error(), n.to.template.URL, shownBytes, n.to.words()...)
}

// shownError is an error of a call to a node, whose text is what [node.shown] returns.
type shownError struct {
	error
	of *node
}

func (e *shownError) Error() string { return e.of.shown(e.error) }

func (e *shownError) Unwrap() error { return e.error }

// showing wraps an error of a call, whose text gets into logs, and into what clients are told.
func (n *node) showing(err error) error { return &shownError{err, n} }
