package usage

import (
	"runtime"
	"testing"
)

func TestUseIsCounted(t *testing.T) {
	before := Read()
	const size, page = 256 << 20, 4096
	held := make([]byte, size)
	for i := 0; i < size; i += page {
		held[i] = 1
	}
	after := Read()
	runtime.KeepAlive(held)
	if after.Processor <= before.Processor {
		t.Errorf("processor time went from %v to %v, expected more", before.Processor, after.Processor)
	}
	if after.PeakMemory < size {
		t.Errorf("at most %d bytes of memory were used, expected at least the %d that are held", after.PeakMemory, size)
	}
}
