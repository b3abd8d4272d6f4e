package differential

import (
	"strings"

	"github.com/ethereum/go-ethereum/beacon/engine"
	"github.com/ethereum/go-ethereum/common"
)

// addBad gives both nodes a block of Osaka with a wrong state root, and compares the bad
// blocks that they return then: those of Amsterdam are more than either keeps.
func (c *consensus) addBad(e envelope) {
	c.t.Helper()
	if e.payload.Timestamp >= c.amsterdam {
		return
	}
	wrong := e
	wrong.payload.StateRoot = common.Hash{0xba, 0x0d}
	wrong.rehash(c.t)
	c.expect(engine.INVALID+" "+e.payload.ParentHash.Hex(), "a wrong state root", "engine_newPayloadV4", wrong.args()...)

	theirs, ours := result[[]map[string]any](c, c.geth, "debug_getBadBlocks"), result[[]map[string]any](c, c.ashlar, "debug_getBadBlocks")
	if len(ours) != len(theirs) || len(ours) != int(e.payload.Number) || ours[0]["hash"] != wrong.payload.BlockHash.Hex() {
		c.t.Fatalf("%d bad blocks at block %d", len(ours), e.payload.Number)
	}
	for _, block := range ours {
		if reason, _ := block["reason"].(string); !strings.Contains(reason, "state root: expected 0xba0d") {
			c.t.Errorf("reason %q", reason)
		}
		delete(block, "reason")
	}
	var want, got []any
	for i := range theirs {
		want, got = append(want, theirs[i]), append(got, ours[i])
	}
	same(c.t, "debug_getBadBlocks", any(want), any(got))
}
