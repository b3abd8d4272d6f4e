package execute

import (
	"time"

	"github.com/ethereum/go-ethereum/params"
)

// Fork is a fork in the schedule of a chain.
type Fork struct {
	Name string
	Time time.Time // of the first blocks under its rules
}

// UnknownFork returns the first fork in the schedule of a chain whose rules this version
// does not know: blocks from then on are refused with [ErrUnknownFork].
func UnknownFork(config *params.ChainConfig) (first Fork, ok bool) {
	bogota := config.BogotaTime
	if isDevelopment(config) {
		bogota = nil
	}
	for _, fork := range []struct {
		name string
		time *uint64
	}{
		{"Bogota", bogota},
		{"UBT", config.UBTTime},
	} {
		if fork.time == nil {
			continue
		}
		if at := time.Unix(int64(*fork.time), 0).UTC(); !ok || at.Before(first.Time) {
			first, ok = Fork{fork.name, at}, true
		}
	}
	return first, ok
}

// unknownRules reports whether rules of a chain are of a fork after Amsterdam whose rules this version
// does not know.
func unknownRules(config *params.ChainConfig, rules params.Rules) bool {
	return rules.IsUBT || rules.IsBogota && !isDevelopment(config)
}

// isDevelopment reports whether a chain is one that geth --dev makes: it has Bogota from its genesis on,
// and not Amsterdam, which comes before Bogota on every other chain. The rules of Bogota are not final,
// but on such a chain they are what go-ethereum makes of them.
func isDevelopment(config *params.ChainConfig) bool {
	return config.BogotaTime != nil && *config.BogotaTime == 0 && config.AmsterdamTime == nil
}
