package api

import (
	"slices"

	"ashlar/evm/query"
)

// newcomer is somebody who begins to listen. The head that clients see moves before it
// is announced, so they may know of blocks that are announced only now; a newcomer is
// not told of these, and joins once the announcements have come to its head.
type newcomer struct {
	view *query.View // which the newcomer could ask when it came
	join func()      // called with the announcer's mu held
}

// begin lets somebody listen from the head on that clients see now. mu is held.
func (a *announcer) begin(n *newcomer) {
	view, err := a.api.chain.View()
	if err != nil { // there is no block yet
		n.join()
		return
	}
	if a.position == nil {
		a.position = view
	}
	if a.moving || len(a.newcomers) > 0 || a.position.Head() != view.Head() {
		n.view = view
		a.newcomers = append(a.newcomers, n)
		return
	}
	n.join()
}

// forgo lets somebody go who may not have joined yet. mu is held.
func (a *announcer) forgo(n *newcomer) {
	a.newcomers = slices.DeleteFunc(a.newcomers, func(other *newcomer) bool { return other == n })
}

// arrive makes a view the position, and lets those join who have come with its head.
func (a *announcer) arrive(at *query.View) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.position = at
	joining := 0
	for ; joining < len(a.newcomers) && a.newcomers[joining].view.Head() == at.Head(); joining++ {
		a.newcomers[joining].join()
	}
	a.newcomers = slices.Delete(a.newcomers, 0, joining)
}
