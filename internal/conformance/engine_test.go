package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ashlar/internal/node"
	"ashlar/internal/vectors"

	geth "github.com/ethereum/go-ethereum/beacon/engine"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// engineCall is a recorded call of the Engine API.
type engineCall struct {
	ID     json.RawMessage   `json:"id"`
	Method string            `json:"method"`
	Params []json.RawMessage `json:"params"`
}

func readCalls(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// args returns the recorded parameters.
func (c engineCall) args() []any {
	var all []any
	for _, p := range c.Params {
		all = append(all, p)
	}
	return all
}

func mustBeValid(t *testing.T, what any, status geth.PayloadStatusV1, hash common.Hash) {
	t.Helper()
	if status.Status != geth.VALID || status.LatestValidHash == nil || *status.LatestValidHash != hash {
		t.Fatalf("%s: %+v, latest valid %v, %v", what, status, status.LatestValidHash, deref(status.ValidationError))
	}
}

func deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// payloadOf decodes the payload of a call.
func payloadOf(t *testing.T, c engineCall) geth.ExecutableData {
	t.Helper()
	var payload geth.ExecutableData
	if err := json.Unmarshal(c.Params[0], &payload); err != nil {
		t.Fatal(err)
	}
	return payload
}

// recorded returns the recorded calls of a chain: its payloads, and the final forkchoice update.
func recorded(t *testing.T, folder string) (payloads []engineCall, head engineCall) {
	t.Helper()
	readCalls(t, filepath.Join(folder, "newpayload.json"), &payloads)
	readCalls(t, filepath.Join(folder, "headfcu.json"), &head)
	for _, c := range payloads {
		if len(c.Params) == 4 {
			c.Params[3] = inHexadecimal(t, c.Params[3])
		}
	}
	return payloads, head
}

// inHexadecimal converts a list of requests, which the recorder wrote in base64, to hexadecimal.
func inHexadecimal(t *testing.T, list json.RawMessage) json.RawMessage {
	t.Helper()
	var requests [][]byte
	if err := json.Unmarshal(list, &requests); err != nil {
		t.Fatal(err)
	}
	right := make([]hexutil.Bytes, len(requests))
	for i, request := range requests {
		right[i] = request
	}
	text, err := json.Marshal(right)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestEngine sends the recorded calls of a chain, kills the service meanwhile, and compares the head.
func TestEngine(t *testing.T) {
	folder := vectors.Path(t, "chains", "prague-with-state")
	payloads, headCall := recorded(t, folder)
	d := drive(t, filepath.Join(folder, "genesis.json"), "")

	// As a payload the genesis is a different block, since payloads have no proof of work.
	if status := d.send(payloads[0]); status.Status != geth.INVALID || status.LatestValidHash != nil {
		t.Errorf("the genesis as a payload: %+v", status)
	}
	payloads = payloads[1:]
	const killedAt = 300
	for i, c := range payloads {
		hash := payloadOf(t, c).BlockHash
		mustBeValid(t, c.ID, d.send(c), hash)
		if i%50 == 49 {
			mustBeValid(t, "forkchoice", d.update(hash, common.Hash{}, common.Hash{}), hash)
		}
		if i == killedAt+20 {
			d.kill()
			checkHead(t, d.client, killedAt, payloadOf(t, payloads[killedAt-1]).BlockHash)
			mustBeValid(t, "sent before the kill", d.send(c), hash)
		}
	}
	last := payloadOf(t, payloads[len(payloads)-1]).BlockHash
	mustBeValid(t, "forkchoice", d.forkchoice(headCall.Method, headCall.args()...), last)
	checkHead(t, d.client, uint64(len(payloads)), last)
	checkHeadBlock(t, filepath.Join(folder, "headblock.json"), latest(t, d.client))
	for _, tag := range []string{"safe", "finalized"} {
		if got := blockAt(t, d.client, tag); got.Hash != last {
			t.Errorf("%s is %s, expected %s", tag, got.Hash, last)
		}
	}
	mustBeValid(t, "the first, once more", d.send(payloads[0]), payloadOf(t, payloads[0]).BlockHash)
}

// TestEngineInAnyOrder sends the payloads of a chain out of order and repeatedly.
func TestEngineInAnyOrder(t *testing.T) {
	folder := vectors.Path(t, "chains", "prague-with-state")
	payloads, headCall := recorded(t, folder)
	payloads = payloads[1:]
	d := drive(t, filepath.Join(folder, "genesis.json"), "")
	random := rand.New(rand.NewPCG(7, 7))
	const window = 40 // number of blocks sent in random order
	for begin := 0; begin < len(payloads); begin += window {
		some := slices.Clone(payloads[begin:min(begin+window, len(payloads))])
		some = append(some, some[:len(some)/4]...)
		random.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		for _, c := range some {
			if status := d.send(c); status.Status != geth.VALID && status.Status != geth.SYNCING {
				t.Fatalf("%s: %+v", c.ID, status)
			}
		}
	}
	last := payloadOf(t, payloads[len(payloads)-1]).BlockHash
	mustBeValid(t, "forkchoice", d.forkchoice(headCall.Method, headCall.args()...), last)
	checkHead(t, d.client, uint64(len(payloads)), last)
}

// TestEngineAltered modifies each field of payloads, without and with recomputing the hash.
func TestEngineAltered(t *testing.T) {
	folder := vectors.Path(t, "chains", "prague-with-state")
	payloads, _ := recorded(t, folder)
	payloads = payloads[1:]
	d := drive(t, filepath.Join(folder, "genesis.json"), "")
	// Fields that the block's builder may choose, so that the result is another valid block. The gas
	// limit may differ a little from the parent's, as it does here.
	free := []string{"extraData", "prevRandao", "feeRecipient", "gasLimit"}
	for i, c := range payloads[:130] {
		parent := payloadOf(t, c).ParentHash
		if i == 3 || i == 9 || i >= 120 { // some payloads of each fork
			var fields map[string]any
			if err := json.Unmarshal(c.Params[0], &fields); err != nil {
				t.Fatal(err)
			}
			for name, value := range fields {
				altered := maps.Clone(fields)
				altered[name] = otherValue(name, value)
				wrong := c.with(t, altered)
				if name == "timestamp" || value == nil || wrong == nil {
					continue // another version of the call, or a field with only one possible value
				}
				if status := d.send(*wrong); status.Status != geth.INVALID || status.LatestValidHash != nil {
					t.Errorf("%s with another %s: %+v", c.ID, name, status)
				}
				if name == "blockHash" || name == "transactions" {
					continue
				}
				hashed := rehashed(t, *wrong)
				status := d.send(hashed)
				switch {
				case name == "parentHash":
					if status.Status != geth.SYNCING {
						t.Errorf("%s with another parent: %+v", c.ID, status)
					}
				case slices.Contains(free, name) && status.Status == geth.VALID:
				case status.Status != geth.INVALID || status.LatestValidHash == nil || *status.LatestValidHash != latestValid(i, parent):
					t.Errorf("%s with another %s and its hash: %+v, %v", c.ID, name, status, deref(status.ValidationError))
				}
			}
		}
		mustBeValid(t, c.ID, d.send(c), payloadOf(t, c).BlockHash)
	}
}

// latestValid returns the expected latest valid hash: zero for the genesis, which has a proof of work.
func latestValid(i int, parent common.Hash) common.Hash {
	if i == 0 {
		return common.Hash{}
	}
	return parent
}

// otherValue returns a different value of the same form for a field.
func otherValue(name string, value any) any {
	switch value := value.(type) {
	case string:
		if len(value) > 2 && value != "0x0" {
			last := value[len(value)-1]
			other := byte('1')
			if last == '1' {
				other = '2'
			}
			return value[:len(value)-1] + string(other)
		}
		if value == "0x0" {
			return "0x1"
		}
		return "0x01"
	case []any:
		if len(value) > 0 {
			return value[:len(value)-1]
		}
		if name == "transactions" {
			return []any{"0x01"}
		}
		return []any{map[string]any{"index": "0x1", "validatorIndex": "0x1", "address": common.Address{}, "amount": "0x1"}}
	}
	return value
}

// with returns the call with other fields in the payload, nil if the payload would be the same.
func (c engineCall) with(t *testing.T, fields map[string]any) *engineCall {
	t.Helper()
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	var before, after any
	if json.Unmarshal(text, &after) != nil || json.Unmarshal(c.Params[0], &before) != nil {
		t.Fatal("a payload does not decode")
	}
	if a, b := fmt.Sprint(before), fmt.Sprint(after); a == b {
		return nil
	}
	c.Params = append([]json.RawMessage{text}, c.Params[1:]...)
	return &c
}

// rehashed returns the call with the hash of its payload, as computed by go-ethereum.
func rehashed(t *testing.T, c engineCall) engineCall {
	t.Helper()
	payload := payloadOf(t, c)
	var blobHashes []common.Hash
	var root *common.Hash
	var requests []hexutil.Bytes
	for i, into := range []any{&blobHashes, &root, &requests} {
		if len(c.Params) > i+1 {
			if err := json.Unmarshal(c.Params[i+1], into); err != nil {
				t.Fatal(err)
			}
		}
	}
	var raw [][]byte
	if len(c.Params) == 4 {
		raw = [][]byte{}
	}
	for _, r := range requests {
		raw = append(raw, r)
	}
	block, err := geth.ExecutableDataToBlockNoHash(payload, blobHashes, root, raw)
	if err != nil {
		t.Fatal(err)
	}
	payload.BlockHash = block.Hash()
	text, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	c.Params = append([]json.RawMessage{text}, c.Params[1:]...)
	return c
}

// TestDriven replays the conversations of ethereum/execution-apis on a service that receives the head of
// headfcu.json through the Engine API and fetches the blocks from a node.
func TestDriven(t *testing.T) {
	folder := vectors.Path(t, "execution-apis")
	conversations, err := ReadConversations(folder)
	if err != nil {
		t.Fatal(err)
	}
	upstream := startFollowed(t, folder)
	d := drive(t, filepath.Join(folder, "genesis.json"), upstream.URL())
	var headCall engineCall
	readCalls(t, filepath.Join(folder, "headfcu.json"), &headCall)
	status := d.forkchoice(headCall.Method, headCall.args()...)
	if status.Status != geth.SYNCING {
		t.Errorf("a head whose blocks are missing: %+v, expected SYNCING", status)
	}
	for end := time.Now().Add(2 * time.Minute); status.Status == geth.SYNCING && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		status = d.forkchoice(headCall.Method, headCall.args()...)
	}
	var state geth.ForkchoiceStateV1
	if err := json.Unmarshal(headCall.Params[0], &state); err != nil {
		t.Fatal(err)
	}
	mustBeValid(t, "the head", status, state.HeadBlockHash)
	replayed := 0
	for _, c := range conversations {
		ofFollower := slices.ContainsFunc(ofFollowers(), func(name string) bool { return Later{Name: name}.matches(c.Name) })
		if !ofFollower && slices.ContainsFunc(laterTable(), func(l Later) bool { return l.matches(c.Name) }) {
			continue
		}
		replayed++
		t.Run(c.Name, func(t *testing.T) { Replay(t, d.client, c) })
	}
	t.Logf("%d of %d conversations replayed", replayed, len(conversations))

	// Methods are also served on the consensus client's listener, but only with a token.
	ask := []byte(`{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["finalized",false]}`)
	_, public, err1 := d.client.Post(t.Context(), ask)
	_, private, err2 := d.engine.Post(t.Context(), ask)
	if err1 != nil || err2 != nil || !bytes.Equal(public, private) {
		t.Errorf("the consensus client receives %.200s, others %.200s", private, public)
	}
	if code, body, err := node.NewClient(d.engine.URL).Post(t.Context(), ask); err != nil || code != 401 || !strings.Contains(string(body), "missing token") {
		t.Errorf("without a token: %d %s, %v", code, body, err)
	}
}
