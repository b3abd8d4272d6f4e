package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ashlar/internal/node"
	"ashlar/internal/vectors"

	geth "github.com/ethereum/go-ethereum/beacon/engine"
	"github.com/ethereum/go-ethereum/common"
)

// saidOf returns the part of an Engine API response that must be the same for all clients. The texts of
// errors are not part of it.
func saidOf(t *testing.T, client *node.Client, method string, params ...any) string {
	t.Helper()
	var raw json.RawMessage
	err := client.Call(t.Context(), &raw, method, params...)
	var refused *node.Error
	if errors.As(err, &refused) {
		return fmt.Sprint("error ", refused.Code)
	}
	if err != nil {
		t.Fatal(err)
	}
	var status geth.PayloadStatusV1
	if strings.Contains(method, "forkchoice") {
		var answer geth.ForkChoiceResponse
		err = json.Unmarshal(raw, &answer)
		status = answer.PayloadStatus
	} else {
		err = json.Unmarshal(raw, &status)
	}
	if err != nil {
		t.Fatal(err)
	}
	if status.LatestValidHash == nil {
		return status.Status + " null"
	}
	return status.Status + " " + status.LatestValidHash.Hex()
}

// consensusClient sends valid and invalid calls in random order.
type consensusClient struct {
	*rand.Rand
	t        *testing.T
	payloads []engineCall
	sent     int           // number of payloads sent unmodified
	wrong    []engineCall  // modified payloads that were sent
	hashes   []common.Hash // of payloads; those from sent on are unknown to the client
	// geth applies the head and finalized block of a forkchoice update whose safe block it then rejects.
	// Afterwards it may ignore a head as older than the finalized block.
	halfRefused bool
}

// next returns a call and a description; the call may be the next payload unmodified.
func (c *consensusClient) next() (call engineCall, what string) {
	switch c.IntN(8) {
	case 0:
		return c.forkchoice()
	case 1:
		fields := c.fields(c.payloads[c.sent])
		names := slices.Sorted(maps.Keys(fields))
		name := names[c.IntN(len(names))]
		fields[name] = otherValue(name, fields[name])
		if wrong := c.payloads[c.sent].with(c.t, fields); wrong != nil && name != "timestamp" {
			return *wrong, "another " + name
		}
	case 2: // and what comes after it
		fields := c.fields(c.payloads[c.sent])
		name := []string{"stateRoot", "receiptsRoot", "gasUsed", "baseFeePerGas", "logsBloom"}[c.IntN(5)]
		fields[name] = otherValue(name, fields[name])
		if wrong := c.payloads[c.sent].with(c.t, fields); wrong != nil {
			hashed := rehashed(c.t, *wrong)
			c.wrong = append(c.wrong, hashed)
			return hashed, "another " + name + " and its hash"
		}
	case 3:
		if len(c.wrong) > 0 {
			parent := c.wrong[c.IntN(len(c.wrong))]
			fields := c.fields(c.payloads[c.sent+1])
			fields["parentHash"] = payloadOf(c.t, parent).BlockHash
			after := rehashed(c.t, *c.payloads[c.sent+1].with(c.t, fields))
			c.wrong = append(c.wrong, after)
			return after, "upon a wrong one"
		}
	case 4:
		call := c.payloads[c.IntN(c.sent+1)]
		call.Method = fmt.Sprintf("engine_newPayloadV%d", 1+c.IntN(4))
		return call, "in any version"
	case 5:
		return c.payloads[c.IntN(c.sent+1)], "once more"
	}
	c.sent++
	return c.payloads[c.sent-1], "the next"
}

func (c *consensusClient) fields(call engineCall) (fields map[string]any) {
	if err := json.Unmarshal(call.Params[0], &fields); err != nil {
		c.t.Fatal(err)
	}
	return fields
}

// forkchoice returns a forkchoice update with recent blocks, most of which are valid.
func (c *consensusClient) forkchoice() (engineCall, string) {
	some := func(near int) common.Hash {
		switch c.IntN(12) {
		case 0:
			return common.Hash{}
		case 1:
			return c.hashes[c.IntN(c.sent+1)]
		case 2:
			return c.hashes[c.sent+5] // still unknown
		case 3:
			if len(c.wrong) > 0 {
				return payloadOf(c.t, c.wrong[c.IntN(len(c.wrong))]).BlockHash
			}
		}
		return c.hashes[max(0, near-c.IntN(4))]
	}
	state, err := json.Marshal(geth.ForkchoiceStateV1{HeadBlockHash: some(c.sent - 1), SafeBlockHash: some(c.sent - 4), FinalizedBlockHash: some(c.sent - 8)})
	if err != nil {
		c.t.Fatal(err)
	}
	return engineCall{Method: "engine_forkchoiceUpdatedV3", Params: []json.RawMessage{state, json.RawMessage("null")}}, "a forkchoice"
}

// TestEngineBesideGeth sends the same calls, valid and invalid ones, to Ashlar and to a real geth.
func TestEngineBesideGeth(t *testing.T) {
	bin, err := node.FindGeth()
	if err != nil {
		vectors.Missing(t, err.Error())
	}
	folder := vectors.Path(t, "chains", "prague-with-state")
	g := node.Geth{Bin: bin, Data: t.TempDir(), Scheme: node.HashScheme}
	if err := g.Init(t.Context(), filepath.Join(folder, "genesis.json")); err != nil {
		t.Fatal(err)
	}
	driven, err := g.ServeEngine(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer driven.Kill()
	theirs := driven.Engine
	d := drive(t, filepath.Join(folder, "genesis.json"), "")

	c := &consensusClient{Rand: rand.New(rand.NewPCG(5, 5)), t: t}
	c.payloads, _ = recorded(t, folder)
	c.payloads = c.payloads[1:]
	for _, call := range c.payloads {
		c.hashes = append(c.hashes, payloadOf(t, call).BlockHash)
	}
	calls, alike, kinds := 0, 0, make(map[string]int)
	for c.sent < 300 {
		call, what := c.next()
		ours, their := saidOf(t, d.engine, call.Method, call.args()...), saidOf(t, theirs, call.Method, call.args()...)
		calls++
		c.halfRefused = c.halfRefused || their == "error -38002"
		kind, _, _ := strings.Cut(their, " 0x")
		kinds[kind]++
		if ours == their {
			alike++
			continue
		}
		if ours == "error -38002" && kind == geth.VALID && c.halfRefused {
			continue
		}
		t.Errorf("%s (%s, %s): Ashlar returns %s, geth %s", call.Method, call.ID, what, ours, their)
	}
	t.Logf("%d of %d calls answered alike: %v", alike, calls, kinds)
}
