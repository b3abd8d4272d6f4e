package crashes

import "flag"

// Flags of tests are package variables, since package testing parses them.
var (
	wholeFlag = flag.Bool("whole", false, "try every operation of the disk, and hundreds of kills")
	killsFlag = flag.Int("kills", 0, "how many `processes` to kill")
)

// killsOf returns the number of kills: the flag if set, else that for a usual or a whole run.
func killsOf(usual, whole int) int {
	switch {
	case *killsFlag > 0:
		return *killsFlag
	case *wholeFlag:
		return whole
	}
	return usual
}
