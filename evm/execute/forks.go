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
	for _, fork := range []struct {
		name string
		time *uint64
	}{
		{"Bogota", config.BogotaTime},
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
