package crashes

import "flag"

// Flags of a test are variables of its package: it is the testing package that parses them.
var (
	wholeFlag = flag.Bool("whole", false, "try every operation of the disk, and hundreds of kills")
	killsFlag = flag.Int("kills", 0, "how many `processes` to kill")
)

// killsOf is how many kills are wanted: of a usual run, of a whole one, or as said.
func killsOf(usual, whole int) int {
	switch {
	case *killsFlag > 0:
		return *killsFlag
	case *wholeFlag:
		return whole
	}
	return usual
}
