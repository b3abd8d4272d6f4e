//go:build !unix

package usage

import (
	"os"
	"time"
)

// Read returns zeros: the system does not say.
func Read() Used { return Used{} }

// PeakMemory returns 0: the system does not say.
func PeakMemory(*os.ProcessState) int64 { return 0 }

// ThreadProcessor returns 0: the system does not say.
func ThreadProcessor() time.Duration { return 0 }
