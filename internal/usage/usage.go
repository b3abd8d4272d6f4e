// Package usage measures what processes have used of the machine: this one, and children that have ended.
package usage

import "time"

// Used is what the process has used since it began.
type Used struct {
	Processor  time.Duration // of the program, and of the system on its behalf
	PeakMemory int64         // greatest resident memory, in bytes
}
