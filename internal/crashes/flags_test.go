package crashes

import "flag"

// Flags of a test are variables of its package: it is the testing package that parses them.
var (
	wholeFlag = flag.Bool("whole", false, "try every operation of the disk, and hundreds of kills")
	killsFlag = flag.Int("kills", 0, "how many `processes` to kill")
)
