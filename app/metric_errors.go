package app

import (
	"maps"
	"strings"
)

// changed reports whether a subject has an error, and another one than at the last scrape: each is logged
// once.
func (c *serviceCollector) changed(subject string, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		delete(c.errors, subject)
		return false
	}
	last := c.errors[subject]
	c.errors[subject] = err.Error()
	return last != err.Error()
}

// networkSubject is before the name of a network in a subject.
const networkSubject = "network "

// keepNetworks forgets the errors of networks that are not served, so that they are logged again if these
// come back with them.
func (c *serviceCollector) keepNetworks(served map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.errors, func(subject, _ string) bool {
		name, of := strings.CutPrefix(subject, networkSubject)
		return of && !served[name]
	})
}
