package app

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"ashlar/gateway"
	"ashlar/jsonrpc"
)

// otherCredits is the name under which the configuration sets the price of all methods
// that cost [jsonrpc.UsualCredits] by their descriptions.
const otherCredits = "other"

// credits returns what a call of each method costs: what the configuration says, or else
// the method's description.
func (c *Config) credits(method *jsonrpc.Method) int {
	if credits, ok := c.Credits[method.Name]; ok {
		return credits
	}
	if credits, ok := c.Credits[otherCredits]; ok && method.Cost.Credits == jsonrpc.UsualCredits {
		return credits
	}
	return method.Cost.Credits
}

// warnOfCredits logs the methods that the configuration sets credits for and no network
// serves: they may be misspelled.
func (c *Config) warnOfCredits(networks []gateway.Network) {
	for _, method := range slices.Sorted(maps.Keys(c.Credits)) {
		served := func(n gateway.Network) bool { return n.Methods.Find(method) != nil }
		if method != otherCredits && !slices.ContainsFunc(networks, served) {
			slog.Warn("credits are set for a method that no network serves", "method", method)
		}
	}
}

func checkCredits(credits map[string]int) error {
	var problems []error
	for method, n := range credits {
		if n < 0 || n > 1_000_000 {
			problems = append(problems, fmt.Errorf("%s costs %d credits: expected from 0 to 1000000", method, n))
		}
	}
	return errors.Join(problems...)
}
