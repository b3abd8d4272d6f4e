package api

// Lose lets go of subscribers and filters, as where what has changed cannot be read.
func (a *API) Lose() { a.live.lose() }
