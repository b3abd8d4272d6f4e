package query

import (
	"testing"

	"ashlar/chain"
	"ashlar/evm/archive"
	"ashlar/evm/proven"
	"ashlar/internal/raced"

	"github.com/ethereum/go-ethereum/common"
)

// TestCallsShareWhatIsKept: traces share the decoded blocks, and the readers of a call what it has read.
func TestCallsShareWhatIsKept(t *testing.T) {
	c := newInputCache()
	added := 0
	raced.Together(func() { c.find(common.Hash{1}) }, func() {
		added++
		c.add(common.Hash{byte(added)}, &storedInput{header: new(archive.Header)})
	})
	r := new(recording)
	read := func() { r.add(touched{kind: touchedAccount}) }
	raced.Together(read, read)
}

// TestViewsShareTheHead: questions that come at the same moment decide which head clients see.
func TestViewsShareTheHead(t *testing.T) {
	open := func(number uint64) *remote {
		t.Helper()
		opened, err := proven.OpenTip(t.Context(), chain.Ref{Number: number})
		if err != nil {
			t.Fatal(err)
		}
		return &remote{tip: opened}
	}
	r, executed := open(2*CatchUpBlocks), open(0)
	takes := func() { r.takesHead(executed.tip) }
	raced.Together(takes, takes)
	if !r.takesHead(executed.tip) {
		t.Error("the head is that of blocks that are far behind")
	}
}
