//go:build unix

package usage

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
)

const size = 256 << 20

// hold uses memory and returns it.
func hold() []byte {
	const page = 4096
	held := make([]byte, size)
	for i := 0; i < size; i += page {
		held[i] = 1
	}
	return held
}

func TestUseIsCounted(t *testing.T) {
	before := Read()
	held := hold()
	after := Read()
	runtime.KeepAlive(held)
	if after.Processor <= before.Processor {
		t.Errorf("processor time went from %v to %v, expected more", before.Processor, after.Processor)
	}
	if after.PeakMemory < size {
		t.Errorf("at most %d bytes of memory were used, expected at least the %d that are held", after.PeakMemory, size)
	}
}

// TestMemoryOfAChildIsCounted runs TestUseIsCounted in a child.
func TestMemoryOfAChildIsCounted(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), program, "-test.run=^TestUseIsCounted$")
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := PeakMemory(child.ProcessState); got < size || got > 64*size {
		t.Errorf("the child used at most %d bytes of memory, expected at least the %d that it held", got, size)
	}
}
