package engine

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"ashlar/internal/memory"
)

// payloadFactor: the shortest transaction that decodes takes a few dozen characters,
// and half a kilobyte as an object; its root is computed from another copy.
const payloadFactor = 128

// FuzzPayload looks for arguments that make the decoder panic or take more memory
// than they are worth, and for blocks that are not the ones that they are said to be.
func FuzzPayload(f *testing.F) {
	for _, time := range []uint64{shanghai - 1, shanghai, cancun, prague} {
		_, s := made(f, time)
		params, err := json.Marshal(s.params())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(params)
	}
	for _, text := range []string{"[]", "[{}]", `[null]`, `[{"transactions":["0x"]},[],"0x"]`, `[{"withdrawals":[{}]}]`, `[{"transactions":["0xc9808080808080808080"]}]`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, params []byte) {
		if len(params) > 1<<16 || !json.Valid(params) {
			t.Skip() // the server refuses it
		}
		for _, v := range payloadVersions() {
			l := new(listener)
			api := New(Config{Chain: l, Rules: rules()})
			memory.Within(t, memory.Slack+payloadFactor*len(params), func() {
				_, _ = api.newPayload(v)(t.Context(), params, nil) // whatever it says
			})
			for _, block := range l.blocks {
				var args []json.RawMessage
				var payload struct{ BlockHash string }
				if err := errors.Join(json.Unmarshal(params, &args), json.Unmarshal(args[0], &payload)); err != nil {
					t.Fatal(err)
				}
				if got := block.Hash().Hex(); !strings.EqualFold(got, payload.BlockHash) {
					t.Errorf("block %s came out, %s was sent", got, payload.BlockHash)
				}
			}
		}
	})
}
