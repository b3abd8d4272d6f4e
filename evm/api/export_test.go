package api

// DropAll ends subscriptions and filters, as happens when changes cannot be read.
func (a *API) DropAll() { a.publisher.dropAll() }
