package api

import "ashlar/forwarded"

// start is where a subscriber or filter begins. A client whose view is not the published one joins:
// it takes part from the first round that takes its head after the client subscribed. In that round
// the client gets the updates from its own view to the round's head. All others get those from the
// published head.
type start struct {
	view  *forwarded.View // of the chain when the client subscribed, as long as it joins; else nil
	round uint64          // up to which it takes part in none
}

// joinsIn reports whether a round is the first in which the client takes part, and in which it gets the
// updates from its own view.
func (s *start) joinsIn(r *round) bool { return s.view != nil && r.number > s.round }

// wants reports whether the client is to be notified of an update that is published to all.
func (s *start) wants(u *update) bool { return s.view == nil && u.round > s.round }
