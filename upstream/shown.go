package upstream

import "ashlar/endpoint"

// shownBytes is how much of an error is shown, which may repeat what the node has sent.
const shownBytes = 500

// shown returns an error as the log and the status have it.
func (n *node) shown(err error) string { return n.showing(err).Error() }

// showing wraps an error of a call, whose text gets into logs, and into what clients are told.
func (n *node) showing(err error) error {
	return endpoint.Shown(err, n.to.template.URL, shownBytes, n.to.words...)
}
