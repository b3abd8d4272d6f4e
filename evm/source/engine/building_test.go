package engine

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

// TestBuildingIsRefused: some clients log only the message of an error and leave out its data, so the message
// says that no blocks are built. The log says it once, although the client asks in every slot.
func TestBuildingIsRefused(t *testing.T) {
	log := new(bytes.Buffer)
	api := New(Config{Chain: &listener{status: valid(common.Hash{1})}, Rules: rules(), Log: slog.New(slog.NewTextHandler(log, nil))})
	methods := api.Methods()
	state := map[string]any{"headBlockHash": common.Hash{1}, "safeBlockHash": common.Hash{}, "finalizedBlockHash": common.Hash{}}
	attributes := map[string]any{"timestamp": "0x1", "prevRandao": common.Hash{}, "suggestedFeeRecipient": common.Address{}}
	ask(t, methods, "engine_forkchoiceUpdatedV1", state, nil)
	ask(t, methods, "engine_forkchoiceUpdatedV3", state, attributes) // of another fork
	if log.Len() > 0 {
		t.Errorf("the log before the client asks for a block: %s", log)
	}
	for range 2 {
		if got := ask(t, methods, "engine_forkchoiceUpdatedV1", state, attributes); !strings.Contains(got, `-38003,"message":"Invalid payload attributes: Ashlar builds no blocks"`) {
			t.Errorf("attributes: %s", got)
		}
	}
	if got := ask(t, methods, "engine_getPayloadV1", "0x0000000000000001"); !strings.Contains(got, `-38001,"message":"Unknown payload: Ashlar builds no blocks"`) {
		t.Errorf("a payload: %s", got)
	}
	if got := strings.Count(log.String(), "level=WARN"); got != 1 || !strings.Contains(log.String(), "which Ashlar does not build") {
		t.Errorf("the log has %d warnings, want 1: %s", got, log)
	}
}
