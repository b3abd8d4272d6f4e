package archive_test

import (
	"strings"
	"testing"

	"ashlar/evm/archive"
)

// Proxies that share calls among nodes learn from the words of an error that a node lacks history. If they do not know the
// words, they take the node for broken, or ask again without end. These are the words for which eRPC and dshackle look.
func TestPrunedIsUnderstoodByProxies(t *testing.T) {
	for kind, want := range map[archive.Kind]string{
		archive.OfBlock: "block 5 is not available",
		archive.OfState: "historical state is not available",
		archive.OfTries: "missing trie node",
	} {
		err := &archive.Pruned{Kind: kind, Number: 5, First: 12}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q, want %q in it", err, want)
		}
	}
}
