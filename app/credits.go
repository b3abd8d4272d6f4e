package app

import (
	"log/slog"
	"maps"
	"slices"

	"ashlar/app/config"
	"ashlar/gateway"
	"ashlar/jsonrpc"
)

// credits returns the price of a method: from the configuration, or else from its
// description.
func credits(c *config.Config, method *jsonrpc.Method) int {
	if set, ok := c.Credits[method.Name]; ok {
		return set
	}
	if set, ok := c.Credits[config.OtherCredits]; ok && method.Cost.Credits == jsonrpc.UsualCredits {
		return set
	}
	return method.Cost.Credits
}

// warnOfCredits logs methods that have credits in the configuration but are not served by
// any network: they may be misspelled.
func warnOfCredits(c *config.Config, networks []gateway.Network) {
	for _, method := range slices.Sorted(maps.Keys(c.Credits)) {
		served := func(n gateway.Network) bool { return n.Methods.Find(method) != nil }
		if method != config.OtherCredits && !slices.ContainsFunc(networks, served) {
			slog.Warn("credits are set for a method that no network serves", "method", method)
		}
	}
}
